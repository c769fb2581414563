"""The store in memory: the reference for the others, and enough for a server that need not survive a restart.

Everything happens between two awaits, so there are no locks.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import islice

from situate.store.concurrent import commit_concurrently
from situate.store.entries import NO_LEASE, Batch, Entry, Event, LeaseId, Page, ReadResult, Revision
from situate.store.errors import (
    ClosedError,
    CompactedError,
    FutureRevisionError,
    InvalidRequestError,
    LeaseNotFoundError,
    StoreError,
)
from situate.store.feed import Feed, FeedWatch
from situate.store.keys import first_after, prefix_end
from situate.store.lease_expiry import LeaseExpiry
from situate.store.transactions import Committed, Delete, Guard, Outcome, Put, Write, changes, refusal, validated

FIRST = Revision(1)
LEASE_BITS = 62


class MemoryStore:
    """The current entries, and the history since the last compaction."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._keys: list[str] = []
        self._batches: list[Batch] = []
        self._compacted = FIRST
        self._leases: dict[LeaseId, dict[str, None]] = {}
        self._expiry = LeaseExpiry(self._end_lease)
        self._feed = Feed(FIRST, self._history)

    @property
    def problem(self) -> str:
        return ""

    # -- writing -------------------------------------------------------------------------------------------------

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        transaction = validated(guards, writes)
        self._check_open()
        refused = refusal(transaction.guards, self._entries, self._feed.revision)
        if refused is not None:
            return refused
        for write in transaction.writes:
            if isinstance(write, Put) and write.lease != NO_LEASE and write.lease not in self._leases:
                raise LeaseNotFoundError(write.lease)
        return Committed(self._write(transaction.writes))

    async def commit_each(
        self, transactions: Sequence[tuple[Iterable[Guard], Iterable[Write]]]
    ) -> Sequence[Outcome | StoreError]:
        return await commit_concurrently(self, transactions)

    def _write(self, writes: Sequence[Write]) -> Revision:
        """The revision of the writes; the current one if they change nothing."""
        revision = Revision(self._feed.revision + 1)
        events = changes(writes, self._entries, revision)
        if not events:
            return self._feed.revision
        for event in events:
            self._apply(event)
        batch = Batch(revision, events)
        self._batches.append(batch)
        self._feed.publish(batch)
        return revision

    def _apply(self, event: Event) -> None:
        if event.entry is None:
            del self._entries[event.key]
            del self._keys[bisect_left(self._keys, event.key)]
            return
        if event.before is None:
            insort(self._keys, event.key)
        self._entries[event.key] = event.entry
        if event.entry.lease != NO_LEASE:
            self._leases[event.entry.lease][event.key] = None

    # -- reading -------------------------------------------------------------------------------------------------

    async def read(self, keys: Sequence[str], at: Revision | None = None) -> ReadResult:
        revision, past = self._at(at)
        return ReadResult(revision, tuple(past[key] if key in past else self._entries.get(key) for key in keys))

    async def scan(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        revision, past = self._at(at)
        start = max(prefix, first_after(after)) if after else prefix
        end = prefix_end(prefix)
        until = len(self._keys) if end is None else bisect_left(self._keys, end)
        keys = self._keys[bisect_left(self._keys, start) : until]
        if past:
            now = (key for key in keys if key not in past)
            then = (key for key, entry in past.items() if entry and key >= start and key.startswith(prefix))
            keys = sorted([*now, *then])
        shown = keys[:limit] if limit else keys
        entries = tuple([past.get(key) or self._entries[key] for key in shown])
        return Page(revision, entries, len(keys) - len(shown))

    async def revision(self) -> Revision:
        self._check_open()
        return self._feed.revision

    def _at(self, at: Revision | None) -> tuple[Revision, dict[str, Entry | None]]:
        """The revision to read at, and the entries at that time of keys written since."""
        self._check_open()
        if at is None or at == self._feed.revision:
            return self._feed.revision, {}
        if at > self._feed.revision:
            raise FutureRevisionError(at, self._feed.revision)
        if at < self._compacted:
            raise CompactedError(at, self._compacted)
        past: dict[str, Entry | None] = {}
        for batch in islice(self._batches, self._batches_until(at), None):
            for event in batch.events:
                past.setdefault(event.key, event.before)
        return at, past

    def _batches_until(self, revision: Revision) -> int:
        """How many batches are at this revision or before."""
        return bisect_right(self._batches, revision, key=lambda batch: batch.revision)

    # -- history -------------------------------------------------------------------------------------------------

    def watch(self, prefix: str, after: Revision) -> FeedWatch:
        return self._feed.watch(prefix, after)

    async def _history(self, prefix: str, after: Revision, until: Revision) -> tuple[list[Batch], Revision]:
        if after < self._compacted:
            raise CompactedError(after, self._compacted)
        batches: list[Batch] = []
        for batch in islice(self._batches, self._batches_until(after), self._batches_until(until)):
            events = tuple(event for event in batch.events if event.key.startswith(prefix))
            if events:
                batches.append(Batch(batch.revision, events))
        return batches, until

    async def compact(self, revision: Revision) -> None:
        self._check_open()
        if revision > self._feed.revision:
            raise FutureRevisionError(revision, self._feed.revision)
        if revision > self._compacted:
            del self._batches[: self._batches_until(revision)]
            self._compacted = revision

    # -- leases --------------------------------------------------------------------------------------------------

    async def grant(self, ttl_s: int) -> LeaseId:
        self._check_open()
        if ttl_s < 1:
            raise InvalidRequestError("a lease lasts at least a second")
        lease = LeaseId(secrets.randbits(LEASE_BITS) + 1)
        self._leases[lease] = {}
        self._expiry.add(lease, ttl_s)
        return lease

    async def keep_alive(self, lease: LeaseId) -> bool:
        self._check_open()
        return self._expiry.keep_alive(lease)

    async def revoke(self, lease: LeaseId) -> None:
        self._check_open()
        self._expiry.drop(lease)
        self._end_lease(lease)

    def _end_lease(self, lease: LeaseId) -> None:
        """Delete its keys, except those written since with another lease or none."""
        held = self._leases.pop(lease, {})
        self._write([Delete(key) for key in sorted(held) if key in self._entries and self._entries[key].lease == lease])

    # -- the end -------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        self._expiry.close()
        self._feed.end(ClosedError())

    def _check_open(self) -> None:
        if self._feed.ended:
            raise self._feed.ended
