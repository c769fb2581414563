"""What every store promises to those who watch, and of leases."""

import asyncio
from contextlib import aclosing

import pytest

from situate.store import feed
from situate.store.contract import Store
from situate.store.entries import LeaseId, Revision
from situate.store.errors import (
    ClosedError,
    InvalidRequestError,
    LeaseNotFoundError,
)
from situate.store.transactions import (
    Delete,
    Put,
    Write,
)
from store.single import create, delete, get, update
from store.stories import Follower, Opener, follow, revision_of, tell

ANY_BYTES = bytes(range(256))


# ── watches ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_watch_tells_first_what_was_and_then_what_comes(opener: Opener) -> None:
    async def story(store: Store) -> None:
        start = await store.revision()
        first = revision_of(await create(store, "/a/1", b""))
        await create(store, "/b/1", b"")
        async with aclosing(store.watch("/a/", start)) as watch:
            assert (await anext(watch)).revision == first
            waiting = asyncio.create_task(anext(watch))
            await create(store, "/b/2", b"")
            second = revision_of(await update(store, "/a/1", b"2", first))
            batch = await waiting
            (event,) = batch.events
            assert batch.revision == second
            assert event.before is not None
            assert event.entry == await get(store, "/a/1")
            assert event.before.value == b""
            third = revision_of(await delete(store, "/a/1"))
            (event,) = (await anext(watch)).events
            assert (event.key, event.entry, event.before and event.before.modified) == ("/a/1", None, second)
            assert third > second

    tell(opener, story)


def test_a_watch_from_any_revision_tells_the_same_rest(opener: Opener) -> None:
    async def story(store: Store) -> None:
        start = await store.revision()
        revisions = [start]
        for step in range(12):
            writes: list[Write] = [Put(f"/{step % 5}", b"%d" % step), Delete(f"/{(step + 2) % 5}")]
            writes.append(Put(f"/other/{step}", b""))
            revisions.append(revision_of(await store.commit([], writes)))
        whole = await follow(store, "/", revisions[-1], Follower(at=start))
        assert tuple(whole.entries[key] for key in sorted(whole.entries)) == (await store.scan("/")).entries
        for number, revision in enumerate(revisions):
            part = Follower((await store.scan("/", at=revision)).entries, revision)
            await follow(store, "/", revisions[-1], part)
            assert part.batches == whole.batches[number:]
            assert part.entries == whole.entries

    tell(opener, story)


def test_a_watch_may_begin_in_the_future(opener: Opener) -> None:
    async def story(store: Store) -> None:
        now = await store.revision()
        async with aclosing(store.watch("/", Revision(now + 3))) as watch:
            waiting = asyncio.create_task(anext(watch))
            told = [revision_of(await store.commit([], [Put("/a", b"%d" % n)])) for n in range(8)]
            assert (await waiting).revision == next(revision for revision in told if revision > now + 3)

    tell(opener, story)


def test_a_bookmark_comes_after_all_that_is_older(opener: Opener) -> None:
    async def story(store: Store) -> None:
        start = await store.revision()
        async with aclosing(store.watch("/a/", start)) as watch:
            first = revision_of(await create(store, "/a/1", b""))
            other = revision_of(await create(store, "/b/1", b""))
            await watch.ask_progress()
            assert (await anext(watch)).revision == first
            while (batch := await anext(watch)).revision < other:
                assert not batch.events
            assert (batch.events, batch.revision >= other) == ((), True)

    tell(opener, story)


def test_a_watch_that_nobody_reads_for_long_loses_nothing(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "BACKLOG", 5)

    async def story(store: Store) -> None:
        start = await store.revision()
        async with aclosing(store.watch("/", start)) as watch:
            follower = Follower(at=start)
            for step in range(4):
                revision = start
                for number in range(3 * step + 3):
                    revision = revision_of(await store.commit([], [Put(f"/{number}", b"%d" % step)]))
                await watch.ask_progress()
                while follower.revision < revision:
                    follower.take(await anext(watch))
        assert tuple(follower.entries[key] for key in sorted(follower.entries)) == (await store.scan("/")).entries
        assert len(follower.batches) == 3 + 6 + 9 + 12

    tell(opener, story)


def test_whoever_stops_waiting_for_a_watch_misses_nothing(opener: Opener) -> None:
    async def story(store: Store) -> None:
        start = await store.revision()
        follower = Follower(at=start)
        revision = start
        async with aclosing(store.watch("/", start)) as watch:
            for number in range(5):
                waiting = asyncio.create_task(anext(watch))
                await asyncio.sleep(0)
                revision = revision_of(await create(store, f"/{number}", b""))
                if not waiting.cancel() or not await _was_cancelled(waiting):
                    follower.take(waiting.result())
            while follower.revision < revision:
                follower.take(await anext(watch))
        assert len(follower.entries) == 5

    tell(opener, story)


