"""Virtual time: a heap of things that are going to happen, each at its moment, in the order they were asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import TypeAlias

from situate.core.changes import Millis

Thing: TypeAlias = Callable[[], None]


class Timeline:
    """What time it is, and what comes next."""

    def __init__(self) -> None:
        self.now: Millis = 0
        self._heap: list[tuple[Millis, int, Thing]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._heap)

    def after(self, delay_ms: Millis, thing: Callable[..., None], *arguments: object) -> None:
        """Let something happen later; things of one moment happen in the order in which they were asked for."""
        if delay_ms < 0:
            raise ValueError(f"{delay_ms} ms ago is over")
        self._sequence += 1
        later: Thing = partial(thing, *arguments)
        heappush(self._heap, (self.now + delay_ms, self._sequence, later))

    def next_ms(self) -> Millis | None:
        return self._heap[0][0] if self._heap else None

    def advance(self) -> None:
        """Go to the next moment at which something happens, and let all of that moment happen."""
        self.now = self._heap[0][0]
        while self._heap and self._heap[0][0] == self.now:
            heappop(self._heap)[2]()
