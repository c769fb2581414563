"""The reserve of a store: who may use it when there is no room, and when it is whole again."""

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import apsw
import pytest

from situate.store.entries import Entry, Revision
from situate.store.errors import InUseError, StoreError, StoreFullError
from situate.store.sqlite import log as log_module
from situate.store.sqlite import schema
from situate.store.sqlite.file import lock
from situate.store.sqlite.log import TransactionLog
from situate.store.sqlite.room import (
    GROWTH_BYTES,
    OVERWRITE_BYTES,
    Ballast,
    FileLimit,
    Need,
    Room,
    is_out_of_room,
    need_of,
)
from situate.store.sqlite.schema import prepare
from situate.store.sqlite.snapshot import make_store
from situate.store.sqlite.store import SqliteStore
from situate.store.transactions import Committed, Delete, Put, Transaction, Write
from store.disk import Disk

OLD = {"/small": bytes(100), "/large": bytes(OVERWRITE_BYTES + 1)}


def find(key: str) -> Entry | None:
    return Entry(key, OLD[key], Revision(1), Revision(1)) if key in OLD else None


@pytest.mark.parametrize(
    "writes, need",
    [
        pytest.param([Put("/small", bytes(100 + GROWTH_BYTES))], Need.OVERWRITE, id="a small overwrite"),
        pytest.param([Put("/small", bytes(101 + GROWTH_BYTES))], Need.ORDINARY, id="one that grows"),
        pytest.param([Put("/large", OLD["/large"])], Need.ORDINARY, id="a large one: the old value stays beside it"),
        pytest.param([Put("/new", b"")], Need.ORDINARY, id="a create"),
        pytest.param([Put("/small", b""), Put("/new", b"")], Need.ORDINARY, id="an overwrite with a create"),
        pytest.param([Delete("/large")], Need.DELETE, id="a delete"),
        pytest.param([Delete("/large"), Put("/small", bytes(200))], Need.DELETE, id="a delete and the node's ledger"),
        pytest.param([Delete("/small"), Put("/new", bytes(9_000))], Need.ORDINARY, id="a delete that makes more"),
    ],
)
def test_what_a_write_may_take(writes: list[Write], need: Need) -> None:
    assert need_of(Transaction((), tuple(writes)), find) == need


class Halves:
    """A reserve on a simulated disk: so many bytes are refused to whoever comes later."""

    margin_bytes = 20_000
    log_bytes = 50_000
    spare_bytes = 100_000

    def __init__(self, disk: Disk, capacity: int) -> None:
        self._disk = disk
        self.capacity = capacity
        """Of the disk for everybody."""
        self.kept = 2
        disk.before = self._check

    def _check(self, operation: str) -> None:
        if operation == "write" and self.free_bytes() < 0:
            raise apsw.FullError

    def keep(self, halves: int) -> None:
        self.kept = halves

    def restored(self) -> bool:
        if self.free_bytes() - 50_000 * (2 - self.kept) < self.margin_bytes:
            return False
        self.kept = 2
        return True

    def free_bytes(self) -> int:
        return self.capacity - 50_000 * self.kept - sum(len(file.seen) for file in self._disk.files.values())

    def close(self) -> None:
        pass


def halves(reserve: Halves) -> int:
    return reserve.kept


def is_full(room: Room) -> bool:
    return room.full


def put(key: str, size: int) -> Transaction:
    return Transaction((), (Put(key, bytes(size)),))


