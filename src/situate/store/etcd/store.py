"""The store in etcd. Several servers may share it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

from situate.store.concurrent import commit_concurrently
from situate.store.entries import NO_LEASE, Entry, LeaseId, Page, ReadResult, Revision
from situate.store.errors import (
    ClosedError,
    CompactedError,
    FutureRevisionError,
    InvalidRequestError,
    LeaseNotFoundError,
    StoreError,
    UnavailableError,
)
from situate.store.etcd import errors
from situate.store.etcd.client import PAUSE_S, EtcdClient
from situate.store.etcd.commit_markers import CommitMarker, CommitMarkers
from situate.store.etcd.encoding import encoded
from situate.store.etcd.format import open_marker
from situate.store.etcd.protocol import COMPACT, LEASE_GRANT, LEASE_REVOKE, LEASE_TIME_TO_LIVE, RANGE, TXN
from situate.store.etcd.rpc import RpcError
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.shared_watch import EtcdFeedWatch, SharedWatch
from situate.store.etcd.translation import Keys, found_in, reading
from situate.store.format import StoreMarker
from situate.store.keys import first_after
from situate.store.transactions import (
    MAX_OPERATIONS,
    Committed,
    Guard,
    Outcome,
    Put,
    Refused,
    Transaction,
    Write,
    holds,
    validated,
)

SCAN_AT_ONCE: Final = 5_000


class EtcdStore:
    """Use open(), in the event loop that uses the store."""

    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._keys = Keys(client.settings.prefix)
        self._markers = CommitMarkers(client, self._keys.markers)
        self._keeping = asyncio.create_task(self._markers.keep_alive())
        self._watches = SharedWatch(client, self._keys, self.revision)
        self._probing = asyncio.create_task(client.probe(self._watches.tick))
        self.marker: StoreMarker | None = None
        """Set by open()."""
        self._full = ""

    @classmethod
    async def open(cls, settings: EtcdSettings) -> Self:
        """UnavailableError if no endpoint answers. `problem` shows an outage within its first second."""
        store = cls(EtcdClient(settings))
        try:
            store.marker = await open_marker(store._client, store._keys)
            await store.revision()
        except BaseException:
            await store.aclose()
            raise
        return store

    @property
    def problem(self) -> str:
        return self._client.problem or self._full

    # -- writing -------------------------------------------------------------------------------------------------

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        """Send once. Without an answer, the marker tells whether it happened; if not, send again."""
        asked = validated(guards, writes)
        deadline = asyncio.get_running_loop().time() + self._client.settings.give_up_s
        while True:
            marker = await self._markers.borrow()
            token = self._markers.token()
            try:
                answer = await self._client.try_once(TXN, self._request(asked, marker, token))
            except RpcError as error:
                revision = await self._found_out(asked, marker, token, error)
                if revision is not None:
                    return Committed(revision)
            else:
                outcome = self._outcome(asked, marker, answer)
                if outcome is not None:
                    return outcome
            if asyncio.get_running_loop().time() > deadline:
                raise UnavailableError("etcd did not answer in time; the write did not happen")
            await asyncio.sleep(PAUSE_S)

    async def commit_each(
        self, transactions: Sequence[tuple[Iterable[Guard], Iterable[Write]]]
    ) -> Sequence[Outcome | StoreError]:
        return await commit_concurrently(self, transactions)

    def _request(self, asked: Transaction, marker: CommitMarker, token: bytes) -> Any:
        return encoded(self._keys, asked, marker.key, marker.modified, marker.lease, token)

    def _outcome(self, asked: Transaction, marker: CommitMarker, answer: Any) -> Outcome | None:
        """None: our own marker had changed, so nothing happened; retry with another marker."""
        revision = Revision(answer.header.revision)
        if answer.succeeded:
            self._full = ""
            self._markers.give_back(marker, revision)
            return Committed(revision)
        marked, *others = answer.responses
        kvs = marked.response_range.kvs
        if (kvs[0].mod_revision if kvs else 0) != marker.modified:
            return None
        self._markers.give_back(marker, marker.modified)
        found = tuple(found_in(self._keys, others))
        failed = tuple(guard for guard, entry in zip(asked.guards, found, strict=True) if not holds(guard, entry))
        return Refused(revision, failed, found)

    async def _found_out(
        self, asked: Transaction, marker: CommitMarker, token: bytes, error: RpcError
    ) -> Revision | None:
        """The revision if it happened after all; None: it did not, and may be sent again."""
        if errors.lease_is_gone(error):
            await self._blame(asked, marker)
            return None
        if errors.says(error, errors.NO_SPACE):
            # etcd returns the same error before and after it has done it.
            revision = await self._markers.look(marker, token)
            if revision is None:
                full = errors.explained(error)
                self._full = str(full)
                raise full from None
            return revision
        if errors.is_final(error):
            self._markers.give_back(marker, marker.modified)
            raise errors.explained(error) from None
        return await self._markers.resolve(marker, token)

    async def _blame(self, asked: Transaction, marker: CommitMarker) -> None:
        """Find the ended lease: one of the transaction's, or that of our markers, which we renew."""
        for write in asked.writes:
            if isinstance(write, Put) and write.lease != NO_LEASE and not await self._lives(write.lease):
                self._markers.give_back(marker, marker.modified)
                raise LeaseNotFoundError(write.lease)
        await self._markers.renew(marker.lease)

    # -- reading -------------------------------------------------------------------------------------------------

    async def read(self, keys: Sequence[str], at: Revision | None = None) -> ReadResult:
        """A read-only transaction, or several at the revision of the first."""
        entries: list[Entry | None] = []
        for start in range(0, len(keys), MAX_OPERATIONS):
            ranges = [reading(self._keys.there(key), at or 0) for key in keys[start : start + MAX_OPERATIONS]]
            answer = await self._ask(TXN, TXN.request(success=ranges), at)
            at = at or Revision(answer.header.revision)
            entries += found_in(self._keys, answer.responses)
        return ReadResult(await self.revision() if at is None else at, tuple(entries))

    async def scan(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        """Fetches a long range in pages, all at the revision of the first."""
        start = max(prefix, first_after(after)) if after else prefix
        entries: list[Entry] = []
        while True:
            most = min(limit - len(entries), SCAN_AT_ONCE) if limit else SCAN_AT_ONCE
            request = RANGE.request(
                key=self._keys.there(start), range_end=self._keys.end(prefix), limit=most, revision=at or 0
            )
            answer = await self._ask(RANGE, request, at, self._client.settings.scan_s)
            at = at or Revision(answer.header.revision)
            entries += [self._keys.entry(found) for found in answer.kvs]
            remaining = answer.count - len(answer.kvs)
            if not remaining or len(entries) == limit:
                return Page(at, tuple(entries), remaining)
            start = first_after(entries[-1].key)

    async def revision(self) -> Revision:
        request = RANGE.request(key=self._keys.there(""), count_only=True)
        return Revision((await self._ask(RANGE, request)).header.revision)

    async def _ask(self, method: Any, request: Any, at: Revision | None = None, timeout_s: float | None = None) -> Any:
        try:
            return await self._client.ask(method, request, timeout_s)
        except InvalidRequestError as error:
            if errors.COMPACTED in str(error):
                raise CompactedError(at or Revision(0), Revision((at or 0) + 1)) from None
            if errors.FUTURE in str(error):
                raise FutureRevisionError(at or Revision(0), await self.revision()) from None
            raise

    # -- history -------------------------------------------------------------------------------------------------

    def watch(self, prefix: str, after: Revision) -> EtcdFeedWatch:
        return self._watches.watch(prefix, after)

    async def compact(self, revision: Revision) -> None:
        try:
            await self._ask(COMPACT, COMPACT.request(revision=revision), revision)
        except CompactedError:
            return  # already compacted, by us or by another server

    # -- leases --------------------------------------------------------------------------------------------------

    async def grant(self, ttl_s: int) -> LeaseId:
        """Without an answer, request another; the unknown one expires."""
        if ttl_s < 1:
            raise InvalidRequestError("a lease lasts at least a second")
        return LeaseId((await self._client.ask(LEASE_GRANT, LEASE_GRANT.request(TTL=ttl_s))).ID)

    async def keep_alive(self, lease: LeaseId) -> bool:
        return await self._client.keep_alive(lease) > 0

    async def revoke(self, lease: LeaseId) -> None:
        try:
            await self._client.ask(LEASE_REVOKE, LEASE_REVOKE.request(ID=lease))
        except StoreError as error:
            if errors.NO_LEASE not in str(error):
                raise

    async def _lives(self, lease: LeaseId) -> bool:
        return await self.ttl_s(lease) >= 0

    async def ttl_s(self, lease: LeaseId) -> int:
        """The remaining time to live of the lease; negative: it has expired."""
        return int((await self._client.ask(LEASE_TIME_TO_LIVE, LEASE_TIME_TO_LIVE.request(ID=lease))).TTL)

    # -- the end -------------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        self._keeping.cancel()
        self._probing.cancel()
        await self._watches.end(ClosedError())
        if self._markers.lease:
            await self._markers.end()
        await self._client.aclose()
