"""The kinds of situate.dev/v1alpha1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.kind import Kind
from situate.server.kinds.situate_dev import nodesnapshot, placementdecision, views

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    views.NAMESPACE_VIEW,
    nodesnapshot.KIND,
    views.NODE_VIEW,
    placementdecision.KIND,
    views.PLACEMENT_EVENT,
    views.WORKLOAD_VIEW,
)