async def _was_cancelled(task: "asyncio.Task[object]") -> bool:
    await asyncio.wait([task])
    return task.cancelled()


def test_all_watches_end_with_the_same_copy_whoever_writes(opener: Opener) -> None:
    async def story(store: Store) -> None:
        start = await store.revision()

        async def write(who: int) -> Revision:
            revision = start
            for number in range(12):
                writes: list[Write] = [Put(f"/{(who + number) % 7}", b"%d" % number)]
                writes.append(Delete(f"/{(who * number) % 5 + 10}"))
                revision = revision_of(await store.commit([], writes))
                await store.commit([], [Put(f"/{(who * number) % 5 + 10}", b"x")])
            return revision

        async def read() -> Follower:
            follower = Follower(at=start)
            async with aclosing(store.watch("/", start)) as watch:
                while len(follower.batches) < 4 * 24:
                    follower.take(await anext(watch))
            return follower

        readers = [asyncio.create_task(read()) for _ in range(3)]
        await asyncio.gather(*(write(who) for who in range(4)))
        followers = await asyncio.gather(*readers)
        page = await store.scan("/")
        for follower in followers:
            assert follower.batches == followers[0].batches
            assert tuple(follower.entries[key] for key in sorted(follower.entries)) == page.entries

    tell(opener, story)


def test_closing_a_store_ends_its_watches(opener: Opener) -> None:
    async def story(store: Store) -> None:
        watch = store.watch("/", await store.revision())
        waiting = asyncio.create_task(anext(watch))
        await create(store, "/a", b"")
        assert (await waiting).events
        waiting = asyncio.create_task(anext(watch))
        await asyncio.sleep(0)
        await store.aclose()
        with pytest.raises(ClosedError):
            await waiting
        for asked in (
            get(store, "/a"),
            store.scan("/"),
            store.revision(),
            store.commit([], [Put("/b", b"")]),
            store.compact(Revision(1)),
            store.grant(60),
            store.keep_alive(LeaseId(1)),
            store.revoke(LeaseId(1)),
        ):
            with pytest.raises(ClosedError):
                await asked

    tell(opener, story)


# ── leases ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_lease_that_ends_takes_its_keys_with_it_at_one_revision(opener: Opener) -> None:
    async def story(store: Store) -> None:
        lease = await store.grant(60)
        start = await store.revision()
        await store.commit([], [Put("/b", b"", lease), Put("/a", b"", lease), Put("/kept", b"", lease)])
        await store.commit([], [Put("/kept", b"now without")])
        entry = await get(store, "/a")
        assert entry is not None
        assert entry.lease == lease
        assert await store.keep_alive(lease)
        await store.revoke(lease)
        await store.revoke(lease)
        assert [entry.key for entry in (await store.scan("/")).entries] == ["/kept"]
        assert not await store.keep_alive(lease)
        follower = await follow(store, "/", await store.revision(), Follower(at=start))
        assert sorted(event.key for event in follower.batches[-1].events) == ["/a", "/b"]

    tell(opener, story)


def test_a_lease_that_nobody_keeps_alive_ends_and_one_that_is_kept_does_not(opener: Opener) -> None:
    async def story(store: Store) -> None:
        left, kept = await store.grant(1), await store.grant(1)
        revision = revision_of(await store.commit([], [Put("/left", b"", left), Put("/kept", b"", kept)]))

        async def keep() -> None:
            while await store.keep_alive(kept):
                await asyncio.sleep(0.2)

        keeping = asyncio.create_task(keep())
        async with aclosing(store.watch("/", revision)) as watch:
            (event,) = (await anext(watch)).events
            assert (event.key, event.entry) == ("/left", None)
            assert not await store.keep_alive(left)
            assert [entry.key for entry in (await store.scan("/")).entries] == ["/kept"]
            assert not keeping.done()
            keeping.cancel()

    tell(opener, story)


def test_a_write_with_a_lease_that_is_not_there_does_not_happen(opener: Opener) -> None:
    async def story(store: Store) -> None:
        with pytest.raises(LeaseNotFoundError, match="there is no lease 12345"):
            await store.commit([], [Put("/a", b""), Put("/b", b"", LeaseId(12_345))])
        assert (await store.scan("/")).entries == ()
        await create(store, "/a", b"")
        with pytest.raises(InvalidRequestError):
            await store.grant(0)

    tell(opener, story)
