"""Turns: who writes to one node's ledger comes one after another, so that those who come together do not refuse each
other at the store again and again. Of one process only: between servers, the guards decide.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final

from situate.server.problems import too_many_requests

__all__ = ["MOST_WAITING", "Turns"]

MOST_WAITING: Final = 1_024
"""How many may wait for one node. More are sent away."""


class Turns:
    """By node: who waits while somebody has the turn."""

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most = most_waiting
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def of(self, node: str) -> AbstractAsyncContextManager[None]:
        """The node's turn, for as long as this is open. Raises StatusError (429) where too many wait."""
        return _Turn(self, node)

    async def take(self, node: str) -> None:
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
                waiting.remove(turn)
            else:
                self.pass_on(node)  # it had come just before
            raise

    def pass_on(self, node: str) -> None:
        waiting = self._waiting[node]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._waiting[node]


class _Turn(AbstractAsyncContextManager[None]):
    """One turn, from when it comes until it is over. There are thousands a second, so it is no generator."""

    __slots__ = ("_node", "_turns")

    def __init__(self, turns: Turns, node: str) -> None:
        self._turns = turns
        self._node = node

    async def __aenter__(self) -> None:
        await self._turns.take(self._node)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turns.pass_on(self._node)
