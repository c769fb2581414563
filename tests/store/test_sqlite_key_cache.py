"""What the writer knows of keys without asking: as good as asking, whatever is forgotten and whatever fails."""

from collections.abc import Callable, Sequence
from itertools import compress
from operator import not_
from unittest import mock

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.store.entries import ABSENT, Batch, Entry, LeaseId, Revision
from situate.store.errors import LeaseNotFoundError, StoreFullError
from situate.store.sqlite import key_cache
from situate.store.sqlite import log as log_module
from situate.store.sqlite.key_cache import KeyCache
from situate.store.sqlite.log import CommitAnswer, TransactionLog
from situate.store.sqlite.queries import heads
from situate.store.sqlite.rows import Row
from situate.store.sqlite.schema import prepare
from situate.store.transactions import (
    At,
    Committed,
    Delete,
    Guard,
    Holds,
    Present,
    Put,
    Refused,
    Transaction,
    Write,
    changes,
    refusal,
)
from store.disk import Disk

KEYS = ["/a", "/b", "/c", "/d", "/e"]
NO_SUCH_LEASE = LeaseId(7)

# ── any commits, some of which there is no room for ─────────────────────────────────────────────────────────────────


class Model:
    """Knows of all keys, always."""

    def __init__(self, revision: Revision) -> None:
        self.revision = revision
        self.entries: dict[str, Entry] = {}

    def commit(self, transactions: Sequence[Transaction]) -> tuple[list[CommitAnswer], list[Batch]]:
        batches: list[Batch] = []
        return [self._take(asked, batches) for asked in transactions], batches

    def _take(self, asked: Transaction, batches: list[Batch]) -> CommitAnswer:
        refused = refusal(asked.guards, self.entries, self.revision)
        if refused is not None:
            return refused
        if any(isinstance(write, Put) and write.lease == NO_SUCH_LEASE for write in asked.writes):
            return LeaseNotFoundError(NO_SUCH_LEASE)
        events = changes(asked.writes, self.entries, Revision(self.revision + 1))
        if events:
            self.revision = Revision(self.revision + 1)
            batches.append(Batch(self.revision, events))
        for event in events:
            self.entries.pop(event.key, None)
            if event.entry is not None:
                self.entries[event.key] = event.entry
        return Committed(self.revision)


GUARDS: dict[str, Callable[[str, Entry | None], Guard]] = {
    "absent": lambda key, _: At(key, ABSENT),
    "as it stands": lambda key, found: At(key, found.modified if found else ABSENT),
    "at a wrong revision": lambda key, _: At(key, Revision(1)),
    "present": lambda key, _: Present(key),
    "holds": lambda key, _: Holds(key, b"1"),
}
WRITES: dict[str, Callable[[str], Write]] = {
    "put": lambda key: Put(key, b"1"),
    "put another": lambda key: Put(key, b"2"),
    "put with a lease that is not there": lambda key: Put(key, b"3", NO_SUCH_LEASE),
    "delete": Delete,
}

keys = st.sampled_from(KEYS)
drawn_transactions = st.tuples(
    st.dictionaries(keys, st.sampled_from(sorted(GUARDS)), max_size=2),
    st.dictionaries(keys, st.sampled_from(sorted(WRITES)), max_size=3),
)
drawn_commits = st.tuples(st.booleans(), st.lists(drawn_transactions, min_size=1, max_size=4))


def _no_room(operation: str) -> None:
    if operation == "write":
        raise apsw.FullError


@settings(max_examples=300)
@given(generation=st.integers(0, 4), commits=st.lists(drawn_commits, max_size=15))
def test_any_commits_are_answered_as_if_nothing_were_ever_forgotten(
    generation: int, commits: list[tuple[bool, list[tuple[dict[str, str], dict[str, str]]]]]
) -> None:
    disk = Disk()
    connection = disk.connect()
    prepare(connection)
    log = TransactionLog(connection)
    model = Model(log.revision)
    with mock.patch.object(key_cache, "GENERATION_KEYS", generation):
        for is_full, drawn in commits:
            transactions = [
                Transaction(
                    tuple(GUARDS[guard](key, model.entries.get(key)) for key, guard in guards.items()),
                    tuple(WRITES[write](key) for key, write in writes.items()),
                )
                for guards, writes in drawn
            ]
            disk.before = _no_room if is_full else lambda _: None
            answers, batches = log.commit(transactions)
            full = [isinstance(answer, StoreFullError) for answer in answers]
            assert is_full or not any(full)
            expected, expected_batches = model.commit(list(compress(transactions, map(not_, full))))
            assert [_plain(answer) for answer in compress(answers, map(not_, full))] == list(map(_plain, expected))
            assert batches == expected_batches
            assert not (is_full and batches)
    disk.before = lambda _: None
    connection.close()


