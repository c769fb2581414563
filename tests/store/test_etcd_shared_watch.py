"""The stream that all watches of a store on etcd share, beside an etcd that says what we tell it to."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from situate.store.entries import Batch, Revision
from situate.store.errors import ClosedError, CompactedError, StoreError, UnavailableError
from situate.store.etcd import shared_watch as shared_module
from situate.store.etcd.protocol import message
from situate.store.etcd.shared_watch import HISTORY_AT_ONCE, SharedWatch
from situate.store.etcd.translation import Keys

_Response = message("WatchResponse")
_Header = message("ResponseHeader")
_Event = message("Event")
_KeyValue = message("KeyValue")
ROOT, HERE = "", "/a/"


class Etcd:
    """A log of revisions, each one key. A stream tells all after its beginning, and then what is put later."""

    def __init__(self) -> None:
        self.log: list[tuple[int, str]] = []
        self.streams: list[Stream] = []
        self.compacted = 0
        self.refuses = ""
        self.away = 0
        self.reads = 0
        self.slow: asyncio.Event | None = None

    @property
    def revision(self) -> int:
        return self.log[-1][0] if self.log else 1

    def put(self, key: str) -> int:
        self.log.append((self.revision + 1, key))
        for stream in self.streams:
            stream.awake.set()
        return self.revision

    def channel(self) -> Any:
        return self

    def next_endpoint(self, _failed: Any) -> None: ...

    async def open_stream(self, _method: Any) -> tuple[Any, Any]:
        self.streams.append(Stream(self))
        return self, self.streams[-1]

    async def ask(self, _method: Any, _request: Any) -> Any:
        return message("RangeResponse")(header=_Header(revision=self.revision))

    async def newest(self) -> Revision:
        if self.away:
            self.away -= 1
            raise UnavailableError("away")
        self.reads += 1
        found = Revision(self.revision)
        if self.slow is not None:
            await self.slow.wait()
        return found


class Stream:
    def __init__(self, etcd: Etcd) -> None:
        self.etcd = etcd
        self.awake = asyncio.Event()
        self.told = 0
        self.prefix = ""
        self.asked = 0
        self.cancelled = False

    async def write(self, request: Any) -> None:
        if request.HasField("create_request"):
            self.told = request.create_request.start_revision - 1
            self.prefix = request.create_request.key.decode()
        else:
            self.asked += 1
        self.awake.set()

    async def read(self) -> Any:
        while True:
            if self.etcd.refuses:
                return _Response(canceled=True, cancel_reason=self.etcd.refuses)
            if self.told < self.etcd.compacted:
                return _Response(canceled=True, compact_revision=self.etcd.compacted)
            for at, key in self.etcd.log:
                if at > self.told and f"/p/{key}".startswith(self.prefix):
                    self.told = at
                    made = _KeyValue(key=f"/p/{key}".encode(), mod_revision=at, create_revision=at)
                    return _Response(header=_Header(revision=at), events=[_Event(kv=made)])
            if self.asked:
                self.asked -= 1
                return _Response(header=_Header(revision=self.etcd.revision))
            self.awake.clear()
            await self.awake.wait()

    def cancel(self) -> None:
        self.cancelled = True


def tell(story: Callable[[Etcd, SharedWatch], Awaitable[None]]) -> None:
    async def told() -> None:
        etcd: Any = Etcd()
        shared = SharedWatch(etcd, Keys("/p"), etcd.newest)
        async with asyncio.timeout(10):
            await story(etcd, shared)
            await shared.end(ClosedError())

    asyncio.run(told())


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_module, "REST_S", 0)
    monkeypatch.setattr(shared_module, "PAUSE_S", 0)
    monkeypatch.setattr("situate.store.etcd.watch.PAUSE_S", 0)
    monkeypatch.setattr("situate.store.etcd.watch.ASK_AGAIN_S", 0)


def keys(batch: Batch) -> list[str]:
    return [event.key for event in batch.events]


async def turn() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_watches_of_what_is_to_come_share_one_stream_and_its_batches() -> None:
    async def story(etcd: Etcd, shared: SharedWatch) -> None:
        start = Revision(etcd.revision)
        all_of_it, also_all, part = (shared.watch(prefix, start) for prefix in (ROOT, ROOT, HERE))
        waiting = [asyncio.create_task(anext(watch)) for watch in (all_of_it, also_all, part)]
        await turn()
        etcd.put("/b/1")
        etcd.put("/a/1")
        one, other, here = [await task for task in waiting]
        assert one is other, "it was decoded once"
        assert (keys(one), keys(here)) == (["/b/1"], ["/a/1"])
        assert len(etcd.streams) == 1

    tell(story)


def test_a_watch_of_the_past_reads_that_on_its_own_and_then_shares() -> None:
    async def story(etcd: Etcd, shared: SharedWatch) -> None:
        before = [etcd.put(f"/a/{number}") for number in range(HISTORY_AT_ONCE + 5)]
        etcd.put("/b/1")
        async with aclosing(shared.watch(HERE, Revision(before[0]))) as watch:
            assert [(await anext(watch)).revision for _ in before[1:]] == before[1:]
            waiting = asyncio.create_task(anext(watch))
            await turn()
            later = etcd.put("/a/later")
            assert (await waiting).revision == later
            assert [stream.prefix for stream in etcd.streams if not stream.cancelled] == ["/p/"]

    tell(story)


def test_a_bookmark_comes_after_everything_older_though_nothing_of_it_is_the_watchs() -> None:
    async def story(etcd: Etcd, shared: SharedWatch) -> None:
        watch = shared.watch(HERE, Revision(etcd.revision))
        waiting = asyncio.create_task(anext(watch))
        await turn()
        elsewhere = etcd.put("/b/1")
        await watch.ask_progress()
        assert await waiting == Batch(Revision(elsewhere))
        here = etcd.put("/a/1")
        await watch.ask_progress()
        assert [(await anext(watch)).revision for _ in range(2)] == [here, here]

    tell(story)


def test_a_revision_without_an_event_of_ours_is_asked_for() -> None:
    """Others write to etcd, too: to our markers, and beside our prefix."""

    async def story(etcd: Etcd, shared: SharedWatch) -> None:
        watch = shared.watch(ROOT, Revision(etcd.revision))
        waiting = asyncio.create_task(anext(watch))
        await turn()
        etcd.log.append((etcd.revision + 1, "../elsewhere"))
        etcd.streams[0].told = etcd.revision
        await watch.ask_progress()
        assert await waiting == Batch(Revision(etcd.revision))

    tell(story)


def test_after_a_compaction_that_the_stream_missed_only_who_needs_the_past_is_told_so() -> None:
    async def story(etcd: Etcd, shared: SharedWatch) -> None:
        start = Revision(etcd.revision)
        behind, ahead = shared.watch(HERE, start), shared.watch(HERE, Revision(start + 10))
        waiting = [asyncio.create_task(anext(watch)) for watch in (behind, ahead)]
        await turn()
        etcd.log += [(start + number, "/a/unseen") for number in range(1, 11)]
        etcd.compacted = start + 10
        for stream in etcd.streams:
            stream.awake.set()
        with pytest.raises(CompactedError):
            await waiting[0]
        later = etcd.put("/a/later")
        assert (await waiting[1]).revision == later

    tell(story)


def test_a_final_error_reaches_every_reader_and_whoever_reads_again_goes_on() -> None:
    async def story(etcd: Etcd, shared: SharedWatch) -> None:
        watches = [shared.watch(prefix, Revision(etcd.revision)) for prefix in (ROOT, HERE)]
        waiting = [asyncio.create_task(anext(watch)) for watch in watches]
        await turn()
        etcd.refuses = "permission denied"
        etcd.streams[0].awake.set()
        for task in waiting:
            with pytest.raises(StoreError, match="permission denied"):
                await task
        etcd.refuses = ""
        missed = etcd.put("/a/1")
        for watch in watches:
            while True:
                try:
                    batch = await anext(watch)
                    break
                except StoreError:
                    continue
            assert batch.revision == missed

    tell(story)


def test_a_watch_waits_while_etcd_is_away_and_ends_with_the_store() -> None:
    async def story(etcd: Etcd, shared: SharedWatch) -> None:
        etcd.away = 5
        watch = shared.watch(HERE, Revision(etcd.revision))
        waiting = asyncio.create_task(anext(watch))
        await turn()
        etcd.put("/a/1")
        assert keys(await waiting) == ["/a/1"]
        waiting = asyncio.create_task(anext(watch))
        await turn()
        await shared.end(ClosedError())
        with pytest.raises(ClosedError):
            await waiting
        with pytest.raises(ClosedError):
            await anext(shared.watch(HERE, Revision(1)))

    tell(story)


def test_who_asks_while_a_read_is_on_its_way_shares_the_next_one() -> None:
    async def story(etcd: Etcd, shared: SharedWatch) -> None:
        watches = [shared.watch(HERE, Revision(etcd.revision)) for _ in range(6)]
        waiting = [asyncio.create_task(anext(watch)) for watch in watches]
        await turn()
        etcd.reads, etcd.slow = 0, asyncio.Event()
        first = asyncio.create_task(watches[0].ask_progress())
        await turn()
        newest = etcd.put("/b/1")
        others = [asyncio.create_task(watch.ask_progress()) for watch in watches[1:]]
        others[0].cancel()
        await turn()
        assert etcd.reads == 1
        etcd.slow.set()
        await first
        await asyncio.gather(*others[1:])
        assert etcd.reads == 2
        for task in waiting[2:]:
            assert await task == Batch(Revision(newest)), "that was written before they asked"

    tell(story)


def test_a_read_that_fails_fails_for_all_who_share_it_and_the_next_is_another() -> None:
    async def story(etcd: Etcd, shared: SharedWatch) -> None:
        watch = shared.watch(HERE, Revision(etcd.revision))
        waiting = asyncio.create_task(anext(watch))
        await turn()
        etcd.away = 1
        for outcome in await asyncio.gather(*(watch.ask_progress() for _ in range(3)), return_exceptions=True):
            assert isinstance(outcome, UnavailableError)
        await watch.ask_progress()
        assert await waiting == Batch(Revision(etcd.revision))

    tell(story)
