"""The reserve: room that is kept back, so that a full store can be emptied.

SQLite needs room to delete: for its write-ahead log, and for the row that says that a key is gone. So a file beside the
database, the ballast, takes some room that nobody else gets. An ordinary write that finds no room makes the store full.
From then on the writer refuses ordinary writes by itself, and others may use the reserve:

- half of it is for small overwrites that hardly grow: leases are renewed, statuses reported, pods told to terminate;
- all of it is for deletes and for compaction.

Once the disk has room for the whole reserve and some more, the ballast is filled again, and the store is not full any
longer. A limit of the file's size has the same reserve, in pages.

The file never shrinks: deletes leave unused room inside it, and a disk that the file has filled stays full. So unused
room counts as well: while it has the size of the reserve and some more, ordinary writes are accepted.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final, Protocol

import apsw

from situate.store.entries import Entry
from situate.store.sqlite.rows import one
from situate.store.transactions import Delete, Transaction

RESERVE_SHARE: Final = 16
"""The reserve is at most the 16th part of the disk, or of the file's limit."""
MARGIN_BYTES: Final = 4 << 20
"""How much room there must be beside the reserve before ordinary writes are accepted again."""
GROWTH_BYTES: Final = 4 << 10
"""How much an overwrite may grow in a full store: a pod that is to terminate gets a time and a condition."""
OVERWRITE_BYTES: Final = 64 << 10
"""The largest overwrite in a full store: until compaction, the old value takes its room beside the new one."""
BALLAST_SUFFIX: Final = ".reserve"
NO_LIMIT: Final = 1 << 62
WHOLE: Final = 2
"""How many halves the reserve has."""
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_OWNER_ONLY: Final = 0o600


class Need(IntEnum):
    """What a write may take from the reserve: the number of halves."""

    ORDINARY = 0
    OVERWRITE = 1
    DELETE = 2


def need_of(transaction: Transaction, find: Callable[[str], Entry | None]) -> Need:
    """`find` has the current entry of each key that the transaction writes."""
    old, new, creates, deletes = 0, 0, False, False
    for write in transaction.writes:
        before = find(write.key)
        old += 0 if before is None else len(before.value)
        if isinstance(write, Delete):
            deletes = True
        else:
            new += len(write.value)
            creates = creates or before is None
    if new > old + GROWTH_BYTES:
        return Need.ORDINARY
    if deletes:
        return Need.DELETE
    return Need.ORDINARY if creates or new > OVERWRITE_BYTES else Need.OVERWRITE


def is_out_of_room(error: apsw.Error, connection: apsw.Connection) -> bool:
    """Whether a write failed only for lack of room. A failed fsync never counts as that."""
    if isinstance(error, apsw.FullError):
        return True
    if not isinstance(error, apsw.IOError):
        return False
    code = getattr(error, "extendedresult", apsw.SQLITE_IOERR)  # SQLite sets it; a file system in Python does not
    return code == apsw.SQLITE_IOERR_SHMSIZE or (
        code == apsw.SQLITE_IOERR_WRITE and connection.system_errno in _NO_ROOM
    )


class KeptRoom(Protocol):
    """Room in two halves."""

    def keep(self, halves: int) -> None:
        """Give up all but so many halves."""

    def restored(self) -> bool:
        """Fill the reserve again. Returns whether both halves are reserved, with room to spare."""

    def free_bytes(self) -> int:
        """The room for ordinary writes."""

    @property
    def log_bytes(self) -> int:
        """How long the write-ahead log may get, so that half of the reserve is enough for a checkpoint."""

    @property
    def margin_bytes(self) -> int:
        """With so much room the store is no longer full."""

    @property
    def spare_bytes(self) -> int:
        """So much unused room inside the file is as good as the reserve; 0: `free_bytes` counts what is unused."""

    def close(self) -> None: ...


