"""Throttles the computation of views, which shares the event loop with everything else.

Call `pause` after each piece of work. After a time slice it yields to other tasks; if they were busy, it sleeps for
REST times the slice. So an endless reader takes a tenth of a busy server's time, and on an idle server it does not
wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

SLICE_S: Final = 0.001
REST: Final = 9.0
BUSY: Final = 0.1
"""Other tasks were busy if yielding took longer than this part of our slice."""


class Pace:
    """The throttle of one computation."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, rest: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._clock = clock
        self._rest = rest
        self._begun = clock()

    async def pause(self) -> None:
        """Call after every small piece of work. Mostly it does nothing."""
        now = self._clock()
        spent = now - self._begun
        if spent < SLICE_S:
            return
        await self._rest(0)
        if self._clock() - now > spent * BUSY:
            await self._rest(spent * REST)
        self._begun = self._clock()
