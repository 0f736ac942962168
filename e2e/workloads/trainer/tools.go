//go:build tools

// Package trainer pins the manager which ../build.sh builds, so that `go mod tidy` keeps what it needs.
package trainer

import _ "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"
