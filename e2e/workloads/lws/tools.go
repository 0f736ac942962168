//go:build tools

// Package lws pins the manager which ../build.sh builds, so that `go mod tidy` keeps what it needs.
package lws

import _ "sigs.k8s.io/lws/cmd"
