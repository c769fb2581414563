"""How far nodes are behind what was committed for them: from the commit of a snapshot to its acknowledgement. Pure.

A node takes part from when its lease first names a version; an agent of another make never does, and is not measured.
Times are seconds of the caller's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

__all__ = ["LagTracker"]

MOST_WAITING: Final = 256
"""Versions that are remembered of a node that acknowledges nothing. The oldest says how far it is behind."""


class LagTracker:
    """Told what was committed and acknowledged; knows who is behind."""

    def __init__(self) -> None:
        self._acknowledged: dict[str, int] = {}
        self._waiting: dict[str, deque[tuple[int, float]]] = {}
        """By node, versions that it has not acknowledged, and when each was committed. Never empty."""

    def committed(self, node: str, version: int, at: float) -> None:
        known = self._acknowledged.get(node)
        if known is None or known >= version:
            return
        waiting = self._waiting.setdefault(node, deque())
        if len(waiting) < MOST_WAITING and (not waiting or waiting[-1][0] < version):
            waiting.append((version, at))

    def begun(self, node: str, version: int, at: float) -> None:
        """This version was there when the node was first heard of."""
        known = self._acknowledged.get(node)
        if known is not None and known < version and node not in self._waiting:
            self._waiting[node] = deque([(version, at)])

    def acknowledged(self, node: str, version: int, at: float) -> list[float]:
        """How long each version took that is acknowledged by this."""
        if version <= self._acknowledged.get(node, -1):
            return []
        self._acknowledged[node] = version
        waiting = self._waiting.get(node)
        taken: list[float] = []
        while waiting and waiting[0][0] <= version:
            taken.append(at - waiting.popleft()[1])
        if waiting is not None and not waiting:
            del self._waiting[node]
        return taken

    def gone(self, node: str) -> None:
        self._acknowledged.pop(node, None)
        self._waiting.pop(node, None)

    def behind(self, now: float, bound_s: float) -> Iterator[tuple[str, int, float]]:
        """Nodes that are behind by more than this: the oldest version that they have not, and by how much."""
        for node, waiting in self._waiting.items():
            version, at = waiting[0]
            if now - at > bound_s:
                yield node, version, now - at
