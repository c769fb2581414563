"""A crew: so many pieces of work at a time, the rest in line. Work says itself what came of it, and raises nothing."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, TypeVar

from situate.loop.logs import Log

__all__ = ["Crew"]

T = TypeVar("T")

_log = Log(__name__)


class Crew(Generic[T]):
    """Works in the running event loop. Its hands are tasks that stay, and rest while there is no work."""

    def __init__(self, hands: int, work: Callable[[T], Awaitable[None]]) -> None:
        self._most = hands
        self._work = work
        self._line: deque[T] = deque()
        self._hands: set[asyncio.Task[None]] = set()
        self._resting: list[asyncio.Future[None]] = []
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """How many pieces nobody has begun with."""
        return len(self._line)

    @property
    def busy(self) -> bool:
        return len(self._hands) > len(self._resting)

    def put(self, piece: T) -> None:
        """Have it done, after all that came before. Comes back at once."""
        self._line.append(piece)
        if self._resting:
            self._idle.clear()
            self._resting.pop().set_result(None)
        elif len(self._hands) < self._most:
            self._idle.clear()
            hand = asyncio.get_running_loop().create_task(self._labour())
            self._hands.add(hand)
            hand.add_done_callback(self._left)

    def drop_all(self) -> Iterator[T]:
        """What nobody has begun with, and nobody will."""
        while self._line:
            yield self._line.popleft()

    async def idle(self, timeout_s: float) -> bool:
        """Wait until nothing is under way; False if that takes too long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def cancel(self) -> None:
        for hand in self._hands:
            hand.cancel()

    async def _labour(self) -> None:
        while True:
            while self._line:
                await self._work(self._line.popleft())
            await self._rest()

    async def _rest(self) -> None:
        """Until there is work."""
        rest: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._resting.append(rest)
        if not self.busy:
            self._idle.set()
        try:
            await rest
        except asyncio.CancelledError:
            # Looked for here only: who is called to work has been taken off, and many may rest.
            if rest in self._resting:
                self._resting.remove(rest)
            raise

    def _left(self, hand: asyncio.Task[None]) -> None:
        """A hand that was cancelled, or whose work raised: then another takes its place."""
        self._hands.discard(hand)
        if not hand.cancelled() and (error := hand.exception()) is not None:
            _log.error("A piece of work failed", err=repr(error))
        if self._line and not hand.cancelled():
            self.put(self._line.pop())
        if not self.busy:
            self._idle.set()
