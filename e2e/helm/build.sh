#!/usr/bin/env bash
# Builds helm from the Go module proxy, once, into a cache outside the checkout. The last line on stdout is its path.
# Exit code 3: it must be built and there is no Go.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${MUSTER_HELM_CACHE:-$HOME/.cache/muster/helm}
source "$here/../cached_build.sh"

compile() {
    cd "$here"
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$2" helm.sh/helm/v4/cmd/helm
}

ensure helm "$here"
echo "$cache/bin/helm"
