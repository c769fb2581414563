"""Expires leases, for memory and SQLite. Uses the event loop's monotonic clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from situate.store.entries import LeaseId


@dataclass(slots=True)
class _Running:
    ttl_s: float
    deadline: float
    timer: asyncio.TimerHandle


class LeaseExpiry:
    """Leases and their deadlines. Calls `expired` for each lease that nobody kept alive."""

    def __init__(self, expired: Callable[[LeaseId], None]) -> None:
        self._expired = expired
        self._running: dict[LeaseId, _Running] = {}

    def add(self, lease: LeaseId, ttl_s: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ttl_s
        self._running[lease] = _Running(ttl_s, deadline, loop.call_at(deadline, self._due, lease))

    def keep_alive(self, lease: LeaseId) -> bool:
        """Extend the deadline. The timer stays; when it fires, it checks the deadline again."""
        found = self._running.get(lease)
        if found is None:
            return False
        found.deadline = asyncio.get_running_loop().time() + found.ttl_s
        return True

    def drop(self, lease: LeaseId) -> None:
        found = self._running.pop(lease, None)
        if found is not None:
            found.timer.cancel()

    def close(self) -> None:
        for lease in list(self._running):
            self.drop(lease)

    def _due(self, lease: LeaseId) -> None:
        found = self._running[lease]
        loop = asyncio.get_running_loop()
        if loop.time() < found.deadline:
            found.timer = loop.call_at(found.deadline, self._due, lease)
            return
        del self._running[lease]
        self._expired(lease)
