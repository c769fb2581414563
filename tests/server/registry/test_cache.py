"""The cache follows the store; what if it cannot."""

import asyncio
from collections.abc import Iterable, Mapping

import pytest

from server.registry.stories import ANN, CONFIG_MAP, World, config_map, no, ready, tell
from situate.server.registry import cache as cache_module
from situate.server.registry.cache import Cache
from situate.server.registry.resource_cache import ResourceCache
from situate.server.registry.selectable_fields import uid_only
from situate.server.requests import Target
from situate.store.entries import Batch, Page, Revision
from situate.store.errors import (
    CompactedError,
    FailedError,
    InvalidRequestError,
    OutcomeUnknownError,
    StoreError,
    StoreFullError,
    UnavailableError,
)
from situate.store.feed import FeedWatch
from situate.store.memory import MemoryStore
from situate.store.transactions import Guard, Outcome, Put, Write


class ForgetfulWatch:
    """A watch of a store that has compacted what comes next, once it is told to."""

    def __init__(self, inner: FeedWatch, store: "ForgetfulStore") -> None:
        self._inner, self._store = inner, store

    def __aiter__(self) -> "ForgetfulWatch":
        return self

    async def __anext__(self) -> Batch:
        batch = await anext(self._inner)
        if self._store.forgets:
            self._store.forgets = False
            raise CompactedError(Revision(1), batch.revision)
        return batch

    async def ask_progress(self) -> None:
        await self._inner.ask_progress()

    async def aclose(self) -> None:
        await self._inner.aclose()