def test_a_full_disk_refuses_creates_lets_small_overwrites_use_half_and_deletes_all_of_the_reserve() -> None:
    disk = Disk()
    connection = disk.connect()
    prepare(connection)
    reserve = Halves(disk, 600_000)
    log = TransactionLog(connection, Room(reserve))
    assert isinstance(log.commit([put("/lease", 100)])[0][0], Committed)
    made = 0
    while isinstance(log.commit([put(f"/{made}", 10_000)])[0][0], Committed):
        log.checkpoint()  # as the writer does
        made += 1
    assert made > 10
    assert is_full(log.room)
    # In one commit: the create is refused, the others happen.
    (renewed, created, deleted), batches = log.commit(
        [put("/lease", 90), put("/new", 1), Transaction((), (Delete("/0"),))]
    )
    assert isinstance(renewed, Committed)
    assert isinstance(created, StoreFullError)
    assert isinstance(deleted, Committed)
    assert [batch.events[0].key for batch in batches] == ["/lease", "/0"]
    # Overwrites use up their half. Deletes have the other.
    for _ in range(1_000):
        if isinstance(log.commit([put("/lease", 100)])[0][0], StoreFullError):
            break
    assert halves(reserve) == 1
    assert isinstance(log.commit([Transaction((), (Delete("/1"),))])[0][0], Committed)
    assert halves(reserve) == 0
    # There is room again: the reserve first, then everybody.
    reserve.capacity += 200_000
    assert isinstance(log.commit([put("/new", 1)])[0][0], Committed)
    assert halves(reserve) == 2
    log.room.look()
    assert not is_full(log.room)
    connection.close()


def test_the_reserve_is_used_before_others_on_the_disk_take_it() -> None:
    disk = Disk()
    connection = disk.connect()
    prepare(connection)
    reserve = Halves(disk, 600_000)
    log = TransactionLog(connection, Room(reserve))
    made = 0
    while isinstance(log.commit([put(f"/{made}", 10_000)])[0][0], Committed):
        made += 1
        if reserve.free_bytes() > 60_000:
            log.checkpoint()  # the last ones are in the write-ahead log alone
    assert isinstance(log.commit([Transaction((), (Delete("/0"),))])[0][0], Committed)
    reserve.capacity -= reserve.free_bytes()
    for number in range(1, 11):
        assert isinstance(log.commit([Transaction((), (Delete(f"/{number}"),))])[0][0], Committed)
    connection.close()


