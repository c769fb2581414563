"""The watch cache: every stored object in memory, as of a revision. Reads and watches are served from here.

`start` loads the store page by page at one revision, then follows it. If the store has compacted the changes in
between, the cache loads everything again and ends all watches with 410. If the store fails, the cache stops answering.
A value that cannot be read as an object of its kind is kept apart, and logged once: see `unreadable`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

import msgspec

from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.errors import StatusError, expired, not_found
from situate.server.registry.keys import OBJECTS, ObjectKey, key_of, parse_key, prefix_of
from situate.server.registry.resource_cache import ResourceCache
from situate.server.registry.selectable_fields import PODS, SelectorValues
from situate.server.registry.store_errors import stale_cache, status_error
from situate.server.registry.stored_object import StoredObject, read_stored_at
from situate.server.registry.unreadable import STORED_AS, UnreadableObject, read_value, unreadable_error
from situate.server.registry.watchers import Change, WatchEvent
from situate.server.resources import RESOURCES, Resource
from situate.store.contract import Store, Watch
from situate.store.entries import Batch, Entry, Revision
from situate.store.errors import ClosedError, CompactedError, StoreError, UnavailableError

LOAD_PAGE: Final = 2_000
"""Entries in a page while loading."""
MAX_LOADS: Final = 5
"""How often to start loading again when the store compacts the revision being read."""
LOAD_AGAIN_S: Final = 1.0
"""The pause before the cache tries to load again, when the store did not answer."""
PROGRESS_S: Final = 0.05
"""How long to wait for a bookmark of the store before requesting another."""
FRESH_TIMEOUT_S: Final = 10.0
HISTORY_REVISIONS: Final = 10_000
"""Revisions of history to load at start, so that clients of the previous process can resume their watches."""
MAX_EXPECTED: Final = 4_096
"""Values kept by `expect`. An object that is not among them is decoded when it arrives."""
MAX_FAULTS: Final = 20
"""How often the cache loads everything because it could not apply an event, before it gives up."""
MAX_LOGGED: Final = 100
"""Unreadable values that are logged one by one when everything is loaded."""
RELOADED: Final = "too old resource version: the history of changes was lost; list again"

_NO_OBJECT: Final = ObjectKey("", "", "")
"""The key does not name an object."""
_log = Log(__name__)


class Cache:
    """All objects, in key order, and their recent changes."""

    def __init__(self, store: Store, *, shared: bool = False) -> None:
        """`shared`: others write to the store, too, so every change is checked. Everything loaded is always checked."""
        self._store = store
        self._shared = shared
        self.has_unreadable = False
        """Whether there are unreadable values. A cheap check to make first."""
        self._revision = 0
        self._resources: dict[str, ResourceCache] = {}
        self._expected: OrderedDict[str, tuple[bytes, SelectorValues]] = OrderedDict()
        self._watch: Watch | None = None
        self._following: asyncio.Task[None] | None = None
        self._failed: StoreError | None = None
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._tickets = count()

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The cache has every change up to this revision."""
        return self._revision

    @property
    def problem(self) -> str:
        """Why the cache has stopped answering, or the store does not answer, in one line; "" if all is well."""
        return self._store.problem if self._failed is None else str(self._failed)

    def get(self, resource: Resource, namespace: str, name: str) -> StoredObject | None:
        """The object as of `revision`, or None. Never waits."""
        return self.of(resource).get(key_of(resource, namespace, name))

    def all(self, resource: Resource, namespace: str = "") -> Iterator[StoredObject]:
        """Objects of a resource in key order, of one namespace or of all. Do not await while iterating."""
        return self.of(resource).walk(prefix_of(resource, namespace))

    def count(self, resource: Resource, namespace: str = "") -> int:
        return self.of(resource).count(prefix_of(resource, namespace))

    def on_node(self, node: str) -> list[StoredObject]:
        """Pods with this spec.nodeName, in key order."""
        return self._resources[PODS].on_node(node)

    def unreadable(self) -> Iterator[UnreadableObject]:
        """All unreadable values."""
        for cached in self._resources.values():
            yield from cached.unreadable.values()

    def unreadable_at(self, resource: Resource, namespace: str, name: str) -> UnreadableObject | None:
        return self.of(resource).unreadable.get(key_of(resource, namespace, name))

    def missing(self, resource: Resource, namespace: str, name: str) -> StatusError:
        """Why `get` has no such object: 404, or 500 if there is a value that cannot be read."""
        found = self.unreadable_at(resource, namespace, name)
        return not_found(resource.plural, resource.group, name) if found is None else unreadable_error(resource, found)

    def of(self, resource: Resource) -> ResourceCache:
        found = self._resources.get(resource.stored_as)
        if found is None or (found.is_namespaced != resource.namespaced and found.is_empty):  # a new custom kind
            found = self._resources[resource.stored_as] = ResourceCache(resource, self._revision)
        return found

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def wait_for(self, revision: int) -> None:
        """Wait until the cache has this revision, at which an object was written. StatusError if the store fails."""
        self._check_not_failed()
        if revision <= self._revision:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ticket = (revision, next(self._tickets), waiter)
        heappush(self._waiters, ticket)
        try:
            await waiter
        except asyncio.CancelledError:
            if ticket in self._waiters:  # the caller is gone; waiters for revisions that never come must not pile up
                self._waiters.remove(ticket)
                heapify(self._waiters)
            raise

    async def catch_up(self, revision: int, within_s: float) -> None:
        """Wait for a revision at which perhaps no object was written, and so no event will arrive: request progress
        from the store. TimeoutError; StatusError if the store fails."""
        self._check_not_failed()
        if revision <= self._revision:
            return
        async with asyncio.timeout(within_s):
            while revision > self._revision:
                if self._watch is not None:
                    try:
                        await self._watch.ask_progress()
                    except StoreError as error:
                        raise status_error(error) from error
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PROGRESS_S):
                        await self.wait_for(revision)

    async def wait_until_fresh(self) -> None:
        """Wait until the cache has every write acknowledged before this call; 504 if that takes too long."""
        try:
            newest = await self._store.revision()
        except StoreError as error:
            raise status_error(error) from error
        try:
            await self.catch_up(newest, FRESH_TIMEOUT_S)
        except TimeoutError:
            raise stale_cache() from None

    def bookmark(self) -> None:
        """Send the current revision to all watches that asked for bookmarks."""
        for cached in self._resources.values():
            # One for each resource: its line, cached by API version, has the kind of the resource.
            event = WatchEvent("BOOKMARK", self._revision)
            for watch in cached.broadcaster.watches():
                if watch.bookmarks:
                    watch.send(event)

    # -- following ----------------------------------------------------------------------------------------------------

    def expect(self, key: str, value: bytes, seen: SelectorValues) -> None:
        """Announce a write whose selector values are known: if this very value arrives, it need not be decoded. It may
        never arrive."""
        self._expected[key] = (value, seen)
        if len(self._expected) > MAX_EXPECTED:
            self._expected.popitem(last=False)

    async def start(self) -> None:
        """Load everything, then follow the store. Raises what the store raises while loading."""
        await self._load()
        await self._load_history()
        self._following = asyncio.create_task(self._follow(), name="cache")

    async def aclose(self) -> None:
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following
        self._fail(ClosedError())

    async def _load(self) -> None:
        """Load all objects at one revision. If that is compacted before the last page, start again."""
        for tried in range(1, MAX_LOADS + 1):
            try:
                entries, revision = await self._scan()
            except CompactedError:
                if tried == MAX_LOADS:
                    raise
            else:
                self._resources = _resource_caches(entries, revision)
                self._revision = revision
                self._log_unreadable()
                return

    def _log_unreadable(self) -> None:
        found = list(self.unreadable())
        self.has_unreadable = bool(found)
        for one in found[:MAX_LOGGED]:
            _log.error("A stored value cannot be read as an object; serving the rest", key=one.key, err=one.why)
        if len(found) > MAX_LOGGED:
            _log.error("More stored values cannot be read as objects; serving the rest", count=len(found) - MAX_LOGGED)

    async def _scan(self) -> tuple[list[Entry], Revision]:
        page = await self._store.scan(OBJECTS, limit=LOAD_PAGE)
        revision, entries = page.revision, list(page.entries)
        while page.remaining:
            page = await self._store.scan(OBJECTS, at=revision, after=entries[-1].key, limit=LOAD_PAGE)
            entries += page.entries
        return entries, revision

    async def _load_history(self) -> None:
        """Load recent changes, as far back as the store has them."""
        since = Revision(max(self._revision - HISTORY_REVISIONS, 1))
        for _ in range(MAX_LOADS):
            if since >= self._revision:
                return
            try:
                changes = await self._changes(since)
            except CompactedError as error:
                since = max(since, error.compacted)
                continue
            for cached in self._resources.values():
                cached.load_history(since, changes.get(cached.prefix, ()))
            return

    async def _changes(self, since: Revision) -> dict[str, list[Change]]:
        """The changes after a revision, up to the one loaded, by the prefix of their resource."""
        found: dict[str, list[Change]] = {cached.prefix: [] for cached in self._resources.values()}
        watch = self._store.watch(OBJECTS, since)
        try:
            await watch.ask_progress()
            async for batch in watch:
                if batch.revision <= self._revision:
                    for event in batch.events:
                        cached = self._resources.get(_parsed(event.key).stored_as)
                        before, after = _stored_or_none(event.before), _stored_or_none(event.entry)
                        if cached is not None and (before is not None or after is not None):
                            found[cached.prefix].append(Change(batch.revision, before, after))
                if batch.revision >= self._revision:
                    break
        finally:
            await watch.aclose()
        return found

    async def _follow(self) -> None:
        """Apply the store's events until the store fails; then fail every waiter and watch."""
        faults = 0
        try:
            while True:
                self._watch = self._store.watch(OBJECTS, Revision(self._revision))
                try:
                    async for batch in self._watch:
                        self._apply(batch)
                except CompactedError as error:
                    _log.warning("The cache fell behind the store; loading it again", err=str(error))
                    await self._reload()
                except StoreError:
                    raise
                except Exception as error:  # a bug of ours: the cache may have missed a part of that revision
                    faults += 1
                    if faults > MAX_FAULTS:
                        raise
                    _log.error("The cache could not apply an event; loading everything", err=describe_error(error))
                    await self._reload()
                finally:
                    await self._watch.aclose()
        except StoreError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001
            # Fail, rather than serve a cache that no longer follows the store.
            self._fail(StoreError(f"the cache could not apply an event: {error!r}"))

    async def _reload(self) -> None:
        """Load again after a gap: no watch, old or opened meanwhile, can continue."""
        gone = WatchEvent("ERROR", self._revision, status=expired(RELOADED).status())
        before = self._resources
        await self._load_again()
        for cached in before.values():
            for watch in cached.broadcaster.watches():
                watch.end(gone)
        self._wake()

    async def _load_again(self) -> None:
        """Load, retrying for as long as the store does not answer."""
        while True:
            try:
                return await self._load()
            except (CompactedError, UnavailableError) as error:
                _log.warning("The cache cannot be loaded; trying again", err=str(error))
                await asyncio.sleep(LOAD_AGAIN_S)

    def _apply(self, batch: Batch) -> None:
        revision = batch.revision
        for event in batch.events:
            object_key, entry = _parsed(event.key), event.entry
            if object_key.stored_as:
                cached = self._cached(object_key)
                after = None if entry is None else self._stored_object(object_key, entry)
                if isinstance(after, UnreadableObject):
                    _log.error(
                        "A stored value cannot be read as an object; serving the rest", key=after.key, err=after.why
                    )
                    cached.apply_unreadable(revision, after)
                    self.has_unreadable = True
                else:
                    cached.apply(revision, event.key, after)
        if self.has_unreadable:
            self.has_unreadable = next(self.unreadable(), None) is not None
        self._revision = max(self._revision, revision)
        self._wake()

    def _cached(self, object_key: ObjectKey) -> ResourceCache:
        """Of any kind: what a custom one is called, its definition says, which may come later."""
        found = self._resources.get(object_key.stored_as)
        if found is None:
            unnamed = _unnamed_resource(object_key)
            found = self._resources[object_key.stored_as] = ResourceCache(unnamed, self._revision)
        return found

    def _stored_object(self, object_key: ObjectKey, entry: Entry) -> StoredObject | UnreadableObject:
        key, value = entry.key, entry.value
        expected = self._expected.pop(key, None)
        if expected is not None and expected[0] == value:
            return StoredObject(key, object_key.namespace, object_key.name, entry.modified, value, *expected[1])
        if not self._shared and value.startswith(STORED_AS):  # we wrote it
            try:
                return read_stored_at(object_key, key, value, entry.modified)
            except (ValueError, msgspec.MsgspecError):
                pass  # or not
        return read_value(object_key, key, value, entry.modified)

    def _wake(self) -> None:
        waiting = self._waiters
        while waiting and waiting[0][0] <= self._revision:
            waiter = heappop(waiting)[2]
            if not waiter.done():
                waiter.set_result(None)

    def _fail(self, error: StoreError) -> None:
        if self._failed is not None:
            return
        self._failed = error
        last = WatchEvent("ERROR", self._revision, status=status_error(error).status())
        for cached in self._resources.values():
            for watch in cached.broadcaster.watches():
                watch.end(last)
        for _, _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(status_error(error))
        self._waiters.clear()

    def _check_not_failed(self) -> None:
        if self._failed is not None:
            raise status_error(self._failed)


