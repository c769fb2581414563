"""No room, a disk that fails, a file that is damaged: nothing wrong is served, and nothing acknowledged is lost."""

import asyncio
import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from situate.store.contract import Store
from situate.store.entries import Batch, LeaseId, Revision
from situate.store.errors import FailedError, StoreError, StoreFullError
from situate.store.sqlite import store as store_module
from situate.store.sqlite.log import TransactionLog
from situate.store.sqlite.queries import scan
from situate.store.sqlite.schema import prepare
from situate.store.sqlite.store import SqliteStore
from situate.store.sqlite.writer import Commit, JobResults, Writer
from situate.store.transactions import Committed, Put, Transaction
from store.disk import Disk
from store.single import create, delete, get
from store.sqlite_stories import tell


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


# ── no room ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_room_writes_are_refused_and_reads_go_on_and_room_can_be_made(path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        written = 0
        with suppress(StoreFullError):
            while written < 100:
                await create(store, f"/{written:03}", bytes(20_000))
                written += 1
        assert 10 < written < 100
        assert len((await store.scan("/")).entries) == written
        with pytest.raises(StoreFullError, match="no room"):
            await create(store, "/more", bytes(20_000))
        watch = store.watch("/", await store.revision())
        await delete(store, "/000")
        assert (await anext(watch)).events[0].key == "/000"
        await store.compact(await store.revision())
        await create(store, "/more", bytes(10_000))

    tell(path, story, limit_bytes=1_000_000)


def test_a_lease_that_ends_on_a_full_disk_ends_when_there_is_room(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "RETRY_EXPIRY_S", 0.05)
    revoke, tries = TransactionLog.revoke, 0

    def full_at_first(self: TransactionLog, lease: LeaseId) -> list[Batch]:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise StoreFullError("no room")
        return revoke(self, lease)

    monkeypatch.setattr(TransactionLog, "revoke", full_at_first)

    async def story(store: SqliteStore) -> None:
        await create(store, "/leased", b"", await store.grant(1))
        while await get(store, "/leased") is not None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        assert tries == 2, "not before there is room, and once"

    tell(path, story)


def test_a_full_disk_refuses_the_write_and_nothing_of_it_is_there() -> None:
    disk = Disk()
    connection = disk.connect()
    prepare(connection)
    log = TransactionLog(connection)
    log.commit([_put("/a", b"1")])
    disk.before = _raises(apsw.FullError, "write")
    answers, batches = log.commit([_put("/a", b"2"), _put("/b", bytes(9_000))])
    assert [type(answer) for answer in answers] == [StoreFullError, StoreFullError]
    assert batches == []
    disk.before = lambda _operation: None
    assert [entry.value for entry in scan(connection, "/", None, "", 0).entries] == [b"1"]
    assert log.commit([_put("/b", b"")])[0] == [Committed(Revision(3))]
    connection.close()


def test_a_store_says_that_it_is_full_compacts_by_itself_and_says_so_no_longer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "LOOK_S", 0.01)

    async def story(store: SqliteStore) -> None:
        assert store.problem == ""
        with suppress(StoreFullError):
            while True:
                await store.commit([], [Put("/a", bytes(60_000))])
        assert store.problem.startswith(f"there is no room for {path}: writes are refused, and deletes still work")
        while store.problem:  # nobody writes: the old values are swept all the same
            await asyncio.sleep(0.01)
        await store.commit([], [Put("/a", bytes(60_000))])

    tell(path, story, limit_bytes=2_000_000)


def test_a_compaction_that_was_refused_is_tried_at_the_next_refusal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "LOOK_S", 3600)
    compacted: list[Revision] = []

    async def story(store: SqliteStore) -> None:
        real = store.compact

        async def refused_at_first(revision: Revision) -> None:
            compacted.append(revision)
            if len(compacted) == 1:
                raise StoreFullError("no room")
            await real(revision)

        monkeypatch.setattr(store, "compact", refused_at_first)
        while len(compacted) < 2:
            with suppress(StoreFullError):
                await store.commit([], [Put("/a", bytes(60_000))])
            await asyncio.sleep(0)
        newest = await store.revision()
        assert compacted == [newest, newest]

    tell(path, story, limit_bytes=2_000_000)


