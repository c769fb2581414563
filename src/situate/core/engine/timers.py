"""What the engine has to look at again at a certain time, though nothing may have changed by then."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Literal, NamedTuple, TypeAlias

from situate.core.changes import Millis

TimerKind: TypeAlias = Literal["bind", "evict", "extender", "gang", "nomination", "volumes", "claims", "devices"]


class Timer(NamedTuple):
    """Timers that are due at the same time go off in the order in which they were set."""

    due_ms: Millis
    number: int
    """No other timer has it."""
    kind: TimerKind
    key: str
    version: int


class Timers:
    """All timers. None is ever cancelled: its handler checks whether it still matters."""

    __slots__ = ("_heap", "_set")

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._set = 0

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, due_ms: Millis, kind: TimerKind, key: str, version: int = 0) -> int:
        """The number of the new timer."""
        self._set += 1
        heappush(self._heap, Timer(due_ms, self._set, kind, key, version))
        return self._set

    def next_ms(self) -> Millis | None:
        return self._heap[0].due_ms if self._heap else None

    def pop(self, now: Millis) -> Timer | None:
        return heappop(self._heap) if self._heap and self._heap[0].due_ms <= now else None
