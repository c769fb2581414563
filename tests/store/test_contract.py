"""What every store promises: the same questions to memory, to SQLite and to a real etcd. Here: keys, transactions."""

import asyncio

import pytest

from situate.store.contract import Store
from situate.store.entries import ABSENT, Revision
from situate.store.errors import (
    InvalidRequestError,
)
from situate.store.transactions import (
    MAX_OPERATIONS,
    MAX_TRANSACTION_BYTES,
    At,
    Committed,
    Delete,
    Guard,
    Holds,
    Present,
    Put,
    Refused,
    Write,
)
from store.single import create, delete, get, update
from store.stories import Follower, Opener, follow, refused, revision_of, tell

ANY_BYTES = bytes(range(256))


# ── one key ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_created_is_there_and_is_not_created_again(opener: Opener) -> None:
    async def story(store: Store) -> None:
        revision = revision_of(await create(store, "/a", ANY_BYTES))
        entry = await get(store, "/a")
        assert entry is not None
        assert (entry.key, entry.value, entry.created, entry.modified) == ("/a", ANY_BYTES, revision, revision)
        again = refused(await create(store, "/a", b"other"))
        assert (again.failed, again.found) == ((At("/a", ABSENT),), (entry,))
        assert await get(store, "/a") == entry
        assert await get(store, "/b") is None

    tell(opener, story)


def test_an_update_needs_the_revision_that_it_was_made_for(opener: Opener) -> None:
    async def story(store: Store) -> None:
        first = revision_of(await create(store, "/a", b"1"))
        second = revision_of(await update(store, "/a", b"2", first))
        assert second > first
        late = refused(await update(store, "/a", b"late", first))
        (found,) = late.found
        assert found is not None
        assert (found.value, found.created, found.modified) == (b"2", first, second)
        refused(await update(store, "/absent", b"x", second))

    tell(opener, story)


def test_commits_made_at_once_have_a_revision_and_an_outcome_each(opener: Opener) -> None:
    async def story(store: Store) -> None:
        held = revision_of(await create(store, "/a", b"1"))
        first, second, third, fourth = await store.commit_each(
            [
                ([At("/a", held)], [Put("/a", b"2")]),
                ([At("/b", held)], [Put("/b", b"2")]),
                ([], [Put("/c", b"2"), Delete("/c")]),
                ([At("/d", ABSENT)], [Put("/d", b"2")]),
            ]
        )
        assert isinstance(first, Committed)
        assert isinstance(fourth, Committed)
        assert len({held, first.revision, fourth.revision}) == 3
        assert isinstance(second, Refused)
        assert isinstance(third, InvalidRequestError)
        found = [await get(store, key) for key in ("/a", "/b", "/c", "/d")]
        assert [None if one is None else one.value for one in found] == [b"2", None, None, b"2"]
        assert await store.commit_each([]) == []

    tell(opener, story)


@pytest.mark.parametrize("kind", ["memory", "sqlite"], indirect=True)
def test_a_store_of_its_own_counts_revisions_without_gaps(opener: Opener) -> None:
    async def story(store: Store) -> None:
        before = await store.revision()
        found = [revision_of(await store.commit([], [Put("/a", b"")])) for _ in range(3)]
        assert found == [before + 1, before + 2, before + 3]
        assert await store.revision() == before + 3

    tell(opener, story)


def test_a_deletion_needs_the_key_and_its_revision_and_a_new_one_begins_anew(opener: Opener) -> None:
    async def story(store: Store) -> None:
        first = revision_of(await create(store, "/a", b"1"))
        refused(await delete(store, "/a", Revision(first + 1)))
        gone = revision_of(await delete(store, "/a", first))
        assert gone > first
        assert await get(store, "/a") is None
        refused(await delete(store, "/a"))
        again = revision_of(await create(store, "/a", b""))
        entry = await get(store, "/a")
        assert entry is not None
        assert (entry.value, entry.created) == (b"", again)

    tell(opener, story)


