"""Queries of the readers. Each runs in one read transaction, so its result is of one revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import apsw
import msgspec

from situate.store.entries import Batch, Event, Page, ReadResult, Revision
from situate.store.errors import CompactedError, CorruptError, FutureRevisionError
from situate.store.keys import first_after, prefix_end
from situate.store.sqlite.rows import BY_RANGE, NO_ROW, PLACES, Row, by_number, encoded, fetch, last_number, one
from situate.store.sqlite.schema import COMPACTED, REVISION, load_counters

HISTORY_ROWS: Final = 512
# Any blob is greater than any text, so this is after every key.
_NO_END: Final = b""

_HEADS: Final = """
SELECT json_group_array(json_array(key, id)) FROM live WHERE key IN (SELECT value FROM json_each(?))
"""
_RANGE: Final = """
SELECT json_group_array(json_array(key, id))
FROM (SELECT key, id FROM live WHERE key >= ? AND key < ? ORDER BY key LIMIT ?)
"""
_COUNT: Final = "SELECT count(*) FROM live WHERE key >= ? AND key < ?"
# The first row of each key after a revision; the row it replaced was current at that revision.
_SINCE: Final = """
SELECT json_group_array(json_array(key, before))
FROM (SELECT key, before, min(id) FROM log WHERE id > ? AND key >= ? AND key < ? GROUP BY key)
"""

T = TypeVar("T")
_decode_pairs: Final = msgspec.json.Decoder(list[tuple[str, int]]).decode


def snapshot(connection: apsw.Connection, ask: Callable[[apsw.Connection, Revision, Revision], T]) -> T:
    """Run a query in one read transaction, with the newest and the compacted revision."""
    connection.execute("BEGIN")
    try:
        counters = load_counters(connection)
        return ask(connection, Revision(counters[REVISION]), Revision(counters[COMPACTED]))
    finally:
        connection.execute("ROLLBACK")


def heads(connection: apsw.Connection, keys: Sequence[str]) -> dict[str, Row]:
    """The current rows of these keys, without those that do not exist."""
    return _rows(connection, _pairs(connection, _HEADS, encoded(list(dict.fromkeys(keys)))))


def read(connection: apsw.Connection, keys: Sequence[str], at: Revision | None) -> ReadResult:
    def ask(connection: apsw.Connection, newest: Revision, compacted: Revision) -> ReadResult:
        revision = _reachable(at, newest, compacted)
        if revision == newest:
            found = heads(connection, keys)
        else:
            found = {}
            for key in keys:
                found.update(_rows(connection, _standing(connection, key, first_after(key), revision, newest, 1)[0]))
        return ReadResult(revision, tuple(found[key].entry if key in found else None for key in keys))

    return snapshot(connection, ask)


def scan(connection: apsw.Connection, prefix: str, at: Revision | None, after: str, limit: int) -> Page:
    def ask(connection: apsw.Connection, newest: Revision, compacted: Revision) -> Page:
        revision = _reachable(at, newest, compacted)
        start = max(prefix, first_after(after)) if after else prefix
        end = prefix_end(prefix)
        pairs, remaining = _standing(connection, start, _NO_END if end is None else end, revision, newest, limit)
        rows = _rows(connection, pairs).values()
        return Page(revision, tuple(row.entry for row in rows if row.entry is not None), remaining)

    return snapshot(connection, ask)


def history(connection: apsw.Connection, prefix: str, after: Revision, until: Revision) -> tuple[list[Batch], Revision]:
    """See feed.History: as many whole revisions as fit."""

    def ask(connection: apsw.Connection, _: Revision, compacted: Revision) -> tuple[list[Batch], Revision]:
        if after < compacted:
            raise CompactedError(after, compacted)
        rows, complete = _written(connection, prefix, after, until)
        before = by_number(connection, (row.before for row in rows if row.before != NO_ROW))
        batches: dict[Revision, list[Event]] = {}
        for row in rows:
            event = Event(row.key, row.entry, before[row.before].entry if row.before != NO_ROW else None)
            batches.setdefault(row.revision, []).append(event)
        return [Batch(revision, tuple(events)) for revision, events in batches.items()], complete

    return snapshot(connection, ask)


def _written(connection: apsw.Connection, prefix: str, after: Revision, until: Revision) -> tuple[list[Row], Revision]:
    end = prefix_end(prefix)
    most = HISTORY_ROWS
    while True:
        span = (last_number(after), last_number(until), prefix, _NO_END if end is None else end, most)
        rows = fetch(connection, BY_RANGE, span)
        if len(rows) < most:
            return rows, until
        # The last revision may continue beyond the limit: leave it for the next call.
        whole = [row for row in rows if row.revision != rows[-1].revision]
        if whole:
            return whole, whole[-1].revision
        most = PLACES + 1


def _standing(
    connection: apsw.Connection, start: str, end: str | bytes, revision: Revision, newest: Revision, limit: int
) -> tuple[dict[str, int], int]:
    """Keys and row numbers at a revision, in order, up to the limit; and how many more there were."""
    since: dict[str, int] = {}
    if revision < newest:
        since = _pairs(connection, _SINCE, last_number(revision), start, end)
    pairs = _pairs(connection, _RANGE, start, end, limit + len(since) if limit else -1)
    scanned = len(pairs)
    for key in since:
        pairs.pop(key, None)
    then = pairs | {key: row for key, row in since.items() if row != NO_ROW}
    ordered = {key: then[key] for key in sorted(then)} if since else then
    if not limit or (len(ordered) <= limit and scanned < limit + len(since)):
        return ordered, 0
    # There were at least as many as asked for before the last key that was scanned, so these are the first.
    kept = dict(list(ordered.items())[:limit])
    return kept, _count(connection, start, end, since) - len(kept)


def _count(connection: apsw.Connection, start: str, end: str | bytes, since: dict[str, int]) -> int:
    (live,) = one(connection, _COUNT, (start, end))
    written_since = len(_pairs(connection, _HEADS, encoded(list(since)))) if since else 0
    return int(live) - written_since + sum(row != NO_ROW for row in since.values())


def _pairs(connection: apsw.Connection, query: str, *bindings: str | bytes | int) -> dict[str, int]:
    (text,) = one(connection, query, bindings)
    return dict(_decode_pairs(text))


def _rows(connection: apsw.Connection, pairs: dict[str, int]) -> dict[str, Row]:
    """In the order of the pairs, and each with an entry."""
    found = by_number(connection, pairs.values())
    rows = {key: found[number] for key, number in pairs.items()}
    for key, row in rows.items():
        if row.key != key or row.entry is None:
            raise CorruptError(f"{key!r} refers to a row of another key: {row.id}")
    return rows


def _reachable(at: Revision | None, newest: Revision, compacted: Revision) -> Revision:
    if at is None:
        return newest
    if at > newest:
        raise FutureRevisionError(at, newest)
    if at < compacted:
        raise CompactedError(at, compacted)
    return at
