//go:build tools

// Package kueue pins the manager which ../build.sh builds, so that `go mod tidy` keeps what it needs.
package kueue

import _ "sigs.k8s.io/kueue/cmd/kueue"
