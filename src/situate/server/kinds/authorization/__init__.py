"""The kinds of authorization.k8s.io/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.authorization import reviews
from situate.server.kinds.kind import Kind

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    reviews.LOCAL_ACCESS_REVIEW,
    reviews.SELF_ACCESS_REVIEW,
    reviews.SELF_RULES_REVIEW,
    reviews.ACCESS_REVIEW,
)
