"""Node locks: writers of one node's ledger go one at a time, so that they do not refuse each other at the store again
and again. They hold within one process; between servers, the guards decide.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Final

from situate.server.errors import too_many_requests

MOST_WAITING: Final = 1_024
"""How many writers may wait for one node. More are refused."""


class NodeLocks:
    """A fair lock for each node that somebody writes to."""

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most = most_waiting
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def of(self, node: str) -> AbstractAsyncContextManager[None]:
        """Hold the node's lock while this is open. Raises StatusError (429) if too many wait."""
        return _NodeLock(self, node)

    def try_acquire(self, node: str) -> bool:
        """Take the node's lock if it is free."""
        if node in self._waiting:
            return False
        self._waiting[node] = deque()
        return True

    async def acquire(self, node: str) -> None:
        waiting = self._waiting.get(node)
        if waiting is None:
            self._waiting[node] = deque()
        else:
            await self._wait(node, waiting)

    async def _wait(self, node: str, waiting: deque[asyncio.Future[None]]) -> None:
        if len(waiting) >= self._most:
            raise too_many_requests(f'too many binds wait for node "{node}"')
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):  # a release of the lock meanwhile has skipped us
                    waiting.remove(turn)
            else:
                self.release(node)  # we had just acquired it
            raise

    def release(self, node: str) -> None:
        waiting = self._waiting[node]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[node]


class _NodeLock(AbstractAsyncContextManager[None]):
    """One acquisition. There are thousands a second, so it is no generator."""

    __slots__ = ("_locks", "_node")

    def __init__(self, locks: NodeLocks, node: str) -> None:
        self._locks = locks
        self._node = node

    async def __aenter__(self) -> None:
        await self._locks.acquire(self._node)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._locks.release(self._node)
