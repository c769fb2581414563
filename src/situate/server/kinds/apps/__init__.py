"""The kinds of apps/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.apps import controllerrevision, daemonset, deployment, replicaset, statefulset
from situate.server.kinds.kind import Kind

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    controllerrevision.KIND,
    daemonset.KIND,
    deployment.KIND,
    replicaset.KIND,
    statefulset.KIND,
)
