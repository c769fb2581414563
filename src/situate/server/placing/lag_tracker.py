"""How far nodes are behind: from the commit of a snapshot to its acknowledgement. Pure.

A node is measured once its lease names a version; the lease of another kind of agent never does. Times are seconds of
the caller's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

MOST_WAITING: Final = 256
"""How many versions to remember for a node that acknowledges none. The oldest tells how far it is behind."""


class LagTracker:
    def __init__(self) -> None:
        self._acknowledged: dict[str, int] = {}
        self._waiting: dict[str, deque[tuple[int, float]]] = {}
        """By node, the versions that it has not acknowledged, and when each was committed. Never empty."""

    def committed(self, node: str, version: int, at: float) -> None:
        known = self._acknowledged.get(node)
        if known is None or known >= version:
            return
        waiting = self._waiting.setdefault(node, deque())
        if len(waiting) < MOST_WAITING and (not waiting or waiting[-1][0] < version):
            waiting.append((version, at))

    def begun(self, node: str, version: int, at: float) -> None:
        """This version was committed before we saw the node."""
        known = self._acknowledged.get(node)
        if known is not None and known < version and node not in self._waiting:
            self._waiting[node] = deque([(version, at)])

    def acknowledged(self, node: str, version: int, at: float) -> list[float]:
        """How long each version took that this acknowledges."""
        if version < self._acknowledged.get(node, 0):
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
        """Nodes that are behind by more than this: their oldest unacknowledged version, and by how much."""
        for node, waiting in self._waiting.items():
            version, at = waiting[0]
            if now - at > bound_s:
                yield node, version, now - at