def _parsed(key: str) -> ObjectKey:
    try:
        return parse_key(key)
    except IndexError:
        return _NO_OBJECT


def _stored_or_none(entry: Entry | None) -> StoredObject | None:
    """None, too, for an unreadable value."""
    found = None if entry is None else _read(entry)
    return found if isinstance(found, StoredObject) else None


def _read(entry: Entry) -> StoredObject | UnreadableObject:
    return read_value(_parsed(entry.key), entry.key, entry.value, entry.modified)


def _resource_caches(entries: list[Entry], revision: int) -> dict[str, ResourceCache]:
    """A cache for each resource, filled from entries in key order."""
    found: dict[str, list[Entry]] = {one.stored_as: [] for one in RESOURCES if one.stored}
    resources = {one.stored_as: one for one in RESOURCES if one.stored}
    for entry in entries:
        object_key = _parsed(entry.key)
        if not object_key.stored_as:  # not the key of an object
            continue
        if object_key.stored_as not in found:
            resources[object_key.stored_as] = _unnamed_resource(object_key)
            found[object_key.stored_as] = []
        found[object_key.stored_as].append(entry)
    return {name: ResourceCache(one, revision, map(_read, found[name])) for name, one in resources.items()}


def _unnamed_resource(object_key: ObjectKey) -> Resource:
    """The resource of a kind that is known by its keys only."""
    group, _, plural = object_key.stored_as.rpartition("/")
    return Resource(group, "", plural, "", "", bool(object_key.namespace), (), stored_as=object_key.stored_as)
