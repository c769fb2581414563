"""What every store promises of lists, of the past, and of compaction."""

from contextlib import aclosing

import pytest

from situate.store.contract import Store
from situate.store.entries import Revision
from situate.store.errors import (
    CompactedError,
    FutureRevisionError,
)
from situate.store.transactions import (
    MAX_OPERATIONS,
    Delete,
    Put,
)
from store.single import create, delete, update
from store.stories import Follower, Opener, follow, revision_of, tell

ANY_BYTES = bytes(range(256))


# ── lists ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_scan_has_what_begins_with_the_prefix_in_order(opener: Opener) -> None:
    keys = [
        "/a",
        "/a/",
        "/a/1",
        "/a/10",
        "/a/2",
        "/a/é",
        "/a/\U0010ffff",
        "/a/\U0010ffff/x",
        "/a0",
        "/b",
        "\ue000",
        "\U0010ffff",
    ]

    async def story(store: Store) -> None:
        await store.commit([], [Put(key, key.encode()) for key in reversed(keys)])
        for prefix in ["", "/", "/a", "/a/", "/a/1", "/a/\U0010ffff", "\U0010ffff", "/nothing"]:
            page = await store.scan(prefix)
            assert [entry.key for entry in page.entries] == sorted(key for key in keys if key.startswith(prefix))

    tell(opener, story)


def test_pages_are_all_of_one_revision_whatever_is_written_meanwhile(opener: Opener) -> None:
    async def story(store: Store) -> None:
        await store.commit([], [Put(f"/p/{n:02}", b"old") for n in range(20)])
        before = await store.scan("/p/")
        page = await store.scan("/p/", limit=3)
        found, remaining = list(page.entries), [page.remaining]
        step = 0
        while page.remaining:
            await store.commit(
                [], [Put(f"/p/{step:02}", b"new"), Delete(f"/p/{19 - step:02}"), Put(f"/p/x{step}", b"")]
            )
            step += 1
            page = await store.scan("/p/", at=page.revision, after=found[-1].key, limit=3)
            found += page.entries
            remaining.append(page.remaining)
        assert tuple(found) == before.entries
        assert remaining == [17, 14, 11, 8, 5, 2, 0]
        assert (await store.scan("/p/", at=before.revision)).entries == before.entries
        assert (await store.scan("/p/", limit=20)).remaining == 0

    tell(opener, story)


def test_a_page_of_the_past_counts_what_was_left_then(opener: Opener) -> None:
    async def story(store: Store) -> None:
        then = revision_of(await store.commit([], [Put(f"/p/{n}", b"") for n in range(6)]))
        await store.commit([], [Put("/p/0", b"new"), Delete("/p/1"), Delete("/p/2"), Delete("/p/3"), Put("/p/x", b"")])
        assert (await store.scan("/p/", at=then, limit=2)).remaining == 4
        assert (await store.scan("/p/", at=then, after="/p/1", limit=2)).remaining == 2
        assert (await store.scan("/p/", at=then, limit=5)).remaining == 1
        assert (await store.scan("/p/", at=then, limit=6)).remaining == 0
        assert (await store.scan("/p/", limit=2)).remaining == 2
        await store.commit([], [Put(f"/q/{n}", b"") for n in range(4)])
        then = await store.revision()
        await store.commit([], [Put("/q/0-", b"new")])
        page = await store.scan("/q/", at=then, limit=2)
        assert ([entry.key for entry in page.entries], page.remaining) == (["/q/0", "/q/1"], 2)

    tell(opener, story)


def test_the_past_is_read_as_it_was(opener: Opener) -> None:
    async def story(store: Store) -> None:
        first = revision_of(await create(store, "/a", b"1"))
        second = revision_of(await update(store, "/a", b"2", first))
        third = revision_of(await delete(store, "/a"))
        await create(store, "/b", b"")
        seen = [(await store.read(["/a", "/b"], at)).entries for at in (first, second, third)]
        assert [(a and a.value, b) for a, b in seen] == [(b"1", None), (b"2", None), (None, None)]
        assert [len((await store.scan("/", at=at)).entries) for at in (first, second, third)] == [1, 1, 0]
        assert (await store.read(["/a"], second)).revision == second

    tell(opener, story)


