//go:build tools

// Package tools keeps helm in go.mod.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
