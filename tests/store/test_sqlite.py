"""The file: who may open it, and what is there after a restart."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

from situate.store.entries import ABSENT, LeaseId, Revision
from situate.store.errors import CompactedError, CorruptError, FailedError, FormatError, InUseError, StoreError
from situate.store.sqlite import log as log_module
from situate.store.sqlite.file import open_writer
from situate.store.sqlite.queries import heads
from situate.store.sqlite.schema import check_sqlite
from situate.store.sqlite.snapshot import snapshot_of
from situate.store.sqlite.store import SqliteStore
from situate.store.sqlite.writer import MAX_BATCH
from situate.store.transactions import At, Committed, Delete, Present, Put, Refused, Transaction
from store.single import create, delete, get, update
from store.sqlite_stories import tell
from store.stories import Follower, follow, revision_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


OPENS = (
    "import asyncio, sys; from pathlib import Path\n"
    "from situate.store.errors import InUseError; from situate.store.sqlite.store import SqliteStore\n"
    "try: asyncio.run(SqliteStore.open(Path(sys.argv[1])))\n"
    "except InUseError as error: print(error)"
)


# ── who may open it ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_server_is_told_in_one_line_who_has_the_file(path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", OPENS, str(path)], capture_output=True, text=True, check=True
        )
        assert done.stdout == f"{path} is in use by another server, process {os.getpid()}\n"
        with pytest.raises(InUseError):
            await SqliteStore.open(path)
        assert await create(store, "/a", b"") == Committed(Revision(2))

    tell(path, story)
    tell(path, _does_nothing)


async def _does_nothing(_store: SqliteStore) -> None:
    pass


@pytest.mark.parametrize("named", ["symlink", "hard link"])
def test_a_file_is_open_once_whatever_it_is_called(path: Path, tmp_path: Path, named: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "other.db"

    async def story(store: SqliteStore) -> None:
        await create(store, "/a", b"1")
        if named == "symlink":
            other.symlink_to(path)
        else:
            other.hardlink_to(path)
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", OPENS, str(other)], capture_output=True, text=True, check=True
        )
        assert " is in use by another server, " in done.stdout
        assert await create(store, "/b", b"") == Committed(Revision(3))

    tell(path, story)


async def _write_on(store: SqliteStore) -> None:
    for number in range(1_000):
        await create(store, f"/{number}", b"")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["the directory is removed", "the directory is replaced", "the file is replaced"])
def test_a_file_that_was_removed_takes_no_more_writes_and_is_not_made_again(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "plane" / "store.db"
    path.parent.mkdir()

    async def story(store: SqliteStore) -> None:
        await create(store, "/a", b"1")
        if how.startswith("the directory"):
            shutil.rmtree(path.parent)
            if how == "the directory is replaced":
                path.parent.write_bytes(b"")
        else:
            path.rename(path.with_name("moved.db"))
            path.write_bytes(b"")
        with pytest.raises(FailedError, match="was removed or replaced while it was in use"):
            await _write_on(store)
        with pytest.raises(FailedError):
            await get(store, "/a")
        assert path.parent.is_dir() == (how == "the file is replaced")
        assert [record.levelname for record in caplog.records if "removed" in record.getMessage()] == ["ERROR"]

    tell(path, story)


def test_however_many_come_at_once_a_commit_has_a_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = log_module.TransactionLog.commit

    def counted(self: log_module.TransactionLog, transactions: Sequence[Transaction]) -> object:
        sizes.append(len(transactions))
        return real(self, transactions)

    async def story(store: SqliteStore) -> None:
        many = 2 * MAX_BATCH + 1
        done = await asyncio.gather(*(create(store, f"/{number}", b"") for number in range(many)))
        assert done == [Committed(Revision(2 + number)) for number in range(many)]

    monkeypatch.setattr(log_module.TransactionLog, "commit", counted)
    tell(path, story)
    assert max(sizes) == MAX_BATCH


def test_only_its_owner_may_read_it(path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        await create(store, "/secret", b"")
        modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
        assert set(modes.values()) == {0o600}, modes

    tell(path, story)


@pytest.mark.parametrize("version, fine", [("3.51.3", True), ("3.54.1", True), ("4.0.0", True), ("3.51.2", False)])
def test_an_sqlite_that_can_corrupt_the_file_is_refused(version: str, fine: bool) -> None:
    if fine:
        check_sqlite(version)
    else:
        with pytest.raises(StoreError, match=r"3\.51\.3 or newer is required"):
            check_sqlite(version)


def test_a_file_of_another_schema_or_of_something_else_is_left_alone(path: Path, tmp_path: Path) -> None:
    tell(path, _does_nothing)
    with apsw.Connection(str(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(FormatError, match="which is newer: it has format 99"):
        tell(path, _does_nothing)
    other = tmp_path / "other.db"
    with apsw.Connection(str(other)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match="another program's database"):
        tell(other, _does_nothing)
    no_database = tmp_path / "text"
    no_database.write_text("not a database, but long enough to be mistaken for one\n" * 200)
    with pytest.raises(CorruptError):
        tell(no_database, _does_nothing)


# ── starting again ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_everything_is_there_after_a_restart_and_revisions_go_on(path: Path) -> None:
    seen: list[Revision] = []

    async def first(store: SqliteStore) -> None:
        seen.append(revision_of(await create(store, "/a", b"1")))
        seen.append(revision_of(await update(store, "/a", b"2", seen[0])))
        seen.append(revision_of(await create(store, "/b", b"", await store.grant(60))))

    async def second(store: SqliteStore) -> None:
        assert await store.revision() == seen[-1]
        follower = await follow(store, "/", seen[-1], Follower(at=Revision(seen[0] - 1)))
        assert [batch.revision for batch in follower.batches] == seen
        entry = await get(store, "/b")
        assert entry is not None
        assert await store.keep_alive(entry.lease)
        await store.revoke(entry.lease)
        assert await store.revision() > seen[-1]

    tell(path, first)
    tell(path, second)


def test_revisions_do_not_go_back_when_the_newest_rows_are_compacted_away(path: Path) -> None:
    async def first(store: SqliteStore) -> None:
        await create(store, "/a", b"")
        await delete(store, "/a")
        await store.compact(await store.revision())

    async def second(store: SqliteStore) -> None:
        assert revision_of(await create(store, "/a", b"")) == 4
        with pytest.raises(CompactedError):
            await store.scan("/", at=Revision(2))

    tell(path, first)
    tell(path, second)


def test_a_lease_has_its_whole_time_again_after_a_restart_and_then_ends(path: Path) -> None:
    async def first(store: SqliteStore) -> None:
        await create(store, "/a", b"", await store.grant(1))

    async def second(store: SqliteStore) -> None:
        watch = store.watch("/", await store.revision())
        assert await get(store, "/a") is not None
        (event,) = (await anext(watch)).events
        assert (event.key, event.entry) == ("/a", None)

    tell(path, first)
    tell(path, second)


def test_compaction_makes_room(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "SWEEP_ROWS", 7)

    async def story(store: SqliteStore) -> None:
        for number in range(100):
            await store.commit([], [Put(f"/{number % 3}", bytes(100)), Put("/hot", b"%d" % number)])
        await store.compact(Revision(await store.revision() - 1))

    tell(path, story)
    with apsw.Connection(str(path)) as connection:
        assert list(connection.execute("SELECT count(*) FROM log")) == [(4 + 2,)]


# ── keys that are not remembered ────────────────────────────────────────────────────────────────────────────────────

FORGOTTEN = "/there", b"old"


def _forgetful(path: Path) -> log_module.TransactionLog:
    """A log with one key that is there, opened anew: it remembers nothing."""
    first = log_module.TransactionLog(open_writer(path))
    first.commit([Transaction((), (Put(*FORGOTTEN),))])
    first.close(in_order=True)
    return log_module.TransactionLog(open_writer(path))


def test_who_creates_what_is_there_is_refused_though_nobody_remembers_it(path: Path) -> None:
    log = _forgetful(path)
    guard = At("/there", ABSENT)
    both = [Transaction((guard,), (Put("/there", b"new"),)), Transaction((), (Put("/other", b"new"),))]
    (refused, committed), batches = log.commit(both)
    assert isinstance(refused, Refused)
    assert refused.failed == (guard,)
    assert [found and found.value for found in refused.found] == [b"old"]
    assert committed == Committed(Revision(3))
    assert [event.key for batch in batches for event in batch.events] == ["/other"]
    log.close(in_order=True)


@pytest.mark.parametrize(
    "transactions",
    [
        [Transaction((), (Put("/there", b"new"),))],
        [Transaction((At("/there", Revision(2)),), (Put("/there", b"new"),))],
        [Transaction((Present("/there"),), (Put("/there", b"new"),))],
        [Transaction((), (Delete("/there"),)), Transaction((), (Put("/there", b"new"),))],
        [Transaction((At("/there", Revision(2)),), (Put("/new", b""), Put("/there", b"new")))],
        [Transaction((), (Put("/new", b""),)), Transaction((Present("/there"),), (Put("/there", b"new"),))],
    ],
    ids=["unguarded", "at its revision", "present", "deleted before", "beside a new one", "after a new one"],
)
def test_what_is_written_over_is_known_though_nobody_remembers_it(path: Path, transactions: list[Transaction]) -> None:
    log = _forgetful(path)
    answers, batches = log.commit(transactions)
    assert all(isinstance(answer, Committed) for answer in answers)
    told = [event for batch in batches for event in batch.events if event.key == "/there"]
    assert told[0].before is not None
    assert told[0].before.value == b"old"
    log.close(in_order=True)
    connection = open_writer(path)  # which checks that keys stand where they should
    assert heads(connection, ["/there"])["/there"].entry == told[-1].entry
    connection.close()


def test_a_refusal_for_another_reason_says_what_was_found_of_keys_that_nobody_remembers(path: Path) -> None:
    log = _forgetful(path)
    guards = (At("/there", ABSENT), At("/nowhere", Revision(9)))
    (refused,), _ = log.commit([Transaction(guards, (Put("/there", b"new"), Put("/nowhere", b"")))])
    assert isinstance(refused, Refused)
    assert refused.failed == guards
    log.close(in_order=True)


def test_who_creates_what_is_there_with_a_lease_that_is_not_is_refused_though_nobody_remembers_it(path: Path) -> None:
    log = _forgetful(path)
    (refused,), _ = log.commit([Transaction((At("/there", ABSENT),), (Put("/there", b"new", LeaseId(7)),))])
    assert isinstance(refused, Refused)
    log.close(in_order=True)


# ── the write-ahead log ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_write_ahead_log_does_not_outgrow_its_checkpoints(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "CHECKPOINT_PAGES", 40)
    longest = 0

    async def story(store: SqliteStore) -> None:
        nonlocal longest
        at = revision_of(await create(store, "/a", b""))
        for number in range(150):
            at = revision_of(await update(store, "/a", bytes([number]) * 8_000, at))
            longest = max(longest, path.with_name(f"{path.name}-wal").stat().st_size)

    tell(path, story)
    assert longest < 100 * 4_096, "150 writes of two pages and more each, and a checkpoint every 40 pages"


def test_writers_do_not_wait_for_a_backup_however_long_the_log_gets(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "CHECKPOINT_PAGES", 20)
    monkeypatch.setattr(log_module, "WAL_PAGES", 40)

    async def story(store: SqliteStore) -> None:
        await create(store, "/a", b"1")
        with snapshot_of(path) as (_, revision, entries):
            slowest = 0.0
            for number in range(20):
                begun = time.monotonic()
                await create(store, f"/{number}", bytes(20_000))
                slowest = max(slowest, time.monotonic() - begun)
            assert slowest < 3
            assert [entry.key for entry in entries] == ["/a"]
            assert revision < await store.revision()

    tell(path, story)
