"""The stores that the stories of this folder are told on."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from server.placing.world import WITHIN_S, World, opened
from situate.store.memory import MemoryStore
from situate.store.sqlite.store import SqliteStore

Tell = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture(params=["memory", "sqlite"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Has a story happen on a store of that kind."""

    def told(story: Callable[[World], Awaitable[None]]) -> None:
        async def run() -> None:
            store = MemoryStore() if request.param == "memory" else await SqliteStore.open(tmp_path / "store.db")
            try:
                async with asyncio.timeout(WITHIN_S), opened(store) as world:
                    await story(world)
            finally:
                await store.aclose()

        asyncio.run(run())

    return told