class ForgetfulStore(MemoryStore):
    forgets = False
    scanning: asyncio.Event | None = None
    """Set when a scan has begun; it goes on when `go_on` is."""
    go_on: asyncio.Event

    async def scan(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        if self.scanning is not None:
            self.scanning.set()
            await self.go_on.wait()
        return await super().scan(prefix, at=at, after=after, limit=limit)

    def watch(self, prefix: str, after: Revision) -> ForgetfulWatch:  # type: ignore[override]
        return ForgetfulWatch(super().watch(prefix, after), self)


class HastyStore(MemoryStore):
    """Compacts while it is read, some times."""

    def __init__(self, hasty: int) -> None:
        super().__init__()
        self._hasty = hasty

    async def scan(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        if after and self._hasty:
            self._hasty -= 1
            await self.commit([], [Put("/not/an/object", str(self._hasty).encode())])
            await self.compact(await self.revision())
        return await super().scan(prefix, at=at, after=after, limit=limit)


class BrokenStore(MemoryStore):
    """Commits fail as they are told to."""

    trouble: StoreError | None = None

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        if self.trouble is not None:
            raise self.trouble
        return await super().commit(guards, writes)

    def fail(self, error: StoreError) -> None:
        self._feed.end(error)


class OutageStore(ForgetfulStore):
    """Does not answer a scan, some times."""

    outages = 0

    async def scan(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        if self.outages:
            self.outages -= 1
            raise UnavailableError("nobody there")
        return await super().scan(prefix, at=at, after=after, limit=limit)


def test_a_store_that_does_not_answer_is_the_caches_problem_from_the_first_moment() -> None:
    class Away(MemoryStore):
        @property
        def problem(self) -> str:
            return "etcd: nobody there"

    assert Cache(MemoryStore()).problem == ""
    assert Cache(Away()).problem == "etcd: nobody there"


def test_a_cache_that_fell_behind_a_compaction_loads_again_however_long_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache_module, "LOAD_AGAIN_S", 0.01)

    async def story() -> None:
        store = OutageStore()
        cache = Cache(store)
        await cache.start()
        store.forgets, store.outages = True, 3 * cache_module.MAX_LOADS
        key = "/objects/core/configmaps/default/a"
        await store.commit([], [Put(key, b'{"metadata":{"name":"a","namespace":"default","uid":"u"}}')])
        async with asyncio.timeout(5):
            while cache.get(CONFIG_MAP, "default", "a") is None:
                assert not cache.problem
                await asyncio.sleep(0.01)
        await cache.wait_until_fresh()
        await cache.aclose()

    asyncio.run(story())


@pytest.mark.parametrize("page", [1, 2, 2_000])
def test_everything_is_loaded_page_by_page_at_one_revision(page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "LOAD_PAGE", page)

    async def story(world: World) -> None:
        for name in "cab":
            await world.create(config_map(name))
        await world.store.commit([], [Put("/objects/of.another/kind/x", b"{}"), Put("/not/an/object", b"")])
        other = Cache(world.store)
        await other.start()
        assert [held.name for held in other.all(CONFIG_MAP)] == ["a", "b", "c"]
        assert (other.count(CONFIG_MAP), other.count(CONFIG_MAP, "other")) == (3, 0)
        assert other.revision == await world.store.revision()
        await world.create(config_map("d"))
        await other.wait_until_fresh()
        assert other.get(CONFIG_MAP, "default", "d") is not None
        await other.aclose()

    tell(story)


@pytest.mark.parametrize("hasty", [1, 4, 5])
def test_loading_begins_again_when_it_was_too_slow_but_not_for_ever(
    hasty: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "LOAD_PAGE", 1)

    async def story() -> None:
        store = HastyStore(hasty)
        value = '{{"metadata":{{"name":"{name}","namespace":"default","uid":"u"}}}}'
        writes = [Put(f"/objects/core/configmaps/default/{name}", value.format(name=name).encode()) for name in "abc"]
        await store.commit([], writes)
        cache = Cache(store)
        if hasty < cache_module.MAX_LOADS:
            await cache.start()
            assert [held.name for held in cache.all(CONFIG_MAP)] == ["a", "b", "c"]
        else:
            with pytest.raises(CompactedError):
                await cache.start()
        await cache.aclose()

    asyncio.run(story())


def test_when_history_is_lost_all_is_loaded_again_and_watches_begin_anew() -> None:
    store = ForgetfulStore()

    async def story(world: World) -> None:
        await world.create(config_map("a"))
        seen = str(await world.store.revision())
        watching = await world.watch(CONFIG_MAP)
        store.forgets = True
        await world.create(config_map("b"))
        events = [event async for event in watching]
        assert [event.type for event in events] == ["ADDED", "ERROR"]
        assert events[-1].status is not None
        assert (events[-1].status["code"], events[-1].status["reason"]) == (410, "Expired")
        assert await world.names(CONFIG_MAP) == ["a", "b"]
        assert (await no(world.watch(CONFIG_MAP, resource_version=seen)))[0] == 410
        again = await world.watch(CONFIG_MAP)
        await world.create(config_map("c"))
        assert ready(again) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]

    tell(story, store=store)


def test_a_watch_that_is_opened_while_all_is_loaded_again_is_told_too() -> None:
    store = ForgetfulStore()

    async def story(world: World) -> None:
        await world.create(config_map("a"))
        store.forgets, store.scanning, store.go_on = True, asyncio.Event(), asyncio.Event()
        writing = asyncio.create_task(world.create(config_map("b")))
        await store.scanning.wait()
        watching = await world.watch(CONFIG_MAP, resource_version="0")
        store.go_on.set()
        await writing
        assert [event.type async for event in watching] == ["ADDED", "ERROR"]

    tell(story, store=store)


def test_when_the_store_fails_nobody_waits_in_vain() -> None:
    store = BrokenStore()

    async def story(world: World) -> None:
        watching = await world.watch(CONFIG_MAP)
        waiting = asyncio.create_task(world.cache.wait_for(999))
        await asyncio.sleep(0)
        store.fail(FailedError("fsync failed"))
        [event] = [event async for event in watching]
        assert event.type == "ERROR"
        refusal = (
            500,
            "InternalError",
            "the store has failed; restart the server: fsync failed",
        )
        assert await no(waiting) == refusal
        assert await no(world.get(CONFIG_MAP, "a")) == refusal
        assert await no(world.create(config_map("a"))) == refusal
        assert await no(world.names(CONFIG_MAP)) == refusal
        assert await no(world.names(CONFIG_MAP, resource_version="0")) == refusal

    tell(story, store=store)


@pytest.mark.parametrize(
    "trouble, code, reason",
    [
        (StoreFullError("disk full"), 507, "InsufficientStorage"),
        (OutcomeUnknownError("no answer"), 504, "Timeout"),
        (UnavailableError("no answer"), 503, "ServiceUnavailable"),
        (FailedError("fsync failed"), 500, "InternalError"),
        (InvalidRequestError("2,000,000 bytes"), 413, "RequestEntityTooLarge"),
    ],
)
def test_a_write_that_the_store_does_not_take_is_refused_in_plain_words(
    trouble: StoreError, code: int, reason: str
) -> None:
    store = BrokenStore()

    async def story(world: World) -> None:
        await world.create(config_map("a"))
        store.trouble = trouble
        for asked in (
            world.create(config_map("b")),
            world.update(config_map("a", data={"k": "2"})),
            world.registry.delete(Target(CONFIG_MAP, "default", "a"), ANN),
        ):
            found = await no(asked)
            assert found[:2] == (code, reason)
            assert str(trouble) in found[2]
        assert await world.names(CONFIG_MAP) == ["a"]
        store.trouble = None
        await world.create(config_map("b"))

    tell(story, store=store)


def test_an_object_that_is_too_large_for_the_store_is_refused() -> None:
    async def story(world: World) -> None:
        code, reason, _ = await no(world.create(config_map("a", data={"k": "v" * 1_600_000})))
        assert code in (413, 422), reason
        assert await world.names(CONFIG_MAP) == []

    tell(story)


def test_who_waits_for_a_revision_is_woken_in_its_order() -> None:
    async def story(world: World) -> None:
        first = world.cache.revision
        waiting = [asyncio.create_task(world.cache.wait_for(first + ahead)) for ahead in (2, 1, 3)]
        await world.create(config_map("a"))
        await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [False, True, False]
        await world.create(config_map("b"))
        await world.create(config_map("c"))
        await asyncio.gather(*waiting)
        with pytest.raises(TimeoutError):
            await world.cache.catch_up(first + 9, within_s=0.001)
        assert world.cache._waiters == []

    tell(story)


def test_a_revision_at_which_no_object_was_written_is_reached_too() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        await world.store.commit([], [Put("/not/an/object", b"")])
        newest = str(await world.store.revision())
        assert world.cache.revision < int(newest)
        assert await world.names(CONFIG_MAP, resource_version=newest) == ["a"]
        assert world.cache.revision == int(newest)


A = "/objects/core/configmaps/default/a"
B = "/objects/core/configmaps/default/b"
VALUE = b'{"metadata":{"name":"a","uid":"read","labels":{"k":"v"}}}'


def seen(world: World, name: str) -> tuple[str, Mapping[str, str]]:
    held = world.cache.get(CONFIG_MAP, "default", name)
    assert held is not None
    return held.uid, held.labels


async def put(world: World, key: str, value: bytes) -> None:
    await world.store.commit([], [Put(key, value)])
    await world.cache.wait_until_fresh()


def test_an_expected_value_is_taken_as_told_and_any_other_is_read() -> None:
    async def story(world: World) -> None:
        world.cache.expect(A, VALUE, uid_only("told"))
        world.cache.expect(B, VALUE[:-1] + b',"data":{}}', uid_only("told"))
        for key in (A, B):
            await put(world, key, VALUE)
        assert (seen(world, "a"), seen(world, "b")) == (("told", {}), ("read", {"k": "v"}))
        await put(world, A, VALUE)
        assert seen(world, "a") == ("read", {"k": "v"}), "it was expected once"

    tell(story)


def test_no_more_is_expected_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "MAX_EXPECTED", 1)

    async def story(world: World) -> None:
        for key in (A, B):
            world.cache.expect(key, VALUE, uid_only("told"))
        for key in (A, B):
            await put(world, key, VALUE)
        assert (seen(world, "a")[0], seen(world, "b")[0]) == ("read", "told")

    tell(story)


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(ResourceCache, "apply", fails)


def test_an_event_that_cannot_be_applied_is_found_by_loading_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch)

    async def story(world: World) -> None:
        watching = await world.watch(CONFIG_MAP)
        await world.store.commit([], [Put(A, VALUE.replace(b'"uid"', b'"namespace":"default","uid"'))])
        [event] = [event async for event in watching]
        assert (event.type, (event.status or {})["code"]) == ("ERROR", 410)
        assert await world.names(CONFIG_MAP) == ["a"]
        assert world.cache.problem == ""

    tell(story)


def test_a_cache_that_can_never_apply_an_event_stops_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch)
    monkeypatch.setattr(cache_module, "MAX_FAULTS", 0)

    async def story(world: World) -> None:
        watching = await world.watch(CONFIG_MAP)
        await world.store.commit([], [Put(A, VALUE)])
        [event] = [event async for event in watching]
        assert event.type == "ERROR"
        code, reason, message = await no(world.names(CONFIG_MAP, resource_version="0"))
        assert (code, reason) == (500, "InternalError")
        assert "could not apply an event" in message

    tell(story)
