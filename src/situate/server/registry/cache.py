"""Everything that is stored, in memory, as of a revision: read from here, and watched from here.

Loaded page by page at one revision, then kept by following the store. If the store no longer has what happened in
between, everything is loaded again and all watches are told to begin anew; if the store has failed, nothing more is
answered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import count, groupby
from typing import Final

from situate.server.errors import expired
from situate.server.registry.keys import OBJECTS, Place, key_of, place_of, prefix_of
from situate.server.registry.resource_cache import Shelf
from situate.server.registry.selectable_fields import PODS, Seen
from situate.server.registry.store_errors import failed, took_too_long
from situate.server.registry.stored_object import Held, hold, hold_at
from situate.server.registry.watchers import Change, WatchEvent
from situate.server.resources import RESOURCES, Resource
from situate.store.contract import Store, Watch
from situate.store.entries import Batch, Entry, Revision
from situate.store.errors import ClosedError, CompactedError, StoreError

__all__ = ["Cache"]

PAGE: Final = 2_000
"""Entries read at once while loading."""
LOADS: Final = 5
"""How often loading is begun, if the store compacts faster than it is read."""
PROGRESS_S: Final = 0.05
"""How long to wait for a bookmark of the store before asking for another."""
FRESH_WITHIN_S: Final = 10.0
RECALLED: Final = 10_000
"""Revisions before the newest whose changes are known from the start: whoever watched the server that was here before,
and comes again, goes on where they were."""
EXPECTED: Final = 1_024
"""How many values are expected at most. One that is not is read."""
RELOADED: Final = "too old resource version: the history of changes was lost; list again"


class Cache:
    """All objects, in the order of their keys, and what happened to them lately."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._revision = 0
        self._shelves: dict[str, Shelf] = {}
        self._expected: OrderedDict[str, tuple[bytes, Seen]] = OrderedDict()
        self._watch: Watch | None = None
        self._following: asyncio.Task[None] | None = None
        self._failed: StoreError | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._tickets = count()

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """All that happened up to here is in the cache."""
        return self._revision

    @property
    def problem(self) -> str:
        """Why nothing more is answered, in one line; "" if that is not so."""
        return "" if self._failed is None else str(self._failed)

    def get(self, resource: Resource, namespace: str, name: str) -> Held | None:
        """The object as of `revision`; None: there is none. Never waits."""
        return self._shelves[resource.stored_as].get(key_of(resource, namespace, name))

    def all(self, resource: Resource, namespace: str = "") -> Iterator[Held]:
        """Objects of a resource in the order of their keys, of one namespace or of all. Do not await meanwhile."""
        return self.shelf(resource).walk(prefix_of(resource, namespace))

    def count(self, resource: Resource, namespace: str = "") -> int:
        return self.shelf(resource).count(prefix_of(resource, namespace))

    def on_node(self, node: str) -> list[Held]:
        """Pods whose spec.nodeName this is, in the order of their keys."""
        return self._shelves[PODS].on_node(node)

    def shelf(self, resource: Resource) -> Shelf:
        return self._shelves[resource.stored_as]

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def at_least(self, revision: int) -> None:
        """Wait until what happened to objects up to this revision is here. StatusError if the store fails."""
        self._still_good()
        if revision <= self._revision:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ticket = (revision, next(self._tickets), waiter)
        heappush(self._waiting, ticket)
        try:
            await waiter
        except asyncio.CancelledError:
            if ticket in self._waiting:  # nobody waits any more; revisions that never come must not pile up
                self._waiting.remove(ticket)
                heapify(self._waiting)
            raise

    async def reach(self, revision: int, within_s: float) -> None:
        """The same for a revision at which perhaps no object was written, so that no event will come of it: the store
        is asked how far we are. TimeoutError."""
        self._still_good()
        if revision <= self._revision:
            return
        async with asyncio.timeout(within_s):
            while revision > self._revision:
                if self._watch is not None:
                    await self._watch.ask_progress()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PROGRESS_S):
                        await self.at_least(revision)

    async def fresh(self) -> None:
        """Wait until all that was answered to anybody before this call is here; 504 if that takes too long."""
        try:
            newest = await self._store.revision()
        except StoreError as error:
            raise failed(error) from error
        try:
            await self.reach(newest, FRESH_WITHIN_S)
        except TimeoutError:
            raise took_too_long() from None

    def bookmark(self) -> None:
        """Tell all who asked for bookmarks how far they are."""
        event = WatchEvent("BOOKMARK", self._revision)
        for shelf in self._shelves.values():
            for watch in shelf.hub.everybody():
                if watch.bookmarks:
                    watch.hear(event)

    # -- following ----------------------------------------------------------------------------------------------------

    def expect(self, key: str, value: bytes, seen: Seen) -> None:
        """For whoever is about to write this, and knows what selectors will see of it: if it comes back as this very
        value, it need not be read. It need not come."""
        self._expected[key] = (value, seen)
        if len(self._expected) > EXPECTED:
            self._expected.popitem(last=False)

    async def start(self) -> None:
        """Load everything, then follow. Whatever the store raises while loading is raised."""
        await self._load()
        await self._recall()
        self._following = asyncio.create_task(self._follow(), name="cache")

    async def aclose(self) -> None:
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following
        self._fail(ClosedError())

    async def _load(self) -> None:
        """All at one revision. If that is compacted away before the last page, once more from the beginning."""
        for tried in range(1, LOADS + 1):
            try:
                entries, revision = await self._scanned()
            except CompactedError:
                if tried == LOADS:
                    raise
            else:
                self._shelves = _shelved(entries, revision)
                self._revision = revision
                return

    async def _scanned(self) -> tuple[list[Entry], Revision]:
        page = await self._store.scan(OBJECTS, limit=PAGE)
        revision, entries = page.revision, list(page.entries)
        while page.remaining:
            page = await self._store.scan(OBJECTS, at=revision, after=entries[-1].key, limit=PAGE)
            entries += page.entries
        return entries, revision

    async def _recall(self) -> None:
        """What happened lately, as far as the store still has it."""
        since = Revision(max(self._revision - RECALLED, 1))
        for _ in range(LOADS):
            if since >= self._revision:
                return
            try:
                changes = await self._changes(since)
            except CompactedError as error:
                since = max(since, error.compacted)
                continue
            for shelf in self._shelves.values():
                shelf.recall(since, changes.get(shelf.prefix, ()))
            return

    async def _changes(self, since: Revision) -> dict[str, list[Change]]:
        """All after a revision, up to what is loaded, by the prefix of the shelf that they belong to."""
        found: dict[str, list[Change]] = {shelf.prefix: [] for shelf in self._shelves.values()}
        watch = self._store.watch(OBJECTS, since)
        try:
            await watch.ask_progress()
            async for batch in watch:
                if batch.revision <= self._revision:
                    for event in batch.events:
                        shelf = self._shelves.get(place_of(event.key).stored_as)
                        if shelf is not None:
                            change = Change(batch.revision, _held_or_none(event.before), _held_or_none(event.entry))
                            found[shelf.prefix].append(change)
                if batch.revision >= self._revision:
                    break
        finally:
            await watch.aclose()
        return found

    async def _follow(self) -> None:
        """For ever, or until the store fails; then nobody waits in vain."""
        try:
            while True:
                self._watch = self._store.watch(OBJECTS, Revision(self._revision))
                try:
                    async for batch in self._watch:
                        self._apply(batch)
                except CompactedError:
                    await self._reload()
                finally:
                    await self._watch.aclose()
        except StoreError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001
            # A mistake of ours. Say so to everybody, rather than answer from what is not kept up any more.
            self._fail(StoreError(f"what was read from it could not be taken in: {error!r}"))

    async def _reload(self) -> None:
        """What happened in between is not known any more: watches, also those that came meanwhile, cannot go on."""
        gone = WatchEvent("ERROR", self._revision, status=expired(RELOADED).status())
        before = self._shelves
        await self._load()
        for shelf in before.values():
            for watch in shelf.hub.everybody():
                watch.end(gone)
        self._wake()

    def _apply(self, batch: Batch) -> None:
        revision = batch.revision
        for event in batch.events:
            place, entry = place_of(event.key), event.entry
            shelf = self._shelves.get(place.stored_as)
            if shelf is not None:  # else a kind that another server has, and this one does not
                after = None if entry is None else self._taken_in(place, entry)
                shelf.apply(revision, event.key, after)
        self._revision = max(self._revision, revision)
        self._wake()

    def _taken_in(self, place: Place, entry: Entry) -> Held:
        key, value = entry.key, entry.value
        expected = self._expected.pop(key, None)
        if expected is not None and expected[0] == value:
            return Held(key, place.namespace, place.name, entry.modified, value, *expected[1])
        return hold_at(place, key, value, entry.modified)

    def _wake(self) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= self._revision:
            waiter = heappop(waiting)[2]
            if not waiter.done():
                waiter.set_result(None)

    def _fail(self, error: StoreError) -> None:
        if self._failed is not None:
            return
        self._failed = error
        last = WatchEvent("ERROR", self._revision, status=failed(error).status())
        for shelf in self._shelves.values():
            for watch in shelf.hub.everybody():
                watch.end(last)
        for _, _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(failed(error))
        self._waiting.clear()

    def _still_good(self) -> None:
        if self._failed is not None:
            raise failed(self._failed)


def _held(entry: Entry) -> Held:
    return hold(entry.key, entry.value, entry.modified)


def _held_or_none(entry: Entry | None) -> Held | None:
    return None if entry is None else _held(entry)


def _shelved(entries: list[Entry], revision: int) -> dict[str, Shelf]:
    """Entries in the order of their keys, put where they belong; and an empty shelf for each other resource."""
    found = {
        stored_as: list(group) for stored_as, group in groupby(entries, key=lambda one: place_of(one.key).stored_as)
    }
    return {
        one.stored_as: Shelf(one, revision, map(_held, found.get(one.stored_as, ()))) for one in RESOURCES if one.stored
    }
