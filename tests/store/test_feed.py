"""A live watch: the log first, then what is published, every batch once and in order."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest

from situate.store import feed as feed_module
from situate.store.entries import Batch, Entry, Event, Revision
from situate.store.errors import ClosedError, FailedError
from situate.store.feed import Feed, FeedWatch


def batch(revision: int, *keys: str) -> Batch:
    at = Revision(revision)
    return Batch(at, tuple(Event(key, Entry(key, b"", at, at), None) for key in keys))


class Log:
    """What was published; read in parts of two batches. `asked` are the spans that watches have read."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.asked: list[tuple[int, int]] = []
        self.feed = Feed(Revision(1), self.history)

    def publish(self, *batches: Batch) -> None:
        for one in batches:
            self.batches.append(one)
            self.feed.publish(one)

    async def history(self, prefix: str, after: Revision, until: Revision) -> tuple[list[Batch], Revision]:
        self.asked.append((after, until))
        found = [one for one in self.batches if after < one.revision <= until]
        own = [Batch(one.revision, tuple(e for e in one.events if e.key.startswith(prefix))) for one in found]
        some = [one for one in own if one.events][:2]
        return some, some[-1].revision if len(some) == 2 else until


def run(story: Callable[[Log], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(10):
            await story(Log())

    asyncio.run(told())


async def turn() -> None:
    """Everybody who can go on does so."""
    for _ in range(5):
        await asyncio.sleep(0)


async def told(watch: FeedWatch, count: int) -> list[tuple[int, list[str]]]:
    batches = [await anext(watch) for _ in range(count)]
    return [(one.revision, [event.key for event in one.events]) for one in batches]


def test_each_watch_gets_the_events_of_its_prefix_and_who_shares_it_gets_the_same() -> None:
    async def story(log: Log) -> None:
        first, second, whole = (log.feed.watch(prefix, Revision(1)) for prefix in ("/a/", "/a/", "/"))
        waiting = [asyncio.create_task(told(watch, 2)) for watch in (first, second, whole)]
        await turn()
        log.publish(batch(2, "/a/1", "/b/1"), batch(3, "/b/2"), batch(4, "/a/2"))
        own = [(2, ["/a/1"]), (4, ["/a/2"])]
        assert await asyncio.gather(*waiting) == [own, own, [(2, ["/a/1", "/b/1"]), (3, ["/b/2"])]]
        assert log.asked == [], "nobody was behind"
        first.close()
        log.publish(batch(5, "/a/3"))
        assert await told(second, 1) == [(5, ["/a/3"])]
        with pytest.raises(ClosedError):
            await anext(first)

    run(story)


def test_a_watch_reads_the_log_in_parts_and_what_comes_meanwhile_once() -> None:
    async def story(log: Log) -> None:
        log.publish(*(batch(revision, "/a") for revision in range(2, 7)))
        watch = log.feed.watch("/", Revision(2))
        assert await told(watch, 1) == [(3, ["/a"])]
        log.publish(batch(7, "/b"))  # while it reads the log, which has it, too
        assert await told(watch, 4) == [(4, ["/a"]), (5, ["/a"]), (6, ["/a"]), (7, ["/b"])]
        assert log.asked == [(2, 6), (4, 6)], "up to where it began to listen, and no further"

    run(story)


def test_a_watch_from_the_future_is_told_nothing_older() -> None:
    async def story(log: Log) -> None:
        watch = log.feed.watch("/", Revision(3))
        waiting = asyncio.create_task(told(watch, 1))
        await turn()
        log.publish(batch(2, "/a"), batch(3, "/b"), batch(4, "/c"))
        assert await waiting == [(4, ["/c"])]

    run(story)


@pytest.mark.parametrize("count, reads", [(3, False), (4, True)])
def test_a_watch_that_nobody_reads_keeps_so_many_batches_and_then_reads_the_log(
    monkeypatch: pytest.MonkeyPatch, count: int, reads: bool
) -> None:
    monkeypatch.setattr(feed_module, "BACKLOG", 3)

    async def story(log: Log) -> None:
        watch = log.feed.watch("/", Revision(1))
        waiting = asyncio.create_task(told(watch, 1))
        await turn()
        log.publish(batch(2, "/a"))
        await waiting
        expected = [(revision, ["/a"]) for revision in range(3, 3 + count)]
        log.publish(*(batch(revision, "/a") for revision, _ in expected))
        assert await told(watch, count) == expected
        assert bool(log.asked) == reads
        log.publish(batch(20, "/a"))
        assert await told(watch, 1) == [(20, ["/a"])], "it is live again"

    run(story)


@pytest.mark.parametrize("asks", [True, False])
def test_a_bookmark_that_was_queued_is_not_lost_with_the_queue(monkeypatch: pytest.MonkeyPatch, asks: bool) -> None:
    monkeypatch.setattr(feed_module, "BACKLOG", 2)

    async def story(log: Log) -> None:
        watch = log.feed.watch("/", Revision(1))
        waiting = asyncio.create_task(told(watch, 1))
        await turn()
        log.publish(batch(2, "/a"))
        await waiting
        if asks:
            await watch.ask_progress()
        log.publish(batch(3, "/a"), batch(4, "/a"), batch(5, "/a"))
        assert await told(watch, 3) == [(3, ["/a"]), (4, ["/a"]), (5, ["/a"])]
        log.publish(batch(6, "/a"))
        assert await told(watch, 1) == [(5, []) if asks else (6, ["/a"])]
        if asks:
            assert await told(watch, 1) == [(6, ["/a"])], "it comes once"

    run(story)


def test_a_bookmark_wakes_a_watch_that_waits_and_one_that_has_not_begun_gets_it_after_the_log() -> None:
    async def story(log: Log) -> None:
        watch, new = log.feed.watch("/", Revision(1)), log.feed.watch("/", Revision(1))
        waiting = asyncio.create_task(told(watch, 1))
        await turn()
        await watch.ask_progress()
        assert await waiting == [(1, [])]
        await new.ask_progress()
        log.publish(batch(2, "/a"))
        assert await told(new, 2) == [(2, ["/a"]), (2, [])]
        log.publish(batch(3, "/a"))
        assert await told(new, 1) == [(3, ["/a"])]

    run(story)


def test_closing_ends_a_watch_that_waits() -> None:
    async def story(log: Log) -> None:
        watch = log.feed.watch("/", Revision(1))
        waiting = asyncio.create_task(anext(watch))
        await turn()
        await watch.aclose()
        with pytest.raises(ClosedError):
            await waiting
        watch.close()

    run(story)


def test_a_watch_that_is_closed_while_it_reads_the_log_says_no_more() -> None:
    async def story(log: Log) -> None:
        log.publish(*(batch(revision, "/a") for revision in range(2, 7)))
        watch = log.feed.watch("/", Revision(1))
        await anext(watch)
        await watch.aclose()
        with pytest.raises(ClosedError):
            await anext(watch)

    run(story)


def test_a_watch_that_was_closed_is_kept_by_nobody() -> None:
    class Prefix(str):
        """A text that can be referred to weakly."""

    async def story(log: Log) -> None:
        prefix = Prefix("/a/")
        watch, other = log.feed.watch(prefix, Revision(1)), log.feed.watch("/a/", Revision(1))
        for one in (watch, other):
            await one.ask_progress()
            await anext(one)
        kept = (weakref.ref(watch), weakref.ref(prefix))
        await other.aclose()
        await other.aclose()
        log.publish(batch(2, "/a/1"))
        assert await told(watch, 1) == [(2, ["/a/1"])], "the other one is still there"
        await watch.aclose()
        del watch, prefix, one
        gc.collect()
        assert [reference() for reference in kept] == [None, None]

    run(story)


def test_the_first_reason_ends_all_watches_and_every_later_one() -> None:
    async def story(log: Log) -> None:
        watches = [log.feed.watch(prefix, Revision(1)) for prefix in ("/a", "/b", "/b")]
        waiting = [asyncio.create_task(anext(watch)) for watch in watches]
        await turn()
        log.feed.end(FailedError("the disk failed"))
        log.feed.end(ClosedError())
        for one in waiting:
            with pytest.raises(FailedError):
                await one
        with pytest.raises(FailedError):
            await anext(log.feed.watch("/", Revision(1)))

    run(story)
