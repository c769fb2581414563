"""The log as the thread that writes sees it: many transactions as one commit of SQLite, each with its own answer.

Knows nothing of threads or event loops. What it raises: StoreFullError (nothing was written, go on), or whatever SQLite
says, after which nobody knows what the disk holds: stop.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import chain
from typing import Final, TypeAlias

import apsw

from situate.store.entries import ABSENT, NO_LEASE, Batch, Entry, Event, LeaseId, Revision
from situate.store.errors import FutureRevisionError, LeaseNotFoundError, StoreFullError
from situate.store.sqlite import schema
from situate.store.sqlite.reading import heads
from situate.store.sqlite.rows import NO_ROW, PLACES, Row, checksum, last_number, number, one
from situate.store.transactions import (
    At,
    Committed,
    Delete,
    Guard,
    Outcome,
    Put,
    Refused,
    Transaction,
    changes,
    refusal,
)

SWEEP_ROWS: Final = 2_000
CHECKPOINT_PAGES: Final = 4_000
WAL_PAGES: Final = 50_000
"""With more than this in the write-ahead log, wait for readers rather than let it grow."""
REMEMBERED: Final = 8_192
"""Of how many keys it is remembered where they stand. What is written was most often written or guarded a moment ago;
to ask SQLite for it took a third of what Python does in a commit."""
REMEMBERED_BYTES: Final = 16 << 10
"""What has more in it is not remembered."""

TOGETHER: Final = 512
"""Rows in one statement, at most. A commit of no more than that is one statement and nothing else."""

_TO_SWEEP: Final = """
SELECT json_group_array(json_array(id, before, value IS NULL))
FROM (SELECT id, before, value FROM log WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)
"""

Answer: TypeAlias = Outcome | LeaseNotFoundError


class Log:
    """One connection, prepared; its counters are read once, as nobody else writes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        counters = schema.load_counters(connection)
        self.revision = Revision(counters[schema.REVISION])
        self.compacted = Revision(counters[schema.COMPACTED])
        self._swept = counters[schema.SWEPT]
        self._wal_pages = 0
        self._checkpoint_at = CHECKPOINT_PAGES
        self._stands: OrderedDict[str, Row] = OrderedDict()
        """Rows at which keys stand for certain, the one that was asked for last at the end. A plain dict takes ever
        longer to find its first key, the more of them were deleted."""
        self._leases = set(schema.load_leases(connection))
        connection.set_wal_hook(self._written)

    # -- transactions --------------------------------------------------------------------------------------------

    def commit(self, transactions: Sequence[Transaction]) -> tuple[list[Answer], list[Batch]]:
        """One answer for each, in order, and the batches that came of them. All durable when this returns."""
        keys = {each.key: None for asked in transactions for each in (*asked.guards, *asked.writes)}
        draft = self._as_if_new(transactions, keys) or self._drafted(transactions, self._heads(keys))
        try:
            self._write(draft.rows())
        except apsw.ConstraintError:
            draft = self._drafted(transactions, self._heads(keys))
            self._write(draft.rows())
        self._remember(keys, draft)
        self.revision = draft.revision
        return draft.answers, draft.batches

    def _as_if_new(self, transactions: Sequence[Transaction], keys: Iterable[str]) -> _Draft | None:
        """As it would be if keys that are not remembered were not there: those of new objects are not, and to look them
        up takes as long as the commit. Only what must have them written or be refused, so that, should one be there,
        SQLite says so; None if that is not so."""
        stands = self._stands
        unknown = {key for key in keys if key not in stands}
        if not unknown <= {write.key for asked in transactions for write in asked.writes if isinstance(write, Put)}:
            return None
        if any(guard.key in unknown and not _for_new(guard) for asked in transactions for guard in asked.guards):
            return None
        draft = self._drafted(transactions, {key: stands[key] for key in keys if key in stands})
        return None if any(isinstance(answer, Refused) for answer in draft.answers) else draft

    def _drafted(self, transactions: Sequence[Transaction], stand: dict[str, Row]) -> _Draft:
        draft = _Draft(self.revision, stand, self._leases)
        for asked in transactions:
            draft.answers.append(draft.take(asked))
        return draft

    def _write(self, rows: Sequence[schema.Taken]) -> None:
        with self._room() if len(rows) <= TOGETHER else self._writing():
            self._save(rows)

    def _save(self, rows: Sequence[schema.Taken]) -> None:
        """Up to a limit, in one statement: by itself, that is a transaction of SQLite."""
        for start in range(0, len(rows), TOGETHER):
            part = rows[start : start + TOGETHER]
            size = 1 << (len(part) - 1).bit_length()  # a power of two, so that few statements need to be prepared
            cells = list(chain.from_iterable(part))
            cells += [None] * (size * len(schema.NOTHING) - len(cells))
            self._connection.execute(_statement(size), cells)

    def _heads(self, keys: Iterable[str]) -> dict[str, Row]:
        """Where keys stand: those that are there."""
        stands = self._stands
        found = {key: stands[key] for key in keys if key in stands}
        unknown = [key for key in keys if key not in found]
        return found | heads(self._connection, unknown) if unknown else found

    def _remember(self, keys: Iterable[str], draft: _Draft) -> None:
        """After a commit, and never before: what was rolled back did not happen."""
        stands = self._stands
        for key in keys:
            row = draft.row(key)
            if row is not None and row.entry is not None and len(row.entry.value) <= REMEMBERED_BYTES:
                stands[key] = row
                stands.move_to_end(key)
            else:
                stands.pop(key, None)
        while len(stands) > REMEMBERED:
            stands.popitem(last=False)

    # -- leases --------------------------------------------------------------------------------------------------

    def grant(self, lease: LeaseId, ttl_s: int) -> LeaseId:
        with self._writing() as connection:
            connection.execute("INSERT INTO lease VALUES (?, ?)", (lease, ttl_s))
        self._leases.add(lease)
        return lease

    def revoke(self, lease: LeaseId) -> list[Batch]:
        """Its keys go at one revision, or at a few if there are very many."""
        with self._writing() as connection:
            query = "SELECT json_group_array(key) FROM (SELECT key FROM live WHERE lease = ? ORDER BY key)"
            (text,) = one(connection, query, (lease,))
            keys: list[str] = json.loads(text)
            draft = _Draft(self.revision, self._heads(keys), self._leases)
            for start in range(0, len(keys), PLACES):
                draft.take(Transaction((), tuple(Delete(key) for key in keys[start : start + PLACES])))
            self._save(draft.rows())
            connection.execute("DELETE FROM lease WHERE id = ?", (lease,))
        self._leases.discard(lease)
        self._remember(keys, draft)
        self.revision = draft.revision
        return draft.batches

    # -- compaction ----------------------------------------------------------------------------------------------

    def compact(self, revision: Revision) -> Revision:
        """From now on nothing before this revision is served; sweep() makes the room."""
        if revision > self.revision:
            raise FutureRevisionError(revision, self.revision)
        if revision > self.compacted:
            with self._writing() as connection:
                schema.save_counter(connection, schema.COMPACTED, revision)
            self.compacted = revision
        return self.compacted

    def sweep(self) -> bool:
        """Delete some rows that nobody can ask for any more; is there more to do?

        Each row knows which one it took the place of, so only rows since the last sweep are looked at.
        """
        end = last_number(self.compacted)
        with self._writing() as connection:
            (text,) = one(connection, _TO_SWEEP, (self._swept, end, SWEEP_ROWS))
            rows: list[tuple[int, int, int]] = json.loads(text)
            dead = [before for _, before, _ in rows if before != NO_ROW] + [row for row, _, gone in rows if gone]
            connection.execute("DELETE FROM log WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(dead),))
            swept = rows[-1][0] if len(rows) == SWEEP_ROWS else end
            schema.save_counter(connection, schema.SWEPT, swept)
        self._swept = swept
        return swept < end

    # -- the file ------------------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Move what is in the write-ahead log to its place, if it is time to. No room for it is not the end."""
        if self._wal_pages < self._checkpoint_at:
            return
        self._checkpoint_at = self._wal_pages + CHECKPOINT_PAGES  # unless it begins anew: see _written()
        mode = apsw.SQLITE_CHECKPOINT_RESTART if self._wal_pages > WAL_PAGES else apsw.SQLITE_CHECKPOINT_PASSIVE
        with suppress(apsw.FullError, apsw.BusyError):
            self._connection.wal_checkpoint(mode=mode)

    def close(self, *, in_order: bool) -> None:
        """In order: with nothing left in the write-ahead log. Otherwise nothing more is written, by SQLite neither."""
        if in_order:
            with suppress(apsw.Error):  # the log has it all, so nothing is lost
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._connection.close()

    def _written(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self._wal_pages:
            self._checkpoint_at = CHECKPOINT_PAGES
        self._wal_pages = pages
        return apsw.SQLITE_OK

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        with self._room():
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")

    @contextmanager
    def _room(self) -> Iterator[None]:
        """Whatever goes wrong, nothing was written. That there is no room is ours to say, and not the end."""
        try:
            yield
        except apsw.FullError as error:
            raise StoreFullError(f"no room for the write: {error}") from None
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


class _Draft:
    """A commit of SQLite as it grows: entries as the transactions so far have left them."""

    def __init__(self, revision: Revision, stand: dict[str, Row], leases: Set[int]) -> None:
        """`stand`: where the keys stand that are asked about; its own from now on."""
        self.revision = revision
        self.answers: list[Answer] = []
        self.batches: list[Batch] = []
        self._leases = leases
        self._stand = stand
        self._entries: dict[str, Entry] = {key: row.entry for key, row in stand.items() if row.entry is not None}
        self._rows: list[schema.Taken] = []

    def row(self, key: str) -> Row | None:
        """Where it stands by now; None: it is not there."""
        return self._stand.get(key)

    def take(self, asked: Transaction) -> Answer:
        refused = refusal(asked.guards, self._entries, self.revision)
        if refused is not None:
            return refused
        for write in asked.writes:
            if isinstance(write, Put) and write.lease != NO_LEASE and write.lease not in self._leases:
                return LeaseNotFoundError(write.lease)
        revision = Revision(self.revision + 1)
        events = changes(asked.writes, self._entries, revision)
        if events:
            self.revision = revision
            self.batches.append(Batch(revision, events))
            for place, event in enumerate(events):
                self._fold(number(revision, place), event)
        return Committed(self.revision)

    def _fold(self, row: int, event: Event) -> None:
        key, entry = event.key, event.entry
        stood = self._stand.pop(key, None)
        before = NO_ROW if stood is None else stood.id
        if entry is None:
            value, created, lease = None, 0, int(NO_LEASE)
            del self._entries[key]
        else:
            value, created, lease = entry.value, int(entry.created), int(entry.lease)
            self._entries[key] = entry
            self._stand[key] = Row(row, key, entry, before)
        self._rows.append((row, key, value, created, before, lease, checksum(row, key, value, created, before, lease)))

    def rows(self) -> list[schema.Taken]:
        """All that is to be written, in order."""
        return [*self._rows, schema.counted(schema.REVISION, self.revision)] if self._rows else []


def _for_new(guard: Guard) -> bool:
    return isinstance(guard, At) and guard.revision == ABSENT


@lru_cache(maxsize=16)
def _statement(rows: int) -> str:
    return schema.TAKE + ",".join(["(" + ",".join("?" * len(schema.NOTHING)) + ")"] * rows)
