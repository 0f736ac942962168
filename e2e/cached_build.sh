# For build scripts that source it: Go programs built once into a cache outside the checkout.
# The caller sets `cache` (a directory) and defines `compile NAME OUTPUT`; it then calls `ensure NAME MODULE_DIRECTORY`.
# The program is $cache/bin/NAME. It is built again when its module's files or the calling script change.
# Exit code 3: something must be built and there is no Go.

key_of() {
    cat "$0" "$1"/go.mod "$1"/go.sum "$1"/*.go | sha256sum | cut -d' ' -f1
}

is_current() {
    [[ -x $cache/bin/$1 && $(cat "$cache/stamps/$1" 2>/dev/null) == "$2" ]]
}

ensure() {
    local name=$1 key started=$SECONDS
    key=$(key_of "$2")
    if is_current "$name" "$key"; then
        return
    fi
    if ! command -v go >/dev/null; then
        echo "$0: $name is not in $cache/bin and Go is not installed, so it cannot be built" >&2
        exit 3
    fi
    mkdir -p "$cache/bin" "$cache/stamps"
    # One lock for each program: a second caller waits for this build instead of repeating it.
    exec {lock}>"$cache/stamps/$name.lock"
    flock "$lock"
    if ! is_current "$name" "$key"; then
        echo "$0: building $name (minutes the first time)" >&2
        (compile "$name" "$cache/bin/.$name.new") >&2
        # Renamed, because a test may be running the old one.
        mv "$cache/bin/.$name.new" "$cache/bin/$name"
        echo "$key" >"$cache/stamps/$name"
        echo "$0: built $name in $((SECONDS - started)) s" >&2
    fi
    exec {lock}>&-
}
