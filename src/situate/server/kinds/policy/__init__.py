"""The kinds of policy/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.kind import Kind
from situate.server.kinds.policy import poddisruptionbudget

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (poddisruptionbudget.KIND,)
