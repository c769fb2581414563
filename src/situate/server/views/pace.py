"""How reading is kept out of everybody's way: a slice of work at a time, and when others have work, mostly theirs.

Everything in the process shares one loop. Whoever works out a view asks `breathe` after each piece: after a slice the
others have their turn, and if they needed it, they are left alone for REST times as long as the slice took. So a reader
that never stops takes a tenth of a busy server's time, and on an idle one it does not wait at all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

__all__ = ["Pace"]

SLICE_S: Final = 0.001
REST: Final = 9.0
BUSY: Final = 0.1
"""Others were busy if their turn took longer than this part of our slice: to go round with nothing to do takes less."""


class Pace:
    """Of one piece of work."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, rest: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._clock = clock
        self._rest = rest
        self._begun = clock()

    async def pause(self) -> None:
        """To be called after every small piece. Mostly it does nothing."""
        now = self._clock()
        spent = now - self._begun
        if spent < SLICE_S:
            return
        await self._rest(0)
        if self._clock() - now > spent * BUSY:
            await self._rest(spent * REST)
        self._begun = self._clock()