def _plain(answer: CommitAnswer) -> object:
    return (type(answer), answer.args) if isinstance(answer, LeaseNotFoundError) else answer


def test_of_a_commit_that_there_was_no_room_for_nothing_is_known() -> None:
    disk = Disk()
    connection = disk.connect()
    prepare(connection)
    log = TransactionLog(connection)
    log.commit([Transaction((), (Put("/a", b"1"), Put("/b", b"1")))])
    disk.before = _no_room
    (full,), batches = log.commit([Transaction((), (Put("/a", b"2"), Delete("/b"), Put("/c", b"2")))])
    assert isinstance(full, StoreFullError)
    assert batches == []
    disk.before = lambda _: None
    (refused,), _ = log.commit([Transaction((Holds("/a", b"2"), Present("/b"), At("/c", ABSENT)), ())])
    assert isinstance(refused, Refused)
    assert [guard.key for guard in refused.failed] == ["/a"]
    connection.close()


# ── generations ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> KeyCache:
    monkeypatch.setattr(key_cache, "GENERATION_KEYS", 2)
    monkeypatch.setattr(key_cache, "GENERATION_BYTES", 10)
    return KeyCache()


def _learn(cache: KeyCache, *keys: str, size: int = 0) -> None:
    entries = [Entry(key, bytes(size), Revision(1), Revision(1)) for key in keys]
    cache.learn({entry.key: Row(5, entry.key, entry, 0) for entry in entries})


def test_what_is_asked_for_in_each_generation_is_known_and_what_is_not_is_forgotten(cache: KeyCache) -> None:
    _learn(cache, "/hot", "/cold")
    for generation in range(3):
        _learn(cache, f"/{generation}/a", f"/{generation}/b")
        cache.grow(0)
        assert cache.unknown(["/hot"]) == set()
        assert cache.numbers["/hot"] == 5
    assert cache.unknown(["/cold", "/0/a", "/2/a"]) == {"/cold", "/0/a"}


def test_a_generation_has_a_limit_of_keys_and_one_of_bytes(cache: KeyCache) -> None:
    _learn(cache, "/a", "/b", size=5)
    cache.grow(0)
    assert set(cache.entries) == {"/a", "/b"}
    cache.grow(1)
    assert set(cache.entries) == set()
    assert cache.unknown(["/a", "/b"]) == set()
    _learn(cache, "/c")
    cache.grow(0)
    assert set(cache.entries) == set()


def test_what_has_come_back_from_the_generation_before_is_not_there_too(cache: KeyCache) -> None:
    _learn(cache, "/a", "/b", "/c")
    cache.grow(0)
    assert cache.unknown(["/a"]) == set()
    del cache.entries["/a"], cache.numbers["/a"]
    assert cache.unknown(["/a", "/b"]) == {"/a"}


def test_what_is_forgotten_is_forgotten_in_both_generations(cache: KeyCache) -> None:
    _learn(cache, "/a", "/b", "/c")
    cache.grow(0)
    _learn(cache, "/d")
    cache.forget(["/a", "/d", "/nowhere"])
    assert cache.unknown(["/a", "/b", "/d"]) == {"/a", "/d"}


@pytest.mark.parametrize(
    "limit, most", [("GENERATION_KEYS", 2), ("GENERATION_BYTES", 25)], ids=["by their number", "by what they hold"]
)
def test_a_commit_counts_towards_the_end_of_a_generation(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(key_cache, limit, most)
    looked_up: list[str] = []

    def counted(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, Row]:
        looked_up.extend(keys)
        return heads(connection, keys)

    monkeypatch.setattr(log_module, "heads", counted)
    connection = Disk().connect()
    prepare(connection)
    log = TransactionLog(connection)
    for number in range(6):
        log.commit([Transaction((), (Put(f"/{number}", bytes(10)),))])
    log.commit([Transaction((Present("/5"), Present("/3")), ())])
    assert looked_up == []
    log.commit([Transaction((Present("/2"),), ())])
    assert looked_up == ["/2"]
    connection.close()
