"""The kinds of apps/v1: their strategies, one file a kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.server.kinds.apps import daemonset, deployment, replicaset, revision, statefulset
from situate.server.kinds.strategy import Strategy

__all__ = ["STRATEGIES"]

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "apps/ControllerRevision": revision.STRATEGY,
    "apps/DaemonSet": daemonset.STRATEGY,
    "apps/Deployment": deployment.STRATEGY,
    "apps/ReplicaSet": replicaset.STRATEGY,
    "apps/StatefulSet": statefulset.STRATEGY,
}
