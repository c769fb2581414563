"""The scheduler as a part of a server: what ends it for a while does not end the part."""

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest

from server.placing.world import World, opened
from server.scheduling.stories import until
from server.scheduling.test_scheduler import node_of
from situate.loop.metrics import Metrics
from situate.server.scheduling import scheduler
from situate.server.scheduling.scheduler import SchedulerSettings, run_scheduler
from situate.store.contract import Store
from situate.store.entries import Batch, Revision
from situate.store.errors import CompactedError
from situate.store.memory import MemoryStore


class ForgetfulStore:
    """Its watches end, as those of a reader that was behind a compaction, when `forget` is set."""

    def __init__(self, inner: MemoryStore) -> None:
        self._inner = inner
        self.forget = asyncio.Event()
        self.watches = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def watch(self, prefix: str, after: Revision) -> "ForgetfulWatch":
        self.watches += 1
        return ForgetfulWatch(self, self._inner.watch(prefix, after))


class ForgetfulWatch:
    def __init__(self, store: ForgetfulStore, inner: Any) -> None:
        self._store, self._inner = store, inner

    def __aiter__(self) -> "ForgetfulWatch":
        return self

    async def __anext__(self) -> Batch:
        batch: Batch = await anext(self._inner)
        if self._store.forget.is_set():
            self._store.forget.clear()
            raise CompactedError(batch.revision, batch.revision)
        return batch

    async def aclose(self) -> None:
        await self._inner.aclose()


async def bound(world: World, name: str) -> None:
    await world.pod(name, cpu="10m")
    await until(lambda: bool(node_of(world, name)))


def test_a_scheduler_behind_a_compaction_begins_anew_and_its_part_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduler, "LIST_AGAIN_S", 0.01)

    async def story() -> None:
        shared = MemoryStore()
        store = ForgetfulStore(shared)
        async with asyncio.timeout(20), opened(shared) as world:
            await world.node()
            wanted = SchedulerSettings(identity="one")
            running = asyncio.create_task(
                run_scheduler(cast(Store, store), world.registry, world.binder, wanted, Metrics())
            )
            await bound(world, "before")
            store.forget.set()
            await bound(world, "after")
            assert store.watches == 2, "it has listed again"
            assert not running.done()
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    asyncio.run(story())
