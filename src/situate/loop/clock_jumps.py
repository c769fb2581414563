"""Notices that the machine's clock was set, and logs it in one line.

Nothing of ours waits by that clock: timeouts and leases use the monotonic one. But times in objects, tokens and
certificates follow it, and the line explains odd ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from situate.loop.logs import Log

LOOK_S: Final = 5.0
JUMP_S: Final = 10.0
"""Smaller steps are ordinary adjustments, as by NTP."""

_log = Log(__name__)


class ClockJumps:
    """Compares the wall clock with the monotonic one."""

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._offset = wall() - monotonic()

    def since_last(self) -> float:
        """By how many seconds the wall clock was set forward since the last call; negative: back; 0: not noticeably."""
        offset = self._wall() - self._monotonic()
        jump, self._offset = offset - self._offset, offset
        return jump if abs(jump) >= JUMP_S else 0.0


async def watch_clock(look_s: float = LOOK_S) -> None:
    """Until cancelled."""
    jumps = ClockJumps(time.time, time.monotonic)
    while True:
        await asyncio.sleep(look_s)
        jump = jumps.since_last()
        if jump < 0:
            _log.warning(
                "The clock was set back; tokens that were issued in that time are refused until it has caught up",
                seconds=round(-jump),
            )
        elif jump > 0:
            _log.warning("The clock was set forward, or the machine was suspended", seconds=round(jump))
