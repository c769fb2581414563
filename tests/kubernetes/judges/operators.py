"""The integration suites of operators: their controllers and webhooks, with envtest started on ours."""

from __future__ import annotations

from kubernetes.judges.go_suites import GoProject

JOBSET = GoProject("sigs.k8s.io/jobset", "v0.12.0", folder="test/integration", limit_s=1800.0)
LWS = GoProject("sigs.k8s.io/lws", "v0.9.0", folder="test/integration", limit_s=1800.0)
"""LeaderWorkerSet."""
