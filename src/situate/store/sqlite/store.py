"""The store in an SQLite file."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Self, TypeVar

import apsw

from situate.store.entries import Batch, LeaseId, Page, ReadResult, Revision
from situate.store.errors import (
    ClosedError,
    CorruptError,
    FailedError,
    FormatError,
    InvalidRequestError,
    StoreError,
    StoreFullError,
)
from situate.store.feed import Feed, FeedWatch
from situate.store.lease_expiry import LeaseExpiry
from situate.store.sqlite import file, queries, schema
from situate.store.sqlite.log import TransactionLog
from situate.store.sqlite.migrations import load_marker
from situate.store.sqlite.room import Ballast, FileLimit, Room
from situate.store.sqlite.writer import Commit, JobResults, Task, Writer
from situate.store.transactions import Guard, Outcome, Write, validated

READERS: Final = 2
LEASE_BITS: Final = 62
RETRY_EXPIRY_S: Final = 1.0
LOOK_S: Final = 1.0
"""How often to check that the file still exists, and whether a full disk has room again."""
PROBLEM: Final = "there is no room for {path}: writes are refused, and deletes still work; free some room on its disk"
FULL: Final = "There is no room for {path}: writes are refused, and deletes still work"
NOT_FULL: Final = "There is room for {path} again"
REMOVED: Final = "{path} was removed or replaced while it was in use; the store has stopped: put it back, and restart"

T = TypeVar("T")
_log = logging.getLogger(__name__)


def _look_at_room(log: TransactionLog) -> tuple[None, list[Batch]]:
    log.room.look()
    return None, []


class SqliteStore:
    """Use open(). A file can be open once."""

    def __init__(self, path: Path, lock: file.Lock, connection: apsw.Connection, room: Room) -> None:
        self._path = path
        self._lock = lock
        self.room: Final = room
        self.marker: Final = load_marker(connection)
        log = TransactionLog(connection, room)
        self._writer = Writer(log, asyncio.get_running_loop(), self._deliver)
        self._feed = Feed(log.revision, self._history)
        self._newest = log.revision
        self._expiry = LeaseExpiry(self._expired)
        for lease, ttl_s in schema.load_leases(connection).items():
            self._expiry.add(lease, ttl_s)
        self._readers = ThreadPoolExecutor(READERS, "store reader")
        self._snapshots: SimpleQueue[apsw.Connection] = SimpleQueue()
        for _ in range(READERS):
            self._snapshots.put(file.open_reader(path))
        self._stopped = asyncio.Event()
        self._compacting_to = Revision(0)
        self._compaction: asyncio.Task[None] | None = None
        self._writer.start()
        self._looking = asyncio.create_task(self._look(), name="store-file")

    @classmethod
    async def open(cls, path: Path, limit_bytes: int = 0, reserve_bytes: int = 0) -> Self:
        """Open or create the file. InUseError, CorruptError or StoreError has the reason in one line.

        `reserve_bytes`: what is kept back on the disk for deletes, at most; see room.py."""
        path = path.resolve()  # SQLite keeps its log beside the name that it was given
        try:
            lock = await asyncio.to_thread(file.lock, path)
        except OSError as error:
            raise StoreError(f"{path} cannot be opened: {error.strerror}") from None
        room = Room()
        try:
            if reserve_bytes:
                room = Room(Ballast.open(path, reserve_bytes))
            connection = await asyncio.to_thread(file.open_writer, path)
            if limit_bytes:
                room.add(FileLimit(connection, limit_bytes))
            return cls(path, lock, connection, room)
        except (CorruptError, FormatError) as error:
            room.close()
            lock.release()
            raise type(error)(f"{path}: {error}") from None
        except (OSError, apsw.FullError, apsw.IOError) as error:
            room.close()
            lock.release()
            raise StoreError(f"{path} cannot be opened: {error}") from None
        except BaseException:
            room.close()
            lock.release()
            raise

    @property
    def problem(self) -> str:
        return PROBLEM.format(path=self._path) if self.room.full else ""

    # -- writing -------------------------------------------------------------------------------------------------

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        self._check_open()
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._writer.submit(Commit(validated(guards, writes), answer))
        try:
            return await answer
        except StoreFullError:
            self._compact_now()
            raise

    async def commit_each(
        self, transactions: Sequence[tuple[Iterable[Guard], Iterable[Write]]]
    ) -> Sequence[Outcome | StoreError]:
        """The writer gets all of them in one iteration of the loop, and commits them together."""
        self._check_open()
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Outcome] | StoreError] = []
        for guards, writes in transactions:
            try:
                transaction = validated(guards, writes)
            except InvalidRequestError as error:
                answers.append(error)
            else:
                answer: asyncio.Future[Outcome] = loop.create_future()
                self._writer.submit(Commit(transaction, answer))
                answers.append(answer)
        return [one if isinstance(one, StoreError) else await self._answered(one) for one in answers]

    async def _answered(self, answer: asyncio.Future[Outcome]) -> Outcome | StoreError:
        try:
            return await answer
        except StoreError as error:
            if isinstance(error, StoreFullError):
                self._compact_now()
            return error

    def _compact_now(self) -> None:
        """Compact now, so that the refused caller may succeed when it retries."""
        newest = max(self._newest, self._feed.revision)
        if newest > self._compacting_to and (self._compaction is None or self._compaction.done()):
            self._compacting_to = newest
            self._compaction = asyncio.create_task(self._compact_quietly(newest), name="store-room")

    async def _compact_quietly(self, revision: Revision) -> None:
        try:
            await self.compact(revision)
        except StoreError:  # nobody awaits it
            self._compacting_to = Revision(0)

    async def compact(self, revision: Revision) -> None:
        """Sweeps in small steps, so that writes continue in between."""
        await self._perform(lambda log: (log.compact(revision), []))
        while await self._perform(lambda log: (log.sweep(), [])):
            pass

    async def _perform(self, run: Callable[[TransactionLog], tuple[T, list[Batch]]]) -> T:
        self._check_open()
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._writer.submit(Task(run, answer))
        return await answer

    def _deliver(self, answers: JobResults, batches: list[Batch], failed: FailedError | None) -> None:
        """Runs on the event loop. Watches get a commit before it is acknowledged."""
        for batch in batches:
            self._feed.publish(batch)
        if failed:
            self._feed.end(failed)
            self._expiry.close()
        for answer, value in answers:
            if answer.done():
                continue  # the caller was cancelled
            if isinstance(value, Exception):
                answer.set_exception(value)
            else:
                answer.set_result(value)

    # -- reading -------------------------------------------------------------------------------------------------

    async def read(self, keys: Sequence[str], at: Revision | None = None) -> ReadResult:
        found = await self._query(queries.read, tuple(keys), at)
        self._newest = max(self._newest, found.revision)
        return found

    async def scan(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        found = await self._query(queries.scan, prefix, at, after, limit)
        self._newest = max(self._newest, found.revision)
        return found

    async def revision(self) -> Revision:
        """A reader may have seen a commit that is acknowledged a moment later."""
        self._check_open()
        return max(self._newest, self._feed.revision)

    def watch(self, prefix: str, after: Revision) -> FeedWatch:
        return self._feed.watch(prefix, after)

    async def _history(self, prefix: str, after: Revision, until: Revision) -> tuple[list[Batch], Revision]:
        return await self._query(queries.history, prefix, after, until)

    async def _query(self, query: Callable[..., T], *arguments: Any) -> T:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._run_query, query, arguments)

    def _run_query(self, query: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """Runs in a reader thread."""
        connection = self._snapshots.get()
        try:
            return query(connection, *arguments)
        except (apsw.CorruptError, apsw.NotADBError, apsw.IOError) as error:
            raise CorruptError(f"{self._path} cannot be read: {error}") from None
        finally:
            self._snapshots.put(connection)

    # -- leases --------------------------------------------------------------------------------------------------

    async def grant(self, ttl_s: int) -> LeaseId:
        schema.check_ttl(ttl_s)
        lease = LeaseId(secrets.randbits(LEASE_BITS) + 1)
        await self._perform(lambda log: (log.grant(lease, ttl_s), []))
        self._expiry.add(lease, ttl_s)
        return lease

    async def keep_alive(self, lease: LeaseId) -> bool:
        self._check_open()
        return self._expiry.keep_alive(lease)

    async def revoke(self, lease: LeaseId) -> None:
        self._expiry.drop(lease)
        await self._perform(lambda log: (None, log.revoke(lease)))

    def _expired(self, lease: LeaseId) -> None:
        """Delete the keys of an expired lease. Retries if the disk is full."""

        def ended(answer: asyncio.Future[None]) -> None:
            if not answer.cancelled() and isinstance(answer.exception(), StoreFullError) and not self._feed.ended:
                loop.call_later(RETRY_EXPIRY_S, self._expired, lease)

        if self._feed.ended:
            return
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        answer.add_done_callback(ended)
        self._writer.submit(Task(lambda log: (None, log.revoke(lease)), answer))

    # -- the file ------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Runs until the file is gone: then a write would be acknowledged, and lost."""
        was_full = False
        while self._lock.holds(self._path):
            was_full = self._log_fullness(was_full)  # also if that ends with this look
            await self._perform(_look_at_room)
            if self.room.full:
                self._compact_now()
            was_full = self._log_fullness(was_full)
            await asyncio.sleep(LOOK_S)
        failed = FailedError(REMOVED.format(path=self._path))
        _log.error(str(failed))

        def fail(_log: TransactionLog) -> tuple[None, list[Batch]]:
            raise failed

        with suppress(FailedError):
            await self._perform(fail)

    def _log_fullness(self, was_full: bool) -> bool:
        if self.room.full != was_full:
            _log.warning((NOT_FULL if was_full else FULL).format(path=self._path))
        return self.room.full

    # -- the end -------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Finishes submitted writes first."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._looking.cancel()
        if self._compaction is not None:
            self._compaction.cancel()
        self._feed.end(ClosedError())
        self._expiry.close()
        self._writer.flush()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._readers.shutdown()
        while not self._snapshots.empty():
            self._snapshots.get().close()
        self._writer.stop()
        self._lock.release()

    def _check_open(self) -> None:
        ended: StoreError | None = self._feed.ended
        if ended:
            raise ended
