"""The kinds of events.k8s.io/v1: the Event of core/v1, under other field names."""

from __future__ import annotations

from typing import Final

from situate.server.kinds.core.event import EVENTS_KIND
from situate.server.kinds.kind import Kind

__all__ = ["KINDS"]

KINDS: Final[tuple[Kind, ...]] = (EVENTS_KIND,)
