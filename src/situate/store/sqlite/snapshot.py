"""Reads a whole file at one revision, beside the server that uses it; and makes a file from what was read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from situate.store.backup import BackupEntry
from situate.store.errors import BackupError, CorruptError, StoreError
from situate.store.format import StoreMarker, checked
from situate.store.sqlite import file, schema
from situate.store.sqlite.migrations import IDENTITY, RELEASE, read_about
from situate.store.sqlite.rows import NO_ROW, by_number, checksum, last_number, number, one

CHUNK: Final = 500
BUMP: Final = 1_000_000_000
"""How far a restored store's revisions are beyond all that clients have seen: the number in etcd's documentation."""
ROWS_PER_REVISION: Final = 10_000


@contextmanager
def snapshot_of(path: Path) -> Iterator[tuple[StoreMarker, int, Iterator[BackupEntry]]]:
    """The marker, the revision and the entries of a file, in one read transaction. The server writes on meanwhile."""
    if not path.exists():
        raise StoreError(f"there is no store in {path}")
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)  # its index of the log is shared
        try:
            schema.settle(connection)
            connection.execute("BEGIN")
            if one(connection, "PRAGMA application_id") != (schema.APPLICATION,):
                raise StoreError(f"{path} is not a store of situate")
            (found,) = one(connection, "PRAGMA integrity_check(1)")
            if found != "ok":
                raise CorruptError(f"{path} is damaged: {' '.join(str(found).split())}")
            about = read_about(connection)
            (version,) = one(connection, "PRAGMA user_version")
            marker = checked(StoreMarker(int(version), about.get(RELEASE, ""), about.get(IDENTITY, "")))
            yield marker, schema.load_counters(connection)[schema.REVISION], _entries(connection)
        finally:
            connection.close()
    except (apsw.NotADBError, apsw.CorruptError, apsw.IOError, apsw.CantOpenError) as error:
        raise CorruptError(f"{path} cannot be read: {error}") from None


def _entries(connection: apsw.Connection) -> Iterator[BackupEntry]:
    """In the order of keys. Each row's checksum is verified."""
    leases = schema.load_leases(connection)
    after = ""
    while True:
        query = "SELECT key, id FROM live WHERE key > ? ORDER BY key LIMIT ?"
        heads = [(str(key), int(row)) for key, row in connection.execute(query, (after, CHUNK))]
        rows = by_number(connection, (row for _, row in heads))
        for key, row in heads:
            entry = rows[row].entry
            if entry is None or entry.key != key:
                raise CorruptError(f"{key!r} refers to a row of another key: {row}")
            ttl_s = leases.get(entry.lease, 0)
            yield BackupEntry(key, entry.value, entry.modified, entry.lease if ttl_s else 0, ttl_s)
        if len(heads) < CHUNK:
            return
        after = heads[-1][0]


def make_store(path: Path, identity: str, after: int, entries: Iterable[BackupEntry]) -> int:
    """A new file with these entries, whole and synced. Returns its revision.

    All are written at new revisions, far beyond `after`, the newest that anybody has seen, and all history before them
    is compacted. So a client that resumes a watch has to list again, and a write on the condition of an old version
    is refused, even if the store goes back in time.
    """
    connection: apsw.Connection | None = None
    try:
        connection = file.open_writer(path)
        revision, place = after + BUMP, 0
        with connection:
            for entry in entries:
                if place == ROWS_PER_REVISION:
                    revision, place = revision + 1, 0
                row = number(revision, place)
                place += 1
                crc = checksum(row, entry.key, entry.value, revision, NO_ROW, entry.lease)
                cells = (row, entry.key, entry.value, revision, NO_ROW, entry.lease, crc)
                connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", cells)
                connection.execute("INSERT INTO live VALUES (?, ?, ?)", (entry.key, row, entry.lease))
                if entry.lease:
                    connection.execute("INSERT OR IGNORE INTO lease VALUES (?, ?)", (entry.lease, entry.ttl_s))
            schema.save_counter(connection, schema.REVISION, revision)
            schema.save_counter(connection, schema.COMPACTED, revision)
            schema.save_counter(connection, schema.SWEPT, last_number(revision))
            if identity:
                connection.execute("REPLACE INTO about VALUES (?, ?)", (IDENTITY, identity))
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        (found,) = one(connection, "PRAGMA integrity_check(1)")
        if found != "ok":
            raise BackupError(f"the restored store is damaged: {found}")
    except apsw.FullError:
        raise BackupError(f"there is no room for {path}; nothing was restored") from None
    except apsw.IOError as error:
        raise BackupError(f"{path} cannot be written ({error}); nothing was restored") from None
    finally:
        if connection is not None:
            connection.close()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return revision
