"""Those who need not try: of pods that are alike, and for which there is no room, only some stand in the queue.

Pods of one class have one answer: what is refused to the first is refused to the others. In a cluster that is too
small pods wait by the thousand, and each one that leaves would have all of them tried again. So, once many wait, others
of a class are held back here, in order, until one that stands for them is placed, or leaves, or is promised a node.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar

__all__ = ["MAX_QUEUED", "Backlog"]

MAX_QUEUED: Final = 32
"""How many pods may stand in the queue, refused, before any is held back: below that, the queue is the engine's own."""

P = TypeVar("P")


class Backlog(Generic[P]):
    """Classes by what they are known by; pods are whatever the caller takes for pods."""

    __slots__ = ("_held", "_standing", "_total", "why")

    def __init__(self) -> None:
        self._held: dict[bytes, deque[P]] = {}
        self._standing: dict[bytes, int] = {}
        self._total = 0
        self.why: dict[bytes, str] = {}
        """What each class was last told."""

    @property
    def busy(self) -> bool:
        """Whether so many stand that others of their classes need not."""
        return self._total >= MAX_QUEUED

    def covers(self, kind: bytes) -> bool:
        """Whether another pod of a class need not stand beside those that do."""
        return self._total >= MAX_QUEUED and kind in self._standing

    def stand(self, kind: bytes) -> None:
        """A pod of a class was refused, and stands in the queue."""
        self._standing[kind] = self._standing.get(kind, 0) + 1
        self._total += 1

    def step_down(self, kind: bytes) -> P | None:
        """One that stood does so no more; whose turn it is now, if anybody's."""
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
        """The first that was held back, who is so no more."""
        waiting = self._held.get(kind)
        if waiting is None:
            return None
        pod = waiting.popleft()
        if not waiting:
            del self._held[kind]
        return pod
