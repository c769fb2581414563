"""The log of the writer thread: many transactions in one commit of SQLite, each with its own outcome.

It knows nothing of threads or event loops. It raises StoreFullError (nothing was written; continue), or an SQLite
error, after which the state of the disk is unknown: stop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Final, TypeAlias, TypeVar

import apsw

from situate.store.entries import ABSENT, NO_LEASE, Batch, Event, LeaseId, Revision
from situate.store.errors import FutureRevisionError, LeaseNotFoundError, StoreFullError
from situate.store.sqlite import schema
from situate.store.sqlite.key_cache import KeyCache
from situate.store.sqlite.queries import heads
from situate.store.sqlite.room import Need, Room, is_out_of_room, need_of
from situate.store.sqlite.rows import NO_ROW, PLACES, checksum, last_number, number, one
from situate.store.transactions import (
    At,
    Committed,
    Delete,
    Guard,
    Outcome,
    Put,
    Transaction,
    changes,
    refusal,
)

SWEEP_ROWS: Final = 2_000
CHECKPOINT_PAGES: Final = 4_000
FULL_CHECKPOINT_PAGES: Final = 200
"""On a full disk the write-ahead log must not use up the reserve."""
WAL_PAGES: Final = 50_000
"""Beyond this size of the write-ahead log, a checkpoint waits for readers."""
READERS_MS: Final = 100
"""How long it waits, and all writers with it. A backup reads for minutes."""
NO_ROOM: Final = "no room for the write"
ROWS_PER_STATEMENT: Final = 512
"""A commit with no more rows than this is a single statement."""

_TO_SWEEP: Final = """
SELECT json_group_array(json_array(id, before, value IS NULL))
FROM (SELECT id, before, value FROM log WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)
"""

T = TypeVar("T")
CommitAnswer: TypeAlias = Outcome | LeaseNotFoundError | StoreFullError


class TransactionLog:
    """Owns the writing connection. It reads the counters once, since nobody else writes."""

    def __init__(self, connection: apsw.Connection, room: Room | None = None) -> None:
        self._connection = connection
        self.room = room or Room()
        counters = schema.load_counters(connection)
        self.revision = Revision(counters[schema.REVISION])
        self.compacted = Revision(counters[schema.COMPACTED])
        self._swept = counters[schema.SWEPT]
        self._wal_pages = 0
        self._page_bytes = int(one(connection, "PRAGMA page_size")[0])
        self._checkpoint_pages = min(CHECKPOINT_PAGES, self.room.log_bytes // self._page_bytes)
        self.room.unused_bytes = self._unused_bytes
        self._checkpoint_at = self._checkpoint_pages
        self._cache = KeyCache()
        self._leases = set(schema.load_leases(connection))
        connection.set_wal_hook(self._on_wal_commit)

    # -- transactions --------------------------------------------------------------------------------------------

    def commit(self, transactions: Sequence[Transaction]) -> tuple[list[CommitAnswer], list[Batch]]:
        """The outcome of each transaction, in order, and their batches. All are durable when this returns."""
        if self.room.admits():
            try:
                return self._commit(transactions)
            except StoreFullError:
                pass
        self.room.full = True
        return self._commit_with_reserve(transactions)

    def _commit_with_reserve(self, transactions: Sequence[Transaction]) -> tuple[list[CommitAnswer], list[Batch]]:
        """Commit what may use the reserve, and refuse the rest."""
        keys = [write.key for transaction in transactions for write in transaction.writes]
        self._look_up(sorted(self._cache.unknown(keys)))
        needs = [need_of(transaction, self._cache.entries.get) for transaction in transactions]
        answers: list[CommitAnswer] = [StoreFullError(NO_ROOM)] * len(transactions)
        for need in (Need.OVERWRITE, Need.DELETE):
            chosen = [at for at, wanted in enumerate(needs) if wanted >= need]
            try:
                made, batches = self._lending(partial(self._commit, [transactions[at] for at in chosen]), need)
            except StoreFullError:
                continue  # deletes may have more
            for at, answer in zip(chosen, made, strict=True):
                answers[at] = answer
            return answers, batches
        return answers, []

    def _lending(self, run: Callable[[], T], need: Need = Need.DELETE) -> T:
        """Run it; if there is no room, again with the reserve."""
        try:
            return run()
        except StoreFullError:
            self.room.full = True
            if not self.room.lend(need):
                raise
        self._move_log(apsw.SQLITE_CHECKPOINT_PASSIVE)  # before anybody else takes the room
        return run()

    def _commit(self, transactions: Sequence[Transaction]) -> tuple[list[CommitAnswer], list[Batch]]:
        keys = [each.key for transaction in transactions for each in (*transaction.guards, *transaction.writes)]
        with self._cache.drafting(keys):
            draft = self._draft_as_new(transactions, keys) or self._draft_after_lookup(transactions, keys)
            try:
                self._write(draft.cells())
            except apsw.ConstraintError:
                draft = self._draft_after_lookup(transactions, keys)
                self._write(draft.cells())
        self._accept(draft)
        return draft.answers, draft.batches

    def _draft_as_new(self, transactions: Sequence[Transaction], keys: Sequence[str]) -> _Draft | None:
        """Draft as if unknown keys did not exist. Those of new objects do not, and looking them up takes as long as the
        commit. None, unless SQLite would reject the rows if such a key existed after all."""
        unknown = self._cache.unknown(keys)
        to_check = [
            guard.key
            for transaction in transactions
            for guard in transaction.guards
            if guard.key in unknown and not _requires_absence(guard)
        ]
        self._look_up(to_check)
        draft = self._draft(transactions)
        return draft if unknown.difference(to_check) <= draft.new else None

    def _draft_after_lookup(self, transactions: Sequence[Transaction], keys: Sequence[str]) -> _Draft:
        """Draft after looking up all keys. Discards any earlier draft."""
        self._cache.forget(keys)
        self._look_up(keys)
        return self._draft(transactions)

    def _look_up(self, unknown: Sequence[str]) -> None:
        if unknown:
            self._cache.learn(heads(self._connection, unknown))

    def _accept(self, draft: _Draft) -> None:
        self.revision = draft.revision
        self._cache.grow(draft.bytes)

    def _draft(self, transactions: Sequence[Transaction]) -> _Draft:
        draft = _Draft(self.revision, self._cache, self._leases)
        draft.answers = [draft.take(transaction) for transaction in transactions]
        return draft

    def _write(self, cells: list[schema.Cell]) -> None:
        with self._rollback_on_error() if len(cells) <= ROWS_PER_STATEMENT * schema.COLUMNS else self._transaction():
            self._save(cells)

    def _save(self, cells: list[schema.Cell]) -> None:
        """Insert the rows. A single statement is a transaction by itself."""
        most = ROWS_PER_STATEMENT * schema.COLUMNS
        for start in range(0, len(cells), most):
            part = cells[start : start + most]
            rows = (
                1 << (len(part) // schema.COLUMNS - 1).bit_length()
            )  # a power of two, so that few statements are prepared
            part += [None] * (rows * schema.COLUMNS - len(part))
            self._connection.execute(_statement(rows), part)

    # -- leases --------------------------------------------------------------------------------------------------

    def grant(self, lease: LeaseId, ttl_s: int) -> LeaseId:
        with self._transaction() as connection:
            connection.execute("INSERT INTO lease VALUES (?, ?)", (lease, ttl_s))
        self._leases.add(lease)
        return lease

    def revoke(self, lease: LeaseId) -> list[Batch]:
        """Delete the keys of a lease at one revision, or at a few if there are very many."""
        return self._lending(lambda: self._revoke(lease))

    def _revoke(self, lease: LeaseId) -> list[Batch]:
        query = "SELECT json_group_array(key) FROM (SELECT key FROM live WHERE lease = ? ORDER BY key)"
        (text,) = one(self._connection, query, (lease,))
        keys: list[str] = json.loads(text)
        with self._cache.drafting(keys), self._transaction() as connection:
            self._look_up(sorted(self._cache.unknown(keys)))
            draft = _Draft(self.revision, self._cache, self._leases)
            for start in range(0, len(keys), PLACES):
                draft.take(Transaction((), tuple(Delete(key) for key in keys[start : start + PLACES])))
            self._save(draft.cells())
            connection.execute("DELETE FROM lease WHERE id = ?", (lease,))
        self._leases.discard(lease)
        self._accept(draft)
        return draft.batches

    # -- compaction ----------------------------------------------------------------------------------------------

    def compact(self, revision: Revision) -> Revision:
        """Serve nothing before this revision from now on; sweep() frees the space."""
        return self._lending(lambda: self._compact(revision))

    def _compact(self, revision: Revision) -> Revision:
        if revision > self.revision:
            raise FutureRevisionError(revision, self.revision)
        if revision > self.compacted:
            with self._transaction() as connection:
                schema.save_counter(connection, schema.COMPACTED, revision)
            self.compacted = revision
        return self.compacted

    def sweep(self) -> bool:
        """Delete some compacted rows. Returns whether there are more.

        Each row has the number of the row it replaced, so only rows since the last sweep are read.
        """
        return self._lending(self._sweep)

    def _sweep(self) -> bool:
        end = last_number(self.compacted)
        with self._transaction() as connection:
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
        """Checkpoint the write-ahead log, if it is time to. A full disk is no failure here."""
        if self._wal_pages < (FULL_CHECKPOINT_PAGES if self.room.full else self._checkpoint_at):
            return
        self._checkpoint_at = (
            self._wal_pages + self._checkpoint_pages
        )  # reset when the log restarts: see _on_wal_commit()
        mode = apsw.SQLITE_CHECKPOINT_RESTART if self._wal_pages > WAL_PAGES else apsw.SQLITE_CHECKPOINT_PASSIVE
        self._move_log(mode)

    def _unused_bytes(self) -> int:
        return int(one(self._connection, "PRAGMA freelist_count")[0]) * self._page_bytes

    def _move_log(self, mode: int) -> None:
        self._connection.set_busy_timeout(READERS_MS)
        with suppress(apsw.BusyError):
            try:
                self._connection.wal_checkpoint(mode=mode)
            except apsw.Error as error:
                if not is_out_of_room(error, self._connection):
                    raise
                self.room.full = True
            finally:
                self._connection.set_busy_timeout(schema.BUSY_MS)

    def close(self, *, in_order: bool) -> None:
        """`in_order`: checkpoint everything first. Otherwise nothing more is written, not even by SQLite."""
        if in_order:
            with suppress(apsw.Error):  # the write-ahead log has everything
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._connection.close()
        self.room.close()

    def _on_wal_commit(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self._wal_pages:
            self._checkpoint_at = self._checkpoint_pages
        self._wal_pages = pages
        return apsw.SQLITE_OK

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        with self._rollback_on_error():
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")

    @contextmanager
    def _rollback_on_error(self) -> Iterator[None]:
        """Roll back on any error. A full disk becomes StoreFullError."""
        try:
            yield
        except apsw.Error as error:
            if not is_out_of_room(error, self._connection):
                raise
            raise StoreFullError(f"{NO_ROOM}: {error}") from None
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


class _Draft:
    """A commit of SQLite being drafted."""

    def __init__(self, revision: Revision, cache: KeyCache, leases: Set[int]) -> None:
        """`cache` has all keys of the transactions; drafting changes it."""
        self.revision = revision
        self.answers: list[CommitAnswer] = []
        self.batches: list[Batch] = []
        self.new: set[str] = set()
        """Keys written as new. If one exists after all, SQLite rejects the rows."""
        self.bytes = 0
        """Of the values written."""
        self._leases = leases
        self._entries = cache.entries
        self._numbers = cache.numbers
        self._cells: list[schema.Cell] = []

    def take(self, transaction: Transaction) -> CommitAnswer:
        refused = refusal(transaction.guards, self._entries, self.revision)
        if refused is not None:
            return refused
        for write in transaction.writes:
            if isinstance(write, Put) and write.lease != NO_LEASE and write.lease not in self._leases:
                return LeaseNotFoundError(write.lease)
        revision = Revision(self.revision + 1)
        events = changes(transaction.writes, self._entries, revision)
        if events:
            self.revision = revision
            self.batches.append(Batch(revision, events))
            self._apply(events, number(revision))
        return Committed(self.revision)

    def _apply(self, events: Sequence[Event], first: int) -> None:
        """`first`: the number of the first row."""
        entries, numbers, cells = self._entries, self._numbers, self._cells
        for row, event in enumerate(events, first):
            key, entry = event.key, event.entry
            before = numbers.get(key, NO_ROW)
            if entry is None:
                del entries[key], numbers[key]
                cells += (row, key, None, 0, before, NO_LEASE, checksum(row, key, None, 0, before, NO_LEASE))
                continue
            if before == NO_ROW:
                self.new.add(key)
            entries[key] = entry
            numbers[key] = row
            value, created, lease = entry.value, entry.created, entry.lease
            self.bytes += len(value)
            cells += (row, key, value, created, before, lease, checksum(row, key, value, created, before, lease))

    def cells(self) -> list[schema.Cell]:
        """The cells of all rows to write, in order."""
        return [*self._cells, *schema.counted(schema.REVISION, self.revision)] if self._cells else []


def _requires_absence(guard: Guard) -> bool:
    return isinstance(guard, At) and guard.revision == ABSENT


@lru_cache(maxsize=16)
def _statement(rows: int) -> str:
    return schema.TAKE + ",".join(["(" + ",".join("?" * schema.COLUMNS) + ")"] * rows)
