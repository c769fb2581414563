"""Rows of a view that are expensive to make: computed again once a second at most, and only when something changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from situate.web.limits import WAITING_S


class ThrottledRows:
    """Shared by all readers of a model. A tick is the number of an announced change."""

    def __init__(self, make: Callable[[], dict[str, Any]], clock: Callable[[], float]) -> None:
        self._make = make
        self._clock = clock
        self._changed = 1
        self._made: tuple[int, float, dict[str, Any]] | None = None

    def changed(self, tick: int) -> None:
        """What the rows are made of changed; that is announced with this tick."""
        self._changed = tick

    def read(self, now: int, since: int) -> dict[str, Any] | None:
        """The rows, if they changed after the tick `since`; `now` is the present tick."""
        made = self._made
        if made is None or (made[0] < self._changed and self._clock() - made[1] >= WAITING_S):
            rows = self._make()
            if made is not None and rows == made[2]:  # nobody needs to be told
                now = self._changed = made[0]
            made = self._made = (now, self._clock(), rows)
        return made[2] if made[0] > since else None

    @property
    def late(self) -> bool:
        """Whether there is more to say than was said last."""
        return self._made is not None and self._made[0] < self._changed
