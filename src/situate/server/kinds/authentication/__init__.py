"""The kinds of authentication.k8s.io/v1."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.authentication import reviews
from situate.server.kinds.kind import Kind

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (
    reviews.SELF_SUBJECT_REVIEW,
    reviews.TOKEN_REVIEW,
)
