"""When the write-ahead log is moved into the file, how, and what happens if it cannot be."""

from collections.abc import Callable, Iterator
from typing import Any

import apsw
import pytest

from situate.store.entries import LeaseId, Revision
from situate.store.sqlite import log as log_module
from situate.store.sqlite import schema
from situate.store.sqlite.log import READERS_MS, TransactionLog
from situate.store.sqlite.room import Room
from situate.store.transactions import Committed, Delete, Put, Transaction
from store.disk import Disk

PASSIVE, RESTART, TRUNCATE = (
    apsw.SQLITE_CHECKPOINT_PASSIVE,
    apsw.SQLITE_CHECKPOINT_RESTART,
    apsw.SQLITE_CHECKPOINT_TRUNCATE,
)


class Watched:
    """A connection whose log has as many pages as the test says, and whose checkpoints are recorded."""

    def __init__(self) -> None:
        self.real = Disk().connect()
        schema.prepare(self.real)
        self.modes: list[int] = []
        self.waits: list[int] = []
        self.raises: Exception | None = None
        self.hook: Callable[..., int] = lambda *_: 0
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def set_wal_hook(self, hook: Callable[..., int]) -> None:
        self.hook = hook

    def set_busy_timeout(self, wait_ms: int) -> None:
        self.waits.append(wait_ms)

    def wal_checkpoint(self, mode: int) -> None:
        self.modes.append(mode)
        if self.raises is not None:
            raise self.raises

    def close(self) -> None:
        self.closed = True
        self.real.close()

    def pages(self, log: TransactionLog, pages: int) -> list[int]:
        """The checkpoints after a commit that left the log with so many pages."""
        self.modes.clear()
        assert self.hook(self, "main", pages) == apsw.SQLITE_OK
        log.checkpoint()
        return list(self.modes)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(log_module, "CHECKPOINT_PAGES", 40)
    monkeypatch.setattr(log_module, "FULL_CHECKPOINT_PAGES", 10)
    monkeypatch.setattr(log_module, "WAL_PAGES", 100)
    made = Watched()
    yield made
    if not made.closed:
        made.close()


def opened(watched: Watched, room: Room | None = None) -> TransactionLog:
    connection: Any = watched
    return TransactionLog(connection, room)


def test_it_is_moved_each_so_many_pages_and_from_the_start_when_it_begins_anew(watched: Watched) -> None:
    log = opened(watched)
    assert watched.pages(log, 39) == []
    assert watched.pages(log, 40) == [PASSIVE]
    assert watched.pages(log, 79) == [], "a reader needs it still"
    assert watched.pages(log, 80) == [PASSIVE]
    assert watched.pages(log, 3) == [], "it began anew"
    assert watched.pages(log, 39) == []
    assert watched.pages(log, 41) == [PASSIVE]
    assert watched.pages(log, 41) == []
    assert watched.pages(log, 81) == [PASSIVE]


def test_a_log_that_is_too_long_waits_for_readers_a_little(watched: Watched) -> None:
    log = opened(watched)
    assert watched.pages(log, 100) == [PASSIVE]
    assert watched.pages(log, 140) == [RESTART]
    assert watched.waits == [READERS_MS, schema.BUSY_MS] * 2
    watched.raises = apsw.BusyError("a reader")
    assert watched.pages(log, 200) == [RESTART]
    assert watched.waits[-1] == schema.BUSY_MS


def test_on_a_full_disk_it_is_moved_earlier(watched: Watched) -> None:
    log = opened(watched)
    log.room.full = True
    assert watched.pages(log, 9) == []
    assert watched.pages(log, 10) == [PASSIVE]
    log.room.full = False
    assert watched.pages(log, 30) == []


def test_a_small_reserve_keeps_the_log_short(watched: Watched) -> None:
    class Small(Room):
        log_bytes = 4096 * 20 + 1

    log = opened(watched, Small())
    (page,) = next(watched.real.execute("PRAGMA page_size"))
    assert page == 4096
    assert watched.pages(log, 19) == []
    assert watched.pages(log, 20) == [PASSIVE]


def test_no_room_for_a_checkpoint_is_no_failure_and_any_other_error_is_one(watched: Watched) -> None:
    log = opened(watched)
    watched.raises = apsw.FullError("full")
    assert watched.pages(log, 40) == [PASSIVE]
    assert log.room.full
    assert watched.waits[-1] == schema.BUSY_MS
    watched.raises = apsw.IOError("disk I/O error")
    with pytest.raises(apsw.IOError):
        watched.pages(log, 80)
    assert watched.waits[-1] == schema.BUSY_MS


@pytest.mark.parametrize("in_order, modes", [(True, [TRUNCATE]), (False, [])])
def test_it_is_emptied_at_the_end_unless_something_failed(watched: Watched, in_order: bool, modes: list[int]) -> None:
    log = opened(watched)
    watched.raises = apsw.FullError("full")
    log.close(in_order=in_order)
    assert watched.modes == modes
    assert watched.closed


# ── sweeping ────────────────────────────────────────────────────────────────────────────────────────────────────────


def rows(watched: Watched) -> list[tuple[str, bool]]:
    """The keys of the log's rows, and whether each is a deletion."""
    return [(str(key), bool(gone)) for key, gone in watched.real.execute("SELECT key, value IS NULL FROM log")]


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_compaction_drops_what_was_replaced_or_deleted_until_then_in_small_steps(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(log_module, "SWEEP_ROWS", at_once)
    log = opened(watched)
    for write in (Put("/a", b"1"), Put("/b", b"1"), Put("/a", b"2"), Delete("/b"), Put("/a", b"3")):
        log.commit([Transaction((), (write,))])
    assert log.compact(Revision(5)) == 5
    assert log.compact(Revision(4)) == 5, "it does not go back"
    steps = 1
    while log.sweep():
        steps += 1
    assert rows(watched) == [("/a", False), ("/a", False)], "at revision 5, and now"
    assert steps == {1: 5, 2: 3, 3: 2, 100: 1}[at_once]
    assert not log.sweep()
    log.compact(log.revision)
    while log.sweep():
        pass
    assert rows(watched) == [("/a", False)]


def test_a_lease_with_very_many_keys_ends_in_several_revisions(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "PLACES", 2)
    log = opened(watched)
    log.grant(LeaseId(7), 60)
    log.commit([Transaction((), tuple(Put(f"/{number}", b"", LeaseId(7)) for number in range(5)))])
    assert [len(batch.events) for batch in log.revoke(LeaseId(7))] == [2, 2, 1]
    assert log.revision == 5
    assert log.revoke(LeaseId(7)) == []
    (answer,), _ = log.commit([Transaction((), (Put("/0", b"", LeaseId(7)),))])
    assert not isinstance(answer, Committed), "the lease is gone"


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9])
def test_a_commit_of_more_rows_than_a_statement_has_is_still_one(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(log_module, "ROWS_PER_STATEMENT", 4)
    log = opened(watched)
    commits = 0

    def counted(*_: object) -> int:
        nonlocal commits
        commits += 1
        return 0

    watched.real.set_commit_hook(lambda: counted() != 0)
    answers, _ = log.commit([Transaction((), (Put(f"/{number}", b"v"),)) for number in range(count)])
    assert answers == [Committed(Revision(2 + number)) for number in range(count)]
    assert commits == 1
    assert len(rows(watched)) == count
    assert schema.load_counters(watched.real)[schema.REVISION] == 1 + count
