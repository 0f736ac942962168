//go:build tools

// Package jobset pins the manager which ../build.sh builds, so that `go mod tidy` keeps what it needs.
package jobset

import _ "sigs.k8s.io/jobset"