def test_what_failed_in_a_transaction_of_several_statements_is_rolled_back() -> None:
    connection = Disk().connect()
    prepare(connection)
    log = TransactionLog(connection)
    log.grant(LeaseId(7), 60)
    with pytest.raises(apsw.ConstraintError):
        log.grant(LeaseId(7), 60)
    assert log.commit([_put("/a", b"1")])[0] == [Committed(Revision(2))]
    log.grant(LeaseId(8), 60)
    connection.close()


# ── a disk that fails ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("operation", ["sync", "write"])
def test_after_a_failed_write_or_fsync_nothing_is_tried_again(operation: str) -> None:
    disk = Disk()
    connection = disk.connect()
    prepare(connection)
    calls = 0

    def fail_once(called: str) -> None:
        nonlocal calls
        calls += called == operation
        if called == operation and calls == 1:
            raise apsw.IOError

    async def story() -> None:
        loop = asyncio.get_running_loop()
        failures: list[FailedError | None] = []

        def deliver(answers: JobResults, batches: list[Batch], failed: FailedError | None) -> None:
            failures.append(failed)
            for answer, value in answers:
                if isinstance(value, Exception):
                    answer.set_exception(value)
                else:
                    answer.set_result(value)

        writer = Writer(TransactionLog(connection), loop, deliver)
        writer.start()
        first: asyncio.Future[object] = loop.create_future()
        writer.submit(Commit(_put("/a", b"1"), first))
        assert await first == Committed(Revision(2))
        disk.before = fail_once
        for _ in range(3):
            later: asyncio.Future[object] = loop.create_future()
            writer.submit(Commit(_put("/a", b"2"), later))
            with pytest.raises(FailedError, match="the store has stopped"):
                await later
        await asyncio.to_thread(writer.stop)
        assert failures[0] is None
        assert all(failures[1:])

    asyncio.run(story())
    assert calls == 1


def test_after_a_failure_a_store_answers_nothing_more_and_its_watches_end(path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        def fail(_log: TransactionLog) -> tuple[None, list[Batch]]:
            raise apsw.IOError("fsync")

        watch = store.watch("/", await store.revision())
        with pytest.raises(FailedError):
            await store._perform(fail)
        for asked in (create(store, "/a", b""), get(store, "/a"), anext(watch), store.revision()):
            with pytest.raises(FailedError):
                await asked

    tell(path, story)


def _put(key: str, value: bytes) -> Transaction:
    return Transaction((), (Put(key, value),))


def _raises(error: type[Exception], operation: str) -> Callable[[str], None]:
    def before(called: str) -> None:
        if called == operation:
            raise error

    return before


# ── damage ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_flipped_bit_is_found_out_and_never_served(path: Path) -> None:
    values = {f"/{number}": random.Random(number).randbytes(500) for number in range(80)}

    async def fill(store: SqliteStore) -> None:
        for key, value in values.items():
            await create(store, key, value)

    tell(path, fill)
    whole = path.read_bytes()
    dice = random.Random(1)
    noticed = 0
    for _ in range(120):
        damaged = bytearray(whole)
        damaged[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        noticed += _noticed(path, values)
    # The rest hit free space: each table has a page of its own, and small tables leave most of theirs empty.
    assert noticed > 60


def _noticed(path: Path, values: dict[str, bytes]) -> bool:
    async def read(store: Store) -> None:
        found = {entry.key: entry.value for entry in (await store.scan("/")).entries}
        assert found == values
        for key, value in values.items():
            entry = await get(store, key)
            assert entry is not None
            assert entry.value == value

    try:
        tell(path, read)
    except StoreError:
        return True
    return False


def test_a_log_cut_short_leaves_whole_commits(path: Path) -> None:
    async def fill(store: SqliteStore) -> None:
        for number in range(30):
            await store.commit([], [Put("/a", b"%d" % number), Put("/b", b"%d" % number)])
        files = {each: each.read_bytes() for each in path.parent.iterdir() if each.suffix in {".db", ".db-wal"}}
        for each, data in files.items():
            (path.parent / "copy").mkdir(exist_ok=True)
            (path.parent / "copy" / each.name).write_bytes(data)

    tell(path, fill)
    copy = path.parent / "copy" / path.name
    log = copy.with_name(copy.name + "-wal")
    for size in random.Random(2).sample(range(log.stat().st_size), 10):
        os.truncate(log, min(size, log.stat().st_size))

        async def read(store: SqliteStore) -> None:
            page = await store.scan("/")
            assert len({(entry.value, entry.modified) for entry in page.entries}) <= 1

        tell(copy, read)