def test_a_disk_that_the_store_itself_has_filled_has_room_when_its_objects_are_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its file does not shrink."""
    monkeypatch.setattr(log_module, "FULL_CHECKPOINT_PAGES", 5)  # the reserve is small, too
    disk = Disk()
    connection = disk.connect()
    prepare(connection)
    log = TransactionLog(connection, Room(Halves(disk, 600_000)))
    made = 0
    while isinstance(log.commit([put(f"/{made}", 10_000)])[0][0], Committed):
        log.checkpoint()
        made += 1
    kept = 5
    for number in range(kept, made):
        assert isinstance(log.commit([Transaction((), (Delete(f"/{number}"),))])[0][0], Committed)
        log.checkpoint()
        log.compact(log.revision)
        while log.sweep():
            pass
    log.room.look()
    assert not is_full(log.room)
    again = 0
    while isinstance(log.commit([put(f"/new-{again}", 10_000)])[0][0], Committed):
        log.checkpoint()
        again += 1
    assert again > 3
    # And not more than that: the room of the reserve is kept for deletes, inside the file.
    assert is_full(log.room)
    for number in range(again):
        assert isinstance(log.commit([Transaction((), (Delete(f"/new-{number}"),))])[0][0], Committed)
        log.checkpoint()
    connection.close()


def test_the_ballast_takes_real_room_and_gives_it_back(tmp_path: Path) -> None:
    ballast = Ballast.open(tmp_path / "store.db", 8 << 20)
    assert ballast.restored()
    kept = tmp_path / "store.db.reserve"
    assert kept.stat().st_blocks * 512 >= 8 << 20
    assert kept.stat().st_mode & 0o777 == 0o600
    ballast.keep(1)
    assert kept.stat().st_blocks * 512 <= (4 << 20) + 4096
    ballast.keep(0)
    assert kept.stat().st_blocks == 0
    assert ballast.restored()
    assert kept.stat().st_blocks * 512 >= 8 << 20
    ballast.close()


def test_a_lock_needs_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    held = lock(tmp_path / "store.db")
    with pytest.raises(InUseError):
        lock(tmp_path / "store.db")
    held.release()


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_a_store_that_cannot_be_made_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[apsw.Error]
) -> None:
    def fail(_connection: apsw.Connection) -> None:
        raise error("no luck")

    monkeypatch.setattr(schema, "prepare", fail)
    with pytest.raises(StoreError, match="nothing was restored"):
        make_store(tmp_path / "restored.db", "", 1, [])
    with pytest.raises(StoreError, match="cannot be opened: no luck"):
        asyncio.run(SqliteStore.open(tmp_path / "store.db"))
    lock(tmp_path / "store.db").release()


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL])
def test_where_no_room_can_be_reserved_the_store_is_not_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def unable(_handle: int, _start: int, _size: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", unable)
    room = Room(Ballast.open(tmp_path / "store.db", 8 << 20))
    assert not is_full(room)
    assert room.admits()
    room.close()


def test_a_ballast_that_does_not_fit_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int, _start: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    room = Room(Ballast.open(tmp_path / "store.db", 8 << 20))
    assert is_full(room)
    assert not room.admits()
    monkeypatch.undo()
    room.look()
    assert not is_full(room)
    assert room.admits()
    room.close()


def test_the_reserve_is_at_most_a_share_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fstatvfs

    def small(handle: int) -> os.statvfs_result:
        found = list(real(handle))
        found[1], found[2], found[4] = 4096, 16 * 100, 1  # the size of a block, blocks, those that are free for us
        return os.statvfs_result(found)

    monkeypatch.setattr(os, "fstatvfs", small)
    ballast = Ballast.open(tmp_path / "store.db", 8 << 20)
    assert ballast.spare_bytes == 100 * 4096
    assert ballast.log_bytes == 25 * 4096
    assert ballast.margin_bytes == 50 * 4096
    assert ballast.free_bytes() == 4096
    assert not ballast.restored()
    assert (tmp_path / "store.db.reserve").stat().st_size == 0, "others get the little that is left"
    ballast.close()


@pytest.mark.parametrize("spare", [0, -1])
def test_a_ballast_is_filled_if_there_is_room_for_what_is_missing_and_a_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    ballast = Ballast.open(tmp_path / "store.db", 2 << 20)
    monkeypatch.setattr(Ballast, "free_bytes", lambda _self: (2 << 20) + (1 << 20) + spare)
    assert ballast.restored() == (spare == 0)
    monkeypatch.setattr(Ballast, "free_bytes", lambda _self: (1 << 20) + spare)
    assert ballast.restored() == (spare == 0), "if it is whole, the margin is enough"
    ballast.close()


class Fixed:
    """A reserve that is as it is told."""

    log_bytes = 7
    margin_bytes = 10

    def __init__(self, *, whole: bool = True, free: int = 100, spare: int = 50) -> None:
        self.whole = whole
        self.free = free
        self.spare_bytes = spare
        self.kept: list[int] = []
        self.closed = False

    def keep(self, halves: int) -> None:
        self.kept.append(halves)

    def restored(self) -> bool:
        return self.whole

    def free_bytes(self) -> int:
        return self.free

    def close(self) -> None:
        self.closed = True


def test_every_reserve_is_lent_once_for_each_need_and_closed() -> None:
    both = Fixed(), Fixed()
    room = Room(*both)
    assert room.log_bytes == 7
    assert room.lend(Need.OVERWRITE)
    assert not room.lend(Need.OVERWRITE)
    assert room.lend(Need.DELETE)
    assert not room.lend(Need.DELETE)
    assert not room.lend(Need.OVERWRITE)
    assert not Room(*both).lend(Need.ORDINARY)
    assert [one.kept for one in both] == [[1, 0], [1, 0]]
    room.close()
    assert [one.closed for one in both] == [True, True]


def test_a_room_without_reserves_is_never_full() -> None:
    room = Room()
    room.look()
    assert not is_full(room)
    assert room.admits()
    assert room.free_bytes == 0
    assert room.log_bytes == 1 << 62


def test_a_store_that_begins_on_a_full_disk_is_full_and_has_half_the_reserve() -> None:
    reserve = Fixed(whole=False, free=0)
    room = Room(reserve)
    assert is_full(room)
    assert reserve.kept == [1]
    assert not room.admits()
    reserve.whole = True
    assert room.admits()
    assert is_full(room), "until somebody looks"
    room.look()
    assert is_full(room), "there is less than the margin"
    reserve.free = 10
    room.look()
    assert not is_full(room)
    assert room.free_bytes == 10


def test_room_inside_the_file_counts_beyond_the_size_of_the_reserve() -> None:
    reserve, limit = Fixed(whole=False, free=0), Fixed(spare=0, free=30)
    room = Room(reserve, limit)
    inside = 59
    room.unused_bytes = lambda: inside
    assert not room.admits()
    inside = 60
    assert room.admits()
    room.look()
    assert not is_full(room)
    assert room.free_bytes == 10, "the least of all"
    inside = 0
    room.look()
    assert room.free_bytes == 0


def test_a_limit_of_the_file_keeps_a_share_of_its_pages(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "limited.db"))
    connection.execute("CREATE TABLE t (x)")
    (page,) = next(connection.execute("PRAGMA page_size"))

    def most() -> int:
        (found,) = next(connection.execute("PRAGMA max_page_count"))
        return int(found)

    limit = FileLimit(connection, 320 * page + 1)
    assert most() == 300
    limit.keep(1)
    assert most() == 310
    limit.keep(0)
    assert most() == 320
    assert limit.restored()
    assert most() == 300
    assert limit.margin_bytes == 20 * page
    (used,) = next(connection.execute("PRAGMA page_count"))
    assert limit.free_bytes() == (300 - used) * page
    connection.execute("INSERT INTO t VALUES (zeroblob(100000))")
    connection.execute("DELETE FROM t")
    assert limit.free_bytes() == (300 - used) * page, "what is unused is free"
    assert (limit.spare_bytes, limit.log_bytes) == (0, 1 << 62)
    limit.close()
    assert FileLimit(connection, 1).free_bytes() == 0, "never less than nothing"
    connection.close()


class Failure:
    """The part of a connection that tells which error the disk had."""

    def __init__(self, number: int) -> None:
        self.system_errno = number


@pytest.mark.parametrize(
    "error, code, number, is_it",
    [
        pytest.param(apsw.FullError, apsw.SQLITE_FULL, 0, True, id="SQLite says that it is full"),
        pytest.param(apsw.IOError, apsw.SQLITE_IOERR_WRITE, errno.ENOSPC, True, id="no space"),
        pytest.param(apsw.IOError, apsw.SQLITE_IOERR_WRITE, errno.EDQUOT, True, id="no quota"),
        pytest.param(apsw.IOError, apsw.SQLITE_IOERR_SHMSIZE, 0, True, id="no room for its index"),
        pytest.param(apsw.IOError, apsw.SQLITE_IOERR_WRITE, errno.EIO, False, id="the disk failed"),
        pytest.param(apsw.IOError, apsw.SQLITE_IOERR_FSYNC, errno.ENOSPC, False, id="a failed fsync never is"),
        pytest.param(apsw.IOError, None, errno.ENOSPC, False, id="nobody says which"),
        pytest.param(apsw.CorruptError, apsw.SQLITE_IOERR_WRITE, errno.ENOSPC, False, id="damage"),
    ],
)
def test_what_is_a_lack_of_room(error: type[apsw.Error], code: int | None, number: int, is_it: bool) -> None:
    raised: Any = error("failed")
    if code is not None:
        raised.extendedresult = code
    connection: Any = Failure(number)
    assert is_out_of_room(raised, connection) == is_it
