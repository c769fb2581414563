//go:build parts

// Package parts names the one program that is built here, so that go.mod and go.sum cover it. It is never compiled.
package parts

import _ "k8s.io/kubernetes/cmd/kubelet"
