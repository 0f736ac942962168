//go:build tools

// Package conformance pins the tests which build.sh builds, so that `go mod tidy` keeps what they need.
package conformance

import _ "k8s.io/kubernetes/test/e2e"
