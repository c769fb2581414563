"""PrioritySort: the order of the queue. The higher priority first; of two alike, who has waited longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class PrioritySort:
    """Orders the queue; it is not asked about nodes."""

    name: ClassVar[str] = "PrioritySort"

    def key(self, priority: int, queued_ms: int) -> tuple[int, int]:
        """Sorts as the queue does: the smallest key goes first. Who gives equal keys settles the tie."""
        return (-priority, queued_ms)
