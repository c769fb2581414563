"""PrioritySort: the order of the queue. Higher priority first; then the pod that has waited longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class PrioritySort:
    """Orders the queue; it does not filter or score nodes."""

    name: ClassVar[str] = "PrioritySort"

    def key(self, priority: int, queued_ms: int) -> tuple[int, int]:
        """The queue's sort key: the smallest goes first. The caller breaks ties."""
        return (-priority, queued_ms)
