"""The lock of a database file, and connections to it."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from situate.store.errors import InUseError, StoreError
from situate.store.sqlite import schema

LOCK_SUFFIX: Final = ".lock"
OWNER_ONLY: Final = 0o600
HOLDER_BYTES: Final = 32
"""The size of a lock file, which names the process that has the lock."""


@dataclass(frozen=True, slots=True)
class Lock:
    """Two flocks, which the kernel releases when the process ends: of the lock file, which names the process, and of
    the database itself, which may have several names. Release it last: closing a handle of the database ends SQLite's
    own locks on it."""

    handle: int
    database: int

    def release(self) -> None:
        os.close(self.database)
        os.close(self.handle)

    def holds(self, path: Path) -> bool:
        """Whether the path still leads to the locked database: nobody has removed or replaced the file."""
        try:
            there, here = path.stat(), os.fstat(self.database)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # nobody can tell: look again
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def lock(path: Path) -> Lock:
    """Create the file if there is none, and lock it. It contains secrets, so only its owner may read it. InUseError
    names the process that has it."""
    handle = os.open(path.with_name(path.name + LOCK_SUFFIX), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(handle, HOLDER_BYTES).decode(errors="replace").strip() or "unknown"
        os.close(handle)
        raise InUseError(f"{path} is in use by another server, process {holder}") from None
    try:
        database = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
    except BaseException:
        os.close(handle)
        raise
    try:
        fcntl.flock(database, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(database)
        os.close(handle)
        raise InUseError(f"{path} is in use by another server, under another name of the same file") from None
    with suppress(OSError):  # the disk may be full, and this is for people
        os.pwrite(handle, f"{os.getpid()}\n".ljust(HOLDER_BYTES).encode(), 0)
    return Lock(handle, database)


def open_writer(path: Path) -> apsw.Connection:
    """Create or open the file, check it, prepare it."""
    schema.check_sqlite(apsw.sqlite_lib_version())
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY))
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        schema.prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> apsw.Connection:
    connection = _connect(path, apsw.SQLITE_OPEN_READONLY)
    schema.settle(connection)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path, flags: int) -> apsw.Connection:
    try:
        return apsw.Connection(str(path), flags=flags)
    except apsw.CantOpenError as error:
        raise StoreError(f"{path} cannot be opened: {error}") from None
