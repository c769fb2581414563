"""The kinds of node.k8s.io/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.kind import Kind
from situate.server.kinds.node import runtimeclass

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (runtimeclass.KIND,)
