"""Finds out whether a transaction happened when its answer was lost.

Each transaction borrows a marker: a key of ours whose revision we know. The transaction requires that revision, and
writes the marker. If no answer comes, we write the marker ourselves, under the same condition. If that succeeds, the
transaction did not happen, and never will, however late it arrives. If it is refused, the marker has the token of the
transaction that wrote it, and its revision.

Markers belong to a lease, so that those of stopped servers go away. If the lease itself has ended, the outcome is
unknown: writing the marker needs the lease, so that a deleted marker is not mistaken for a new one.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from situate.store.entries import Revision
from situate.store.errors import OutcomeUnknownError, StoreError
from situate.store.etcd.client import PAUSE_S, EtcdClient
from situate.store.etcd.errors import explained, is_final
from situate.store.etcd.protocol import EQUAL, LEASE_GRANT, LEASE_REVOKE, OF_MODIFIED, RANGE, TXN, message
from situate.store.etcd.rpc import RpcError
from situate.store.etcd.translation import reading

_Compare = message("Compare")
_RequestOp = message("RequestOp")
_Put = message("PutRequest")


@dataclass(slots=True)
class CommitMarker:
    """One key, borrowed by one transaction at a time."""

    key: bytes
    lease: int
    modified: int = 0

    def unchanged(self) -> Any:
        return _Compare(result=EQUAL, target=OF_MODIFIED, key=self.key, mod_revision=self.modified)

    def written(self, token: bytes) -> Any:
        return _RequestOp(request_put=_Put(key=self.key, value=token, lease=self.lease))


@dataclass(slots=True)
class CommitMarkers:
    """The free markers, and their lease. A marker with an unknown outcome is never used again."""

    client: EtcdClient
    prefix: str
    lease: int = 0
    _free: list[CommitMarker] = field(default_factory=list)
    _made: int = 0
    _tokens: int = 0
    _name: str = field(default_factory=lambda: secrets.token_hex(8))
    _renewing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def token(self) -> bytes:
        """The name of a transaction. No other has it, of this process or another."""
        self._tokens += 1
        return f"{self._name} {self._tokens}".encode()

    async def borrow(self) -> CommitMarker:
        if not self.lease:
            await self.renew(0)
        if self._free:
            return self._free.pop()
        self._made += 1
        return CommitMarker(f"{self.prefix}{self._name}/{self._made}".encode(), self.lease)

    def give_back(self, marker: CommitMarker, modified: int) -> None:
        marker.modified = modified
        if marker.lease == self.lease:
            self._free.append(marker)

    async def renew(self, lost: int) -> None:
        """Get a new lease, unless another caller has replaced `lost` already. Its markers are gone too."""
        async with self._renewing:
            if self.lease == lost:
                self._free.clear()
                granted = await self.client.ask(
                    LEASE_GRANT, LEASE_GRANT.request(TTL=self.client.settings.markers_ttl_s)
                )
                self.lease = granted.ID

    async def keep_alive(self) -> None:
        """Renew the lease until cancelled."""
        while True:
            await asyncio.sleep(self.client.settings.markers_ttl_s / 4)
            lease = self.lease
            try:
                if lease and not await self.client.keep_alive(lease):
                    await self.renew(lease)
            except StoreError:
                continue  # no answer; if the lease ends, the next transaction gets another

    async def end(self) -> None:
        """Delete the markers. If etcd does not answer at once, they expire with the lease."""
        lease, self.lease = self.lease, 0
        with suppress(RpcError):
            await self.client.try_once(LEASE_REVOKE, LEASE_REVOKE.request(ID=lease))

    async def resolve(self, marker: CommitMarker, token: bytes) -> Revision | None:
        """The revision of the transaction with this token; None: it did not happen, and never will."""
        deadline = asyncio.get_running_loop().time() + self.client.settings.give_up_s
        fence = b"fence " + token
        request = TXN.request(
            compare=[marker.unchanged()], success=[marker.written(fence)], failure=[reading(marker.key)]
        )
        while True:
            try:
                return self._verdict(marker, token, fence, await self.client.try_once(TXN, request))
            except RpcError as error:
                if is_final(error) or asyncio.get_running_loop().time() > deadline:
                    raise OutcomeUnknownError(f"unknown whether a write happened: {explained(error)}") from None
            await asyncio.sleep(PAUSE_S)

    async def look(self, marker: CommitMarker, token: bytes) -> Revision | None:
        """The same for a transaction that etcd has answered: it is no longer in flight, so reading is enough."""
        answer = await self.client.ask(RANGE, RANGE.request(key=marker.key))
        modified = answer.kvs[0].mod_revision if answer.kvs else 0
        self.give_back(marker, modified)
        return Revision(modified) if modified and answer.kvs[0].value == token else None

    def _verdict(self, marker: CommitMarker, token: bytes, fence: bytes, answer: Any) -> Revision | None:
        if answer.succeeded:
            self.give_back(marker, answer.header.revision)
            return None
        kvs = answer.responses[0].response_range.kvs
        value = kvs[0].value if kvs else b""
        if value == fence:
            self.give_back(marker, kvs[0].mod_revision)
            return None
        if value == token:
            self.give_back(marker, kvs[0].mod_revision)
            return Revision(kvs[0].mod_revision)
        raise OutcomeUnknownError("unknown whether a write happened: its marker is gone")
