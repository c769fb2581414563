"""A store that encrypts the values of some resources on their way in, and decrypts them on their way out.

Whatever lies below, a file, its log, etcd or a backup, has no plain text of them. Values of other resources pass as
they are. A value that no key decrypts is passed on as it is: the cache reports it as unreadable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Self

from msgspec.structs import replace

from situate.loop.logs import Log
from situate.server.encryption.providers import CannotDecryptError, Providers
from situate.store.concurrent import commit_concurrently
from situate.store.contract import Store, Watch
from situate.store.entries import Batch, Entry, Event, LeaseId, Page, ReadResult, Revision
from situate.store.errors import InvalidRequestError, StoreError
from situate.store.transactions import At, Guard, Holds, Outcome, Put, Refused, Write

PAGE: Final = 500
REWRITE_S: Final = 3_600.0
MAX_LOGGED: Final = 20
"""How many undecryptable values are logged by key; the rest are only counted."""

_log = Log(__name__)


class EncryptedStore:
    """`providers` by the prefix of the keys that they are for."""

    def __init__(self, store: Store, providers: Mapping[str, Providers]) -> None:
        self._store = store
        self._providers = providers
        self._prefixes = tuple(providers)
        self.stale = 0
        """Values not encrypted with the first key, as of the last `rewrite`."""
        self._failed = 0

    @property
    def problem(self) -> str:
        return self._store.problem

    # -- writing -------------------------------------------------------------------------------------------------------

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        guards, writes = tuple(guards), tuple(writes)
        if any(isinstance(guard, Holds) and guard.key.startswith(self._prefixes) for guard in guards):
            raise InvalidRequestError("an encrypted value cannot be compared")
        if any(write.key.startswith(self._prefixes) for write in writes):
            writes = tuple(self._encrypted(write) for write in writes)
        outcome = await self._store.commit(guards, writes)
        if isinstance(outcome, Refused) and any(guard.key.startswith(self._prefixes) for guard in guards):
            return replace(outcome, found=tuple(self._decrypted(entry) for entry in outcome.found))
        return outcome

    async def commit_each(
        self, transactions: Sequence[tuple[Iterable[Guard], Iterable[Write]]]
    ) -> Sequence[Outcome | StoreError]:
        return await commit_concurrently(self, transactions)

    def _encrypted(self, write: Write) -> Write:
        if not isinstance(write, Put) or not write.key.startswith(self._prefixes):
            return write
        return replace(write, value=self._of(write.key).encrypt(write.key, write.value))

    def _of(self, key: str) -> Providers:
        return next(providers for prefix, providers in self._providers.items() if key.startswith(prefix))

    def _decrypted(self, entry: Entry | None) -> Entry | None:
        if entry is None or not entry.key.startswith(self._prefixes):
            return entry
        return self._readable(entry)

    def _readable(self, entry: Entry) -> Entry:
        if not entry.key.startswith(self._prefixes):
            return entry
        try:
            return replace(entry, value=self._of(entry.key).decrypt(entry.key, entry.value))
        except CannotDecryptError as error:
            self._failed += 1
            if self._failed <= MAX_LOGGED:
                _log.error("A stored value cannot be decrypted", err=str(error))
            return entry

    async def rewrite(self) -> int:
        """Re-encrypt every value that is not encrypted with the first key. Each value is one transaction, guarded
        by its revision, so this may be interrupted at any time. Returns how many values cannot be read."""
        unreadable = rewritten = 0
        for prefix, providers in self._providers.items():
            after = ""
            while True:
                page = await self._store.scan(prefix, after=after, limit=PAGE)
                stale = [entry for entry in page.entries if not providers.is_current(entry.value)]
                self.stale = unreadable + len(stale) + page.remaining
                for entry in stale:
                    try:
                        text = providers.decrypt(entry.key, entry.value)
                    except CannotDecryptError:
                        unreadable += 1
                        continue
                    value = providers.encrypt(entry.key, text)
                    await self._store.commit([At(entry.key, entry.modified)], [Put(entry.key, value, entry.lease)])
                    rewritten += 1
                if not page.remaining:
                    break
                after = page.entries[-1].key
        self.stale = unreadable
        if rewritten:
            _log.info("Stored values are encrypted with the first key now", values=rewritten)
        return unreadable

    # -- reading -------------------------------------------------------------------------------------------------------

    async def read(self, keys: Sequence[str], at: Revision | None = None) -> ReadResult:
        found = await self._store.read(keys, at)
        return replace(found, entries=tuple(self._decrypted(entry) for entry in found.entries))

    async def scan(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        page = await self._store.scan(prefix, at=at, after=after, limit=limit)
        return replace(page, entries=tuple(self._readable(entry) for entry in page.entries))

    def watch(self, prefix: str, after: Revision) -> Watch:
        return DecryptedWatch(self._store.watch(prefix, after), self)

    def decrypted(self, batch: Batch) -> Batch:
        if not any(event.key.startswith(self._prefixes) for event in batch.events):
            return batch
        events = tuple(
            Event(event.key, self._decrypted(event.entry), self._decrypted(event.before)) for event in batch.events
        )
        return replace(batch, events=events)

    # -- the rest ------------------------------------------------------------------------------------------------------

    async def revision(self) -> Revision:
        return await self._store.revision()

    async def compact(self, revision: Revision) -> None:
        await self._store.compact(revision)

    async def grant(self, ttl_s: int) -> LeaseId:
        return await self._store.grant(ttl_s)

    async def keep_alive(self, lease: LeaseId) -> bool:
        return await self._store.keep_alive(lease)

    async def revoke(self, lease: LeaseId) -> None:
        await self._store.revoke(lease)

    async def aclose(self) -> None:
        await self._store.aclose()


async def keep_current(store: EncryptedStore, every_s: float = REWRITE_S) -> None:
    """Runs until cancelled. After a restart with a new first key, this performs the key rotation."""
    while True:
        unreadable = await store.rewrite()
        if unreadable:
            _log.error("Stored values cannot be decrypted with the keys of the configuration", values=unreadable)
        await asyncio.sleep(every_s)


class DecryptedWatch:
    def __init__(self, watch: Watch, store: EncryptedStore) -> None:
        self._watch = watch
        self._store = store

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        return self._store.decrypted(await anext(self._watch))

    async def ask_progress(self) -> None:
        await self._watch.ask_progress()

    async def aclose(self) -> None:
        await self._watch.aclose()
