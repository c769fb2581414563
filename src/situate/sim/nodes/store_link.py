"""What lies between one server and the store that all servers of a world share.

Commits, reads and watches wait while the store cannot be reached, and give up like a client of etcd. A write that got
no answer may have happened. A watch that was cut off begins again after the last event that it delivered, and finds out
if that history was compacted meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Final, Self, cast

from situate.server.registry.keys import OBJECTS
from situate.store.concurrent import commit_concurrently
from situate.store.contract import Store, Watch
from situate.store.entries import Batch, Revision
from situate.store.errors import ClosedError, OutcomeUnknownError, StoreError, StoreFullError, UnavailableError
from situate.store.memory import MemoryStore
from situate.store.transactions import Committed, Guard, Outcome, Put, Write

GIVE_UP_S: Final = 20.0
"""How long a call waits for the store, by the caller's clock."""
REMEMBERED: Final = 1_000
"""Of how many revisions the time is remembered."""
ARRIVES: Final = 0.5
"""The probability that a write without an answer happened."""


class SharedStore:
    """The store of a world. It survives the servers: an acknowledged write is durable."""

    def __init__(self, slow_s: float = 0.0) -> None:
        """`slow_s`: the longest time that a read, a write and its event take, each."""
        self.store = MemoryStore()
        self.slow_s = slow_s
        self.away = False
        """It answers nobody."""
        self.full = False
        """It refuses everything but deletes."""
        self.newest = Revision(0)
        """The newest revision that wrote an object, and when that was."""
        self.newest_at = 0.0
        self._committed_at: dict[Revision, float] = {}

    def committed_at(self, revision: Revision) -> float:
        """When this was written; 0 if that is long ago."""
        return self._committed_at.get(revision, 0.0)

    def wrote(self, revision: Revision, writes: Sequence[Write], now: float) -> None:
        if self.slow_s:
            self._committed_at[revision] = now
            self._committed_at.pop(Revision(revision - REMEMBERED), None)
        if any(write.key.startswith(OBJECTS) for write in writes):
            self.newest, self.newest_at = revision, now

    async def compact(self) -> None:
        """Drop all history."""
        await self.store.compact(await self.store.revision())


class StoreLink:
    """The store as one process reaches it. A dead process does not reach it any more."""

    def __init__(
        self,
        shared: SharedStore,
        committed: Callable[[Revision, Sequence[Write]], None],
        rng: Random,
        now: Callable[[], float],
    ) -> None:
        """`now` is the true time."""
        self.open = True
        self._now = now
        self._shared = shared
        self._committed = committed
        self._rng = rng
        self._watches: dict[_LinkWatch, None] = {}
        self._reachable = asyncio.Event()
        if not shared.away:
            self._reachable.set()

    # -- faults ------------------------------------------------------------------------------------------------------

    def cut(self) -> None:
        self._reachable.clear()

    def heal(self) -> None:
        """The store answers again, and every watch begins again where it was."""
        self._reachable.set()
        for watch in list(self._watches):
            watch.begin_again()

    @property
    def problem(self) -> str:
        """A client of the store notices at once that it does not answer."""
        return "the store does not answer" if self.is_cut else ""

    @property
    def is_cut(self) -> bool:
        return not self._reachable.is_set()

    async def until_reachable(self) -> None:
        await self._reachable.wait()

    # -- the store ---------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if not self.open:
            raise ClosedError
        found = getattr(self._shared.store, name)
        return self._patiently(found) if asyncio.iscoroutinefunction(found) else found

    def _patiently(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def waiting(*args: Any, **named: Any) -> Any:
            if slow_s := self._shared.slow_s:
                await asyncio.sleep(self._rng.uniform(0, slow_s))
            await self._wait(UnavailableError("the store did not answer in time"))
            return await call(*args, **named)

        return waiting

    async def _wait(self, late: Exception) -> None:
        if self._reachable.is_set():
            return
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await self._reachable.wait()
        except TimeoutError:
            raise late from None
        if not self.open:
            raise ClosedError

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        asked = list(writes)
        if slow_s := self._shared.slow_s:
            await asyncio.sleep(self._rng.uniform(0, slow_s))
        if not self.open:
            raise ClosedError
        if self.is_cut and self._rng.random() < ARRIVES:
            outcome = await self._commit(guards, asked)  # the write arrives, and its answer does not
            await self._wait(OutcomeUnknownError("the store did not answer in time; the write may have happened"))
            return outcome
        await self._wait(UnavailableError("the store did not answer in time; the write did not happen"))
        return await self._commit(guards, asked)

    async def _commit(self, guards: Iterable[Guard], asked: list[Write]) -> Outcome:
        if self._shared.full and any(isinstance(write, Put) for write in asked):
            raise StoreFullError("the store is full")
        outcome = await self._shared.store.commit(guards, asked)
        if isinstance(outcome, Committed):
            self._committed(outcome.revision, asked)
        return outcome

    async def commit_each(
        self, transactions: Sequence[tuple[Iterable[Guard], Iterable[Write]]]
    ) -> Sequence[Outcome | StoreError]:
        return await commit_concurrently(cast(Store, self), transactions)

    def watch(self, prefix: str, after: Revision) -> Watch:
        if not self.open:
            raise ClosedError
        made = _LinkWatch(self, self._shared.store, prefix, after)
        self._watches[made] = None
        return made

    async def travel(self, revision: Revision) -> None:
        """Wait as long as the event of a write takes."""
        if slow_s := self._shared.slow_s:
            arrives = self._shared.committed_at(revision) + self._rng.uniform(0, slow_s)
            await asyncio.sleep(max(0.0, arrives - self._now()))

    def forget(self, watch: _LinkWatch) -> None:
        self._watches.pop(watch, None)

    async def aclose(self) -> None:
        """The store belongs to the world."""


class _LinkWatch:
    def __init__(self, link: StoreLink, store: MemoryStore, prefix: str, after: Revision) -> None:
        self._link = link
        self._store = store
        self._prefix = prefix
        self._delivered = after
        self._inner = store.watch(prefix, after)
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        while True:
            inner = self._inner
            try:
                batch = await inner.__anext__()
                await self._link.travel(batch.revision)
                await self._link.until_reachable()
            except ClosedError:
                if self._closed or inner is self._inner:
                    raise
                continue
            if inner is self._inner:
                self._delivered = max(self._delivered, batch.revision)
                return batch

    def begin_again(self) -> None:
        old, self._inner = self._inner, self._store.watch(self._prefix, self._delivered)
        old.close()

    async def ask_progress(self) -> None:
        await self._inner.ask_progress()

    async def aclose(self) -> None:
        self._closed = True
        self._link.forget(self)
        await self._inner.aclose()