# ── transactions ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_several_guards_and_writes_are_one_revision(opener: Opener) -> None:
    async def story(store: Store) -> None:
        pod = revision_of(await create(store, "/pods/a", b"pending"))
        node = revision_of(await create(store, "/nodes/n", b"free 4"))
        old = revision_of(await create(store, "/old", b""))
        guards: list[Guard] = [At("/pods/a", pod), Holds("/nodes/n", b"free 4"), Present("/old")]
        guards.append(At("/binding", ABSENT))
        writes: list[Write] = [Put("/pods/a", b"bound"), Put("/nodes/n", b"free 3"), Delete("/old")]
        writes.append(Put("/binding", b"a on n"))
        revision = revision_of(await store.commit(guards, writes))
        reading = await store.read(["/binding", "/nodes/n", "/old", "/pods/a"])
        assert [entry and entry.modified for entry in reading.entries] == [revision, revision, None, revision]
        again = refused(await store.commit(guards, writes))
        assert again.failed == tuple(guards)
        assert [entry and entry.value for entry in again.found] == [b"bound", b"free 3", None, b"a on n"]
        follower = await follow(store, "/", revision, Follower(at=Revision(pod - 1)))
        assert [len(batch.events) for batch in follower.batches] == [1, 1, 1, 4]
        assert old < revision
        assert [event.key for event in follower.batches[-1].events] == [write.key for write in writes]
        assert node < revision

    tell(opener, story)


def test_if_one_guard_does_not_hold_nothing_is_written(opener: Opener) -> None:
    async def story(store: Store) -> None:
        there = revision_of(await create(store, "/there", b"1"))
        bad: list[Guard] = [At("/there", Revision(there + 1)), Holds("/there", b"2"), Present("/absent")]
        bad.append(Holds("/absent", b""))
        for guard in bad:
            answer = refused(await store.commit([Present("/there"), guard], [Put("/new", b""), Delete("/there")]))
            assert answer.failed == (guard,)
        assert [entry.key for entry in (await store.scan("/")).entries] == ["/there"]

    tell(opener, story)


def test_a_deletion_of_what_is_not_there_is_no_event(opener: Opener) -> None:
    async def story(store: Store) -> None:
        before = await store.revision()
        revision = revision_of(await store.commit([], [Delete("/absent")]))
        assert revision >= before
        last = revision_of(await create(store, "/a", b""))
        assert [b.revision for b in (await follow(store, "/", last, Follower(at=before))).batches] == [last]

    tell(opener, story)


@pytest.mark.parametrize(
    "writes",
    [
        pytest.param([Put("/a", b""), Delete("/a")], id="one key twice"),
        pytest.param([Put(f"/{n}", b"") for n in range(MAX_OPERATIONS + 1)], id="too many writes"),
        pytest.param([Put("/a", bytes(MAX_TRANSACTION_BYTES))], id="too many bytes"),
        pytest.param([Put("", b"")], id="an empty key"),
        pytest.param([Put("/a\0b", b"")], id="a key with a zero character"),
        pytest.param([Put("/\ud800", b"")], id="a key that is not text"),
        pytest.param([Put("/" + "é" * 1_024, b"")], id="a key that is too long"),
    ],
)
def test_a_transaction_that_not_every_store_can_take_is_refused_by_all(
    opener: Opener, writes: list[Put | Delete]
) -> None:
    async def story(store: Store) -> None:
        with pytest.raises(InvalidRequestError):
            await store.commit([], writes)
        assert (await store.scan("")).entries == ()

    tell(opener, story)


def test_the_largest_transactions_are_taken(opener: Opener) -> None:
    async def story(store: Store) -> None:
        size = MAX_TRANSACTION_BYTES // MAX_OPERATIONS - 40
        revision = revision_of(
            await store.commit(
                [At(f"/{n:03}", ABSENT) for n in range(MAX_OPERATIONS)],
                [Put(f"/{n:03}", bytes([n]) * size) for n in range(MAX_OPERATIONS)],
            )
        )
        page = await store.scan("/")
        assert {entry.modified for entry in page.entries} == {revision}
        assert [entry.value for entry in page.entries] == [bytes([n]) * size for n in range(MAX_OPERATIONS)]
        await update(store, "/000", bytes(1_400_000), revision)
        assert (await store.read(["/000"])).entries[0] == await get(store, "/000")

    tell(opener, story)


def test_of_many_who_count_at_once_nobody_is_lost(opener: Opener) -> None:
    async def story(store: Store) -> None:
        await create(store, "/count", b"0")

        async def count() -> int:
            refusals = 0
            for _ in range(10):
                while True:
                    entry = await get(store, "/count")
                    assert entry is not None
                    value = str(int(entry.value) + 1).encode()
                    if isinstance(await update(store, "/count", value, entry.modified), Committed):
                        break
                    refusals += 1
            return refusals

        await asyncio.gather(*(count() for _ in range(6)))
        entry = await get(store, "/count")
        assert entry is not None
        assert entry.value == b"60"

    tell(opener, story)
