"""The stores that the stories of this folder are told on."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from server.placing.world import WITHIN_S, World, opened
from situate.server.views.views import Views
from situate.store.contract import Store
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore
from situate.store.memory import MemoryStore
from situate.store.sqlite.store import SqliteStore
from store.etcd_server import Etcd, missing

Work = Callable[[World, Views], Awaitable[None]]
_prefixes = count()


@pytest.fixture(scope="session")
def etcd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    if absent := missing():
        pytest.skip(absent)
    with Etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


async def store_of(request: pytest.FixtureRequest, folder: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    if request.param == "sqlite":
        return await SqliteStore.open(folder / "store.db")
    server: Etcd = request.getfixturevalue("etcd_server")
    return await EtcdStore.open(EtcdSettings(endpoints=tuple(server.endpoints), prefix=f"/views{next(_prefixes)}"))


@pytest.fixture(params=["memory", "sqlite", "etcd"])
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Work], None]:
    """Has something happen on a store of that kind, with views of it."""

    def told(work: Work) -> None:
        async def run() -> None:
            store = await store_of(request, tmp_path)
            try:
                async with asyncio.timeout(WITHIN_S), opened(store) as world:
                    views = Views(store, world.registry.cache)
                    await work(world, views)
                    await views.aclose()
            finally:
                await store.aclose()

        asyncio.run(run())

    return told
