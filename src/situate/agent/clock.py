"""The time as an agent has it: given to it, so that it can be another's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["REAL", "Clock", "since_boot"]


def since_boot() -> float:
    """Seconds since this machine was started, those that it slept included: a lease runs out meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Clock:
    monotonic: Callable[[], float] = since_boot
    """Seconds that never go back: for how long something took."""
    wall_ns: Callable[[], int] = time.time_ns
    """Only to be shown."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """By the same clock."""


REAL: Final = Clock()
