#!/usr/bin/env bash
# Builds Kubernetes' own end-to-end tests, e2e.test, from the Go module proxy, once, into a cache outside the checkout.
# The last line on stdout is the program. Exit code 3: it must be built and there is no Go.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" {print $3}' "$here/go.mod")
cache=${MUSTER_KUBE_CACHE:-$HOME/.cache/muster/kube}/$version-e2e
source "$here/../cached_build.sh"

compile() {
    local number=${version#v} package flags="-s -w"
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $package.gitVersion=$version"
        flags+=" -X $package.gitMajor=$(cut -d. -f1 <<<"$number")"
        flags+=" -X $package.gitMinor=$(cut -d. -f2 <<<"$number")"
    done
    (cd "$here" && CGO_ENABLED=0 go test -c -trimpath -buildvcs=false -ldflags "$flags" -o "$2" k8s.io/kubernetes/test/e2e)
}

ensure e2e.test "$here"
echo "$cache/bin/e2e.test"
