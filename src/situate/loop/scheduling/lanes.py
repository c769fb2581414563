"""Lanes: work on one key runs in order, work on different keys side by side, each kind of work within its own limit.

A pool of workers serves each kind, so that much work of one kind does not hold up another. Workers are tasks that stay
and rest while there is no work: nothing is created per piece of work. A kind may have its work done several pieces at a
time, of different keys.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from situate.loop.drive import describe_error
from situate.loop.logs import Log

_log = Log(__name__)


class Work(Protocol):
    @property
    def kind(self) -> str:
        """One of the kinds that have a limit."""


W = TypeVar("W", bound=Work)
Handler: TypeAlias = Callable[[Any], Awaitable[None]]
"""Runs work of one kind."""


class Together(NamedTuple):
    """Work of a kind that is done several pieces at a time, if they wait."""

    limit: int
    """How many pieces may run at a time."""
    most: int
    """How many of them one call of the handler gets, in a list."""
    handler: Handler


class Lanes(Generic[W]):
    """One lane for each key that has work, and one pool of workers for each kind. Lives in the running event loop."""

    def __init__(self, kinds: Mapping[str, tuple[int, Handler] | Together]) -> None:
        """For each kind: how many pieces may run at a time, and what runs them."""
        self._pools = {kind: _pool(kind, how) for kind, how in kinds.items()}
        self._lanes: dict[str, list[W]] = {}
        """By key, the work that has not begun. A key whose only work is running has an empty list."""
        self._running: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.waiting = 0
        """How many pieces of work have not begun."""

    @property
    def busy(self) -> bool:
        """Whether any work waits or runs."""
        return bool(self._lanes)

    def put(self, key: str, work: W) -> None:
        """Run this after all other work on the key. Returns at once."""
        self.waiting += 1
        lane = self._lanes.get(key)
        if lane is not None:
            lane.append(work)
            return
        self._idle.clear()
        self._lanes[key] = [work]
        self._line_up(key, work.kind)

    def of(self, key: str) -> tuple[W, ...]:
        """The work on a key that has not begun, in order."""
        lane = self._lanes.get(key)
        return tuple(lane) if lane else ()

    def drop(self, key: str, work: W) -> None:
        """Do not run this after all. It must be one of `of(key)`."""
        lane = self._lanes[key]
        lane.remove(work)
        self.waiting -= 1
        if key not in self._running:
            self._continue(key, lane)

    def drop_all(self) -> list[W]:
        """Drop and return all work that has not begun."""
        dropped = [work for lane in self._lanes.values() for work in lane]
        for lane in self._lanes.values():
            lane.clear()
        self._lanes = {key: lane for key, lane in self._lanes.items() if key in self._running}
        self.waiting = 0
        if not self._lanes:
            self._idle.set()
        return dropped

    async def idle(self, timeout_s: float) -> bool:
        """Wait until all work is done; whether it is."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def cancel(self) -> None:
        """Cancel the workers, and with them the work that runs. Returns when they have ended."""
        workers = [worker for pool in self._pools.values() for worker in pool.workers]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _line_up(self, key: str, kind: str) -> None:
        """Have a worker take the key: one that rests, or a new one within the limit, or the first that is done."""
        pool = self._pools[kind]
        pool.ready.append(key)
        while pool.resting:
            rest = pool.resting.pop()
            if not rest.done():  # its worker has not been cancelled
                rest.set_result(None)
                return
        if len(pool.workers) < pool.limit:
            worker = asyncio.get_running_loop().create_task(self._serve(pool))
            pool.workers.add(worker)
            worker.add_done_callback(pool.workers.discard)

    def _continue(self, key: str, lane: list[W]) -> None:
        if lane:
            self._line_up(key, lane[0].kind)
            return
        self._lanes.pop(key, None)
        if not self._lanes:
            self._idle.set()

    async def _serve(self, pool: _Pool) -> None:
        """A worker. Work that raises is a fault of ours: log it and go on."""
        while True:
            while taken := self._take(pool):
                try:
                    await pool.run([work for _, _, work in taken])
                except Exception as error:  # noqa: BLE001 - whatever it is, the other work goes on
                    _log.error("Work failed", kind=pool.kind, key=taken[0][0], err=describe_error(error))
                finally:
                    for key, lane, _ in taken:
                        self._running.discard(key)
                        self._continue(key, lane)
            rest: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            pool.resting.append(rest)
            await rest

    def _take(self, pool: _Pool) -> list[tuple[str, list[W], W]]:
        """Begin the next pieces of work of a kind."""
        ready, taken = pool.ready, list[tuple[str, list[W], W]]()
        while ready and len(taken) < pool.most:
            key = ready.popleft()
            lane = self._lanes.get(key)
            if not lane or key in self._running or lane[0].kind != pool.kind:
                continue  # the work was dropped, or the key is in line twice
            taken.append((key, lane, lane.pop(0)))
            self.waiting -= 1
            self._running.add(key)
        return taken


class _Pool:
    """The workers for one kind of work."""

    __slots__ = ("kind", "limit", "most", "ready", "resting", "run", "workers")

    def __init__(self, kind: str, limit: int, most: int, run: Handler) -> None:
        """`limit`: how many workers; `most`: how many pieces of work each does at a time."""
        self.kind = kind
        self.limit = limit
        self.most = most
        self.run = run
        self.ready: deque[str] = deque()
        """Keys whose next work is of this kind. It may have been dropped since, so a worker looks again."""
        self.workers: set[asyncio.Task[None]] = set()
        self.resting: list[asyncio.Future[None]] = []


def _pool(kind: str, how: tuple[int, Handler] | Together) -> _Pool:
    if isinstance(how, Together):
        return _Pool(kind, max(1, how.limit // how.most), how.most, how.handler)
    limit, handler = how
    return _Pool(kind, limit, 1, lambda works: handler(works[0]))
