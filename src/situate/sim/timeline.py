"""Virtual time: a heap of callbacks, run by time and then in the order of their registration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import TypeAlias

from situate.core.changes import Millis

Thing: TypeAlias = Callable[[], None]


class Timeline:
    """The current time and the pending callbacks."""

    def __init__(self) -> None:
        self.now: Millis = 0
        self._heap: list[tuple[Millis, int, Thing]] = []
        self._sequence = 0

    def after(self, delay_ms: Millis, thing: Callable[..., None], *arguments: object) -> None:
        """Run a callback later."""
        if delay_ms < 0:
            raise ValueError(f"a delay of {delay_ms} ms is in the past")
        self._sequence += 1
        later: Thing = partial(thing, *arguments)
        heappush(self._heap, (self.now + delay_ms, self._sequence, later))

    def next_ms(self) -> Millis | None:
        return self._heap[0][0] if self._heap else None

    def advance(self) -> None:
        """Advance to the next callback, and run all callbacks of that time."""
        self.now = self._heap[0][0]
        while self._heap and self._heap[0][0] == self.now:
            heappop(self._heap)[2]()
