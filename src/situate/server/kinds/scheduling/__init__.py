"""The kinds of scheduling.k8s.io and of scheduling.x-k8s.io."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.kind import Kind
from situate.server.kinds.scheduling import coscheduling, podgroup, priorityclass

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    priorityclass.KIND,
    podgroup.KIND,
    coscheduling.KIND,
)
