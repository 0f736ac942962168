//go:build tools

// Package kuberay pins the manager which ../build.sh builds, so that `go mod tidy` keeps what it needs.
package kuberay

import _ "github.com/ray-project/kuberay/ray-operator"
