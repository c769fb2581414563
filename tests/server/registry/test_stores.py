"""The same promises on each kind of store: what is answered is there, for all who read and all who watch."""

import asyncio
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from server.registry.stories import ANN, CONFIG_MAP, config_map, no
from situate.server.errors import StatusError
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import ListOptions, Object, Target, WatchOptions
from situate.store.contract import Store
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore
from situate.store.memory import MemoryStore
from situate.store.sqlite.store import SqliteStore
from store.etcd_server import Etcd, missing

WITHIN_S = 60.0
SPACE = Target(CONFIG_MAP, "default")
A = Target(CONFIG_MAP, "default", "a")
WRITERS = 8


@pytest.fixture(scope="module")
def etcd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    if (absent := missing()) is not None:
        pytest.skip(absent)
    with Etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


class Stores:
    """Opens the same store, as often as it is asked to: etcd is shared, the others are one."""

    def __init__(self, kind: str, path: Path, settings: EtcdSettings | None) -> None:
        self.kind, self._path, self._settings = kind, path, settings
        self._shared: Store | None = None

    async def open(self, stack: AsyncExitStack) -> Store:
        if self._settings is not None:
            store: Store = await EtcdStore.open(self._settings)
        elif self._shared is not None:
            return self._shared
        else:
            store = MemoryStore() if self.kind == "memory" else await SqliteStore.open(self._path)
            self._shared = store
        stack.push_async_callback(store.aclose)
        return store


@pytest.fixture(params=["memory", "sqlite", "etcd"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    settings = None
    if request.param == "etcd":
        server: Etcd = request.getfixturevalue("etcd_server")
        settings = EtcdSettings(endpoints=tuple(server.endpoints), prefix=f"/{secrets.token_hex(6)}")
    return Stores(request.param, tmp_path / "store.db", settings)


@asynccontextmanager
async def servers(stores: Stores, count: int) -> AsyncIterator[list[Registry]]:
    """Several servers on one store."""
    async with asyncio.timeout(WITHIN_S), AsyncExitStack() as stack:
        opened: list[Registry] = []
        for _ in range(count):
            store = await stores.open(stack)
            registry = Registry(store, wall_ns=time.time_ns, new_uid=lambda: str(uuid.uuid4()))
            await registry.start()
            stack.push_async_callback(registry.aclose)
            opened.append(registry)
        yield opened


def one_more(obj: Object, _: StoredObject) -> Object:
    obj["data"]["n"] = str(int(obj["data"]["n"]) + 1)
    return obj


def test_what_one_server_answered_another_reads(stores: Stores) -> None:
    async def story() -> None:
        async with servers(stores, 2) as (first, second):
            for number in range(5):
                made = await first.create(SPACE, config_map(f"m-{number}"), ANN)
                listing = await second.list(SPACE)
                assert [held.name for held in listing.items] == [f"m-{each}" for each in range(number + 1)]
                assert listing.revision >= made.revision
                found = await second.get(Target(CONFIG_MAP, "default", made.name))
                assert (found.value, found.revision, found.uid) == (made.value, made.revision, made.uid)

    asyncio.run(story())


def test_of_all_who_count_at_once_nobody_is_lost(stores: Stores) -> None:
    async def story() -> None:
        async with servers(stores, 2) as both:
            await both[0].create(SPACE, config_map("a", data={"n": "0"}), ANN)

            async def counting(registry: Registry) -> int:
                """Whoever loses too often is told so, and asks again."""
                done = 0
                while done < 5:
                    try:
                        await registry.modify(A, one_more, ANN)
                    except StatusError as error:
                        if error.code != HTTPStatus.CONFLICT:
                            raise
                    else:
                        done += 1
                return done

            total = sum(await asyncio.gather(*[counting(both[each % 2]) for each in range(WRITERS)]))
            for registry in both:
                assert (await registry.get(A)).object(CONFIG_MAP)["data"]["n"] == str(total)

    asyncio.run(story())


def test_every_server_tells_its_watches_the_same_story(stores: Stores) -> None:
    async def story() -> None:
        async with servers(stores, 2) as both:
            watches = [await each.watch(SPACE, WatchOptions()) for each in both]
            for number in range(10):
                await both[number % 2].create(SPACE, config_map(f"m-{number % 3}-{number}"), ANN)
                if number % 3 == 2:
                    await both[0].delete(Target(CONFIG_MAP, "default", f"m-{number % 3}-{number}"), ANN)
            told = []
            for watching in watches:
                events = [await anext(watching) for _ in range(13)]
                told.append([(event.type, event.revision, event.stored and event.stored.name) for event in events])
            assert told[0] == told[1]
            assert [revision for _, revision, _ in told[0]] == sorted(revision for _, revision, _ in told[0])

    asyncio.run(story())


def test_pages_are_of_one_moment_and_an_old_version_is_refused(stores: Stores) -> None:
    async def story() -> None:
        async with servers(stores, 1) as (registry,):
            for name in "abcd":
                await registry.create(SPACE, config_map(name), ANN)
            first = await registry.list(SPACE, ListOptions(limit=2))
            before = first.items[0].object(CONFIG_MAP)
            await registry.update(A, {**before, "data": {"k": "2"}}, ANN)
            await registry.delete(Target(CONFIG_MAP, "default", "d"), ANN)
            rest = await registry.list(SPACE, ListOptions(limit=2, continue_from=first.continue_to))
            assert [held.name for held in rest.items] == ["c", "d"]
            assert (await no(registry.update(A, {**before, "data": {"k": "3"}}, ANN)))[:2] == (409, "Conflict")
            assert (await no(registry.create(SPACE, config_map("a"), ANN)))[:2] == (409, "AlreadyExists")

    asyncio.run(story())


def test_a_server_that_starts_again_has_everything(stores: Stores) -> None:
    if stores.kind == "memory":
        return

    async def write() -> int:
        async with servers(stores, 1) as (registry,):
            for name in "abc":
                await registry.create(SPACE, config_map(name), ANN)
            return registry.cache.revision

    async def read(revision: int) -> None:
        async with servers(stores, 1) as (registry,):
            listing = await registry.list(SPACE)
            assert [held.name for held in listing.items] == ["a", "b", "c"]
            assert listing.revision >= revision

    revision = asyncio.run(write())
    stores._shared = None
    asyncio.run(read(revision))
