"""The clock of an agent, so that a simulation can replace it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final


def since_boot() -> float:
    """Seconds since boot, suspend included, because a lease expires during suspend as well."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Clock:
    monotonic: Callable[[], float] = since_boot
    """Monotonic seconds."""
    wall_ns: Callable[[], int] = time.time_ns
    """For display only."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


REAL: Final = Clock()
