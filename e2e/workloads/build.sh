#!/usr/bin/env bash
# Builds the real managers of workloads from the Go module proxy, once, into a cache outside the checkout.
# Usage: build.sh [MANAGER...] (default: all). The last line on stdout is the cache: bin/MANAGER is the program,
# manifests/MANAGER its module's manifests. Exit code 3: something must be built and there is no Go.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${MUSTER_WORKLOADS_CACHE:-$HOME/.cache/muster/workloads}
source "$here/../cached_build.sh"

# The module, the package of the program within it, and the directory of manifests.
declare -A modules=(
    [jobset]="sigs.k8s.io/jobset . config"
    [lws]="sigs.k8s.io/lws cmd config"
    [kueue]="sigs.k8s.io/kueue cmd/kueue config"
    [trainer]="github.com/kubeflow/trainer/v2 cmd/trainer-controller-manager manifests"
    [kuberay]="github.com/ray-project/kuberay/ray-operator . config"
)

# Kueue reads the certificate of its metrics from a fixed directory of the system. Here an environment variable says
# where: the one line that differs from the released manager, in a copy of its module.
changed_kueue() {
    local copy=$cache/kueue-source main=cmd/kueue/main.go
    rm -rf "$copy"
    cp -r "$1" "$copy"
    chmod -R u+w "$copy"
    sed -i 's#"/etc/kueue/metrics/certs"#os.Getenv("KUEUE_METRICS_CERTS")#' "$copy/$main"
    cp go.mod "$cache/kueue.mod"
    cp go.sum "$cache/kueue.sum"
    go mod edit -replace="sigs.k8s.io/kueue=$copy" "$cache/kueue.mod"
    echo "-modfile=$cache/kueue.mod"
}

compile() {
    local name=$1 output=$2 module package manifests directory flags=()
    read -r module package manifests <<<"${modules[$name]}"
    cd "$here/$name"
    go mod download "$module"
    directory=$(go list -m -f '{{.Dir}}' "$module")
    if [[ $name == kueue ]]; then
        flags+=("$(changed_kueue "$directory")")
    fi
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' "${flags[@]}" -o "$output" "$module/$package"
    rm -rf "$cache/manifests/$name"
    mkdir -p "$cache/manifests"
    cp -r "$directory/$manifests" "$cache/manifests/$name"
    chmod -R u+w "$cache/manifests/$name"
}

if [[ $# -eq 0 ]]; then
    set -- jobset lws kueue trainer kuberay
fi
for name in "$@"; do
    if [[ -z ${modules[$name]:-} ]]; then
        echo "build.sh: unknown manager $name; known: jobset lws kueue trainer kuberay" >&2
        exit 2
    fi
done
for name in "$@"; do
    ensure "$name" "$here/$name"
done
echo "$cache"
