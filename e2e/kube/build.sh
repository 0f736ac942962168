#!/usr/bin/env bash
# Builds the Kubernetes binaries and etcd for the end-to-end tests from the Go module proxy, once, into a cache
# outside the checkout. Usage: build.sh [BINARY...] (default: all). The last line on stdout is the bin directory.
# Exit code 3: something must be built and there is no Go.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
all=(kubectl kube-apiserver etcd kube-scheduler kube-controller-manager)

version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" {print $3}' "$here/go.mod")
cache=${MUSTER_KUBE_CACHE:-$HOME/.cache/muster/kube}/$version
bin=$cache/bin
stamps=$cache/stamps

# The key names everything a binary is made of, so that a cached one is never older than the checkout.
key=$(cd "$here" && cat build.sh go.mod go.sum tools.go etcd/go.mod etcd/go.sum etcd/main.go | sha256sum | cut -d' ' -f1)

version_flags() {
    local number=${version#v} package flags="-s -w"
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $package.gitVersion=$version"
        flags+=" -X $package.gitMajor=$(cut -d. -f1 <<<"$number")"
        flags+=" -X $package.gitMinor=$(cut -d. -f2 <<<"$number")"
    done
    echo "$flags"
}

is_current() {
    [[ -x $bin/$1 && $(cat "$stamps/$1" 2>/dev/null) == "$key" ]]
}

compile() {
    local name=$1 module=$here package=k8s.io/kubernetes/cmd/$1
    if [[ $name == etcd ]]; then
        module=$here/etcd package=.
    fi
    (cd "$module" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$(version_flags)" \
        -o "$bin/.$name.new" "$package") >&2
    # Renamed, because a test may be running the old binary.
    mv "$bin/.$name.new" "$bin/$name"
    echo "$key" >"$stamps/$name"
}

ensure() {
    local name=$1 started=$SECONDS
    if is_current "$name"; then
        return
    fi
    if ! command -v go >/dev/null; then
        echo "build.sh: $name is not in $bin and Go is not installed, so it cannot be built" >&2
        exit 3
    fi
    mkdir -p "$bin" "$stamps"
    # One lock for each binary: a second caller waits for this build instead of repeating it.
    exec {lock}>"$stamps/$name.lock"
    flock "$lock"
    if ! is_current "$name"; then
        echo "build.sh: building $name for Kubernetes $version (minutes the first time)" >&2
        compile "$name"
        echo "build.sh: built $name in $((SECONDS - started)) s" >&2
    fi
    exec {lock}>&-
}

main() {
    local name
    for name in "$@"; do
        if [[ " ${all[*]} " != *" $name "* ]]; then
            echo "build.sh: unknown binary $name; known: ${all[*]}" >&2
            exit 2
        fi
    done
    for name in "$@"; do
        ensure "$name"
    done
    echo "$bin"
}

if [[ $# -eq 0 ]]; then
    set -- "${all[@]}"
fi
main "$@"