def test_the_past_of_a_key_that_is_the_prefix_itself_is_read_too(opener: Opener) -> None:
    async def story(store: Store) -> None:
        first = revision_of(await store.commit([], [Put("/a", b"1"), Put("/a/b", b"1"), Put("/b", b"1")]))
        await store.commit([], [Delete("/a"), Put("/a/b", b"2"), Put("/b", b"2"), Put("/aa", b"2")])
        page = await store.scan("/a", at=first)
        assert [(entry.key, entry.value) for entry in page.entries] == [("/a", b"1"), ("/a/b", b"1")]
        page = await store.scan("/a", at=first, after="/a")
        assert [entry.key for entry in page.entries] == ["/a/b"]
        page = await store.scan("/a", at=first, after="/a/b")
        assert page.entries == ()

    tell(opener, story)


def test_many_keys_are_read_at_one_revision(opener: Opener) -> None:
    async def story(store: Store) -> None:
        keys = [f"/{number}" for number in range(3 * MAX_OPERATIONS)]
        await store.commit([], [Put(key, b"") for key in keys[:MAX_OPERATIONS]])
        reading = await store.read([*keys, keys[0]])
        assert [entry and entry.key for entry in reading.entries] == [
            *keys[:MAX_OPERATIONS],
            *[None] * 2 * MAX_OPERATIONS,
            keys[0],
        ]
        assert (await store.read([])).revision == reading.revision == await store.revision()

    tell(opener, story)


def test_a_revision_that_is_not_there_yet_is_said_to_be_so(opener: Opener) -> None:
    async def story(store: Store) -> None:
        ahead = Revision(await store.revision() + 1_000)
        for asked in (store.read(["/a"], ahead), store.scan("/", at=ahead), store.compact(ahead)):
            with pytest.raises(FutureRevisionError, match=f"^revision {ahead} is in the future") as raised:
                await asked
            assert raised.value.current == await store.revision()

    tell(opener, story)


def test_a_long_scan_is_whole(opener: Opener) -> None:
    async def story(store: Store) -> None:
        for start in range(0, 6_000, MAX_OPERATIONS):
            await store.commit([], [Put(f"/{n:05}", b"%d" % n) for n in range(start, start + MAX_OPERATIONS)])
        page = await store.scan("/")
        assert [int(entry.value) for entry in page.entries] == list(range(6_000))
        assert (await store.scan("/", limit=5_500)).remaining == 500

    tell(opener, story)


# ── compaction ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_after_compaction_the_past_is_gone_and_the_present_is_not(opener: Opener) -> None:
    async def story(store: Store) -> None:
        start = await store.revision()
        first = revision_of(await create(store, "/a", b"1"))
        await create(store, "/gone", b"")
        await delete(store, "/gone")
        second = revision_of(await update(store, "/a", b"2", first))
        third = revision_of(await update(store, "/a", b"3", second))
        await store.compact(second)
        await store.compact(second)
        await store.compact(first)
        for asked in (store.read(["/a"], first), store.scan("/", at=first)):
            with pytest.raises(CompactedError, match=f"^revision {first} has been compacted$") as raised:
                await asked
            assert (raised.value.asked, first < raised.value.compacted <= second) == (first, True)
        async with aclosing(store.watch("/", start)) as watch:
            with pytest.raises(CompactedError) as raised:
                await anext(watch)
            assert (raised.value.asked, raised.value.compacted) == (start, second)
        assert [entry.value for entry in (await store.scan("/", at=second)).entries] == [b"2"]
        at_second = (await store.scan("/", at=second)).entries
        follower = await follow(store, "/", third, Follower(at_second, second))
        assert [batch.revision for batch in follower.batches] == [third]
        await delete(store, "/a")
        last = await store.revision()
        await store.compact(last)
        assert (await store.scan("/")).entries == ()
        assert revision_of(await create(store, "/a", b"")) > last

    tell(opener, story)
