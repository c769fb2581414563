"""Rows of the log: their numbers, their checksums, and how to fetch many in one step.

Each step of SQLite releases the interpreter lock, and has to get it back from a busy event loop: 500 rows one by one
took 14 ms beside a busy thread, and 2 ms in one step. So a query returns all rows as one text and one blob, and a
commit is one statement (schema.TAKE).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import apsw
import msgspec
from msgspec import Struct

from situate.store.entries import Entry, LeaseId, Revision
from situate.store.errors import CorruptError

PLACE_BITS: Final = 16
PLACES: Final = 1 << PLACE_BITS
"""Rows in a revision, at most. A row's number is its revision and its position in it."""
CHUNK: Final = 256
NO_ROW: Final = 0

_PACKED: Final = """
SELECT json_group_array(json_array(id, key, created, before, lease, crc, length(value))),
       CAST(group_concat(value, '') AS BLOB)
FROM (SELECT id, key, value, created, before, lease, crc FROM log WHERE {where} ORDER BY id {limit})
"""
BY_NUMBER: Final = _PACKED.format(where="id IN (SELECT value FROM json_each(?))", limit="")
BY_RANGE: Final = _PACKED.format(where="id > ? AND id <= ? AND key >= ? AND key < ?", limit="LIMIT ?")


class _Packed(Struct, array_like=True, gc=False):
    id: int
    key: str
    created: int
    before: int
    lease: int
    crc: int
    size: int | None


class Row(Struct, frozen=True, gc=False):
    """One write of one key; without an entry, its deletion."""

    id: int
    key: str
    entry: Entry | None
    before: int
    """The row it replaced, or NO_ROW."""

    @property
    def revision(self) -> Revision:
        return Revision(self.id >> PLACE_BITS)


_packed = msgspec.json.Decoder(list[_Packed])
_encode = msgspec.json.Encoder().encode


def encoded(values: Sequence[int] | Sequence[str]) -> str:
    """A list for json_each."""
    return _encode(values).decode()


def number(revision: int, place: int = 0) -> int:
    return (revision << PLACE_BITS) + place


def last_number(revision: int) -> int:
    return number(revision + 1) - 1


def checksum(row: int, key: str, value: bytes | None, created: int, before: int, lease: int) -> int:
    """Covers the whole row. SQLite's pages have no checksum, and a flipped bit must not be served."""
    size = -1 if value is None else len(value)
    return zlib.crc32(value or b"", zlib.crc32(f"{row} {created} {before} {lease} {size} {key}".encode()))


def fetch(connection: apsw.Connection, query: str, bindings: Sequence[Any]) -> list[Row]:
    """The rows of a packed query, with verified checksums."""
    texts, values = one(connection, query, bindings)
    blob = values or b""
    rows: list[Row] = []
    at = 0
    try:
        packed = _packed.decode(texts)
    except msgspec.DecodeError as error:
        raise CorruptError(f"cannot decode a row of the log: {error}") from None
    for row in packed:
        value = None if row.size is None else blob[at : (at := at + row.size)]
        if checksum(row.id, row.key, value, row.created, row.before, row.lease) != row.crc:
            raise CorruptError(f"row {row.id} of the log ({row.key!r}) does not match its checksum")
        revision = Revision(row.id >> PLACE_BITS)
        entry = None if value is None else Entry(row.key, value, Revision(row.created), revision, LeaseId(row.lease))
        rows.append(Row(row.id, row.key, entry, row.before))
    return rows


def by_number(connection: apsw.Connection, numbers: Iterable[int]) -> dict[int, Row]:
    """The rows with these numbers. CorruptError if one is missing."""
    wanted = list(numbers)
    found: dict[int, Row] = {}
    for start in range(0, len(wanted), CHUNK):
        for row in fetch(connection, BY_NUMBER, (encoded(wanted[start : start + CHUNK]),)):
            found[row.id] = row
    if len(found) != len(set(wanted)):
        absent = sorted(set(wanted) - set(found))
        raise CorruptError(f"row {absent[0]} of the log is missing, and {len(absent) - 1} more")
    return found


def one(connection: apsw.Connection, query: str, bindings: Sequence[Any] = ()) -> tuple[Any, ...]:
    """The only row of a query, in one step. CorruptError if a flipped bit has made text something else."""
    try:
        for row in connection.execute(query, bindings):
            return tuple(row)
    except (apsw.SQLError, UnicodeDecodeError) as error:  # a blob cannot be in JSON
        raise CorruptError(f"the file is damaged: {error}") from None
    raise CorruptError(f"a query that always has a row returned none: {' '.join(query.split())[:60]}")
