"""The reserve of a store: who may use it when there is no room, and when it is whole again."""

import asyncio
import errno
import os
from pathlib import Path

import apsw
import pytest

from situate.store.entries import Entry, Revision
from situate.store.errors import InUseError, StoreError, StoreFullError
from situate.store.sqlite import log as log_module
from situate.store.sqlite import schema
from situate.store.sqlite.file import lock
from situate.store.sqlite.log import TransactionLog
from situate.store.sqlite.room import GROWTH_BYTES, OVERWRITE_BYTES, Ballast, Need, Room, need_of
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
