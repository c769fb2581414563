"""Pods that need not try: of many equal pods without a node, only some are in the scheduling queue.

Pods of one class get the same answer. In a full cluster thousands of pods wait, and each pod that leaves would make all
of them retry. So, when many wait, further pods of a class are held back here in order, until a queued one of their
class is placed, leaves, or is nominated.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar

MAX_QUEUED: Final = 32
"""How many refused pods may be in the queue before others are held back."""

P = TypeVar("P")


class Backlog(Generic[P]):
    """Classes are identified by their signature; pods are opaque."""

    __slots__ = ("_held", "_standing", "_total", "why")

    def __init__(self) -> None:
        self._held: dict[bytes, deque[P]] = {}
        self._standing: dict[bytes, int] = {}
        self._total = 0
        self.why: dict[bytes, str] = {}
        """The last message of each class."""

    @property
    def busy(self) -> bool:
        """Whether enough pods are queued to hold others back."""
        return self._total >= MAX_QUEUED

    def covers(self, kind: bytes) -> bool:
        """Whether queued pods represent this class, so that another one can be held back."""
        return self._total >= MAX_QUEUED and kind in self._standing

    def stand(self, kind: bytes) -> None:
        """A pod of the class was refused and stays in the queue."""
        self._standing[kind] = self._standing.get(kind, 0) + 1
        self._total += 1

    def step_down(self, kind: bytes) -> P | None:
        """A queued pod left the queue; return the next one of its class, if any."""
        self._total -= 1
        left = self._standing[kind] - 1
        if left:
            self._standing[kind] = left
        else:
            del self._standing[kind]
        return self.next(kind)

    def hold(self, kind: bytes, pod: P) -> None:
        self._held.setdefault(kind, deque()).append(pod)

    def next(self, kind: bytes) -> P | None:
        """The first pod that was held back, now released."""
        waiting = self._held.get(kind)
        if waiting is None:
            return None
        pod = waiting.popleft()
        if not waiting:
            del self._held[kind]
        return pod
