"""controller-runtime's own tests, with envtest started on `situate envtest assets`."""

from __future__ import annotations

from kubernetes.judges.go_suites import GoProject

CONTROLLER_RUNTIME = GoProject("sigs.k8s.io/controller-runtime", "v0.24.1", folder="pkg", limit_s=800.0)
