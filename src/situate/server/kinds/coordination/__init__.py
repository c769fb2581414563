"""The kinds of coordination.k8s.io/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.coordination import lease
from situate.server.kinds.kind import Kind

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (lease.KIND,)