@dataclass(slots=True)
class Ballast:
    """A reserve on the disk: a file without content."""

    handle: int
    half_bytes: int
    path: Path

    @classmethod
    def open(cls, database: Path, most_bytes: int) -> Ballast:
        path = database.with_name(database.name + BALLAST_SUFFIX)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        disk = os.fstatvfs(handle)
        half = min(most_bytes, disk.f_blocks * disk.f_frsize // RESERVE_SHARE) // WHOLE
        return cls(handle, half, path)

    def keep(self, halves: int) -> None:
        most = halves * self.half_bytes
        if os.fstat(self.handle).st_size > most:
            os.ftruncate(self.handle, most)

    def restored(self) -> bool:
        missing = WHOLE * self.half_bytes - os.fstat(self.handle).st_blocks * 512
        if self.free_bytes() < max(missing, 0) + self.margin_bytes:
            return False
        try:
            os.posix_fallocate(self.handle, 0, WHOLE * self.half_bytes)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                return True  # this file system reserves nothing; a write finds out whether there is room
            os.ftruncate(self.handle, 0)  # another program was faster: what is left is for deletes
            return False
        return True

    def free_bytes(self) -> int:
        disk = os.fstatvfs(self.handle)
        return disk.f_bavail * disk.f_frsize

    @property
    def log_bytes(self) -> int:
        """Half of a half: the commit that reaches the limit makes the log longer than that."""
        return self.half_bytes // 2

    @property
    def margin_bytes(self) -> int:
        return min(MARGIN_BYTES, self.half_bytes)

    @property
    def spare_bytes(self) -> int:
        return WHOLE * self.half_bytes

    def close(self) -> None:
        os.close(self.handle)


class FileLimit:
    """A reserve below the limit of the file's size. SQLite refuses what exceeds it."""

    def __init__(self, connection: apsw.Connection, limit_bytes: int) -> None:
        self._connection = connection
        self._page_bytes = int(one(connection, "PRAGMA page_size")[0])
        self._most = max(1, limit_bytes // self._page_bytes)
        self._half = self._most // RESERVE_SHARE // WHOLE
        self.keep(WHOLE)

    def keep(self, halves: int) -> None:
        """SQLite lowers its limit to the file's size, and no further."""
        self._connection.execute(f"PRAGMA max_page_count = {max(1, self._most - halves * self._half)}")

    def restored(self) -> bool:
        """It is lent for one commit only, so what SQLite refuses afterwards is what does not fit."""
        self.keep(WHOLE)
        return True

    def free_bytes(self) -> int:
        (pages,) = one(self._connection, "PRAGMA page_count")
        (unused,) = one(self._connection, "PRAGMA freelist_count")
        return max(0, self._most - WHOLE * self._half - int(pages) + int(unused)) * self._page_bytes

    @property
    def log_bytes(self) -> int:
        return NO_LIMIT

    @property
    def margin_bytes(self) -> int:
        return WHOLE * self._half * self._page_bytes

    @property
    def spare_bytes(self) -> int:
        return 0

    def close(self) -> None:
        pass


class Room:
    """Tracks whether the store is full. Only the writer thread changes it."""

    def __init__(self, *reserves: KeptRoom) -> None:
        self._reserves = reserves
        self._kept = WHOLE
        self.full = False
        """Whether there is no room for ordinary writes. Any thread may ask."""
        self.free_bytes = 0
        """The room for ordinary writes as of the last `look`."""
        self.unused_bytes: Callable[[], int] = lambda: 0
        """Measures the unused room inside the file. The log sets it."""
        if not self._restored():
            self.full = True
            self.lend(Need.OVERWRITE)  # SQLite needs some room to open its files

    def add(self, reserve: KeptRoom) -> None:
        self._reserves = (*self._reserves, reserve)

    def admits(self) -> bool:
        """Whether ordinary writes may be tried: the reserve is whole, or can be made whole again, or there is as much
        room inside the file."""
        if self._kept < WHOLE and self._restored():
            self._kept = WHOLE
        if self._kept == WHOLE:
            return True
        return all(self._inside(reserve) >= reserve.margin_bytes for reserve in self._reserves if reserve.spare_bytes)

    def _inside(self, reserve: KeptRoom) -> int:
        """The room for ordinary writes inside the file."""
        return self.unused_bytes() - reserve.spare_bytes if reserve.spare_bytes else 0

    def _restored(self) -> bool:
        restored = [reserve.restored() for reserve in self._reserves]
        return all(restored)

    def look(self) -> None:
        """Check whether there is room again, even if nobody writes."""
        admits = self.admits()
        rooms = [(max(one.free_bytes(), self._inside(one)), one.margin_bytes) for one in self._reserves]
        self.free_bytes = min((free for free, _ in rooms), default=0)
        if self.full and admits and all(free >= margin for free, margin in rooms):
            self.full = False

    def lend(self, need: Need) -> bool:
        """Release what such a write may take from the reserve. False: it was released before."""
        kept = WHOLE - need
        if kept >= self._kept:
            return False
        self._kept = kept
        for reserve in self._reserves:
            reserve.keep(kept)
        return True

    @property
    def log_bytes(self) -> int:
        return min((reserve.log_bytes for reserve in self._reserves), default=NO_LIMIT)

    def close(self) -> None:
        for reserve in self._reserves:
            reserve.close()
