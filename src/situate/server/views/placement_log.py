"""Follows the store's history of placements from a revision on: every event once, in order, without gaps.

The history has every revision, so two changes of one placement are two events, however late they are read. A compacted
revision is a 410; no event is ever skipped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Self

from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.errors import StatusError, bad_request, expired
from situate.server.placing import decisions
from situate.server.placing.decisions import PLACEMENT_DECISIONS, PlacementDecision
from situate.server.registry.cache import Cache
from situate.server.registry.codec import decode
from situate.server.registry.keys import key_of, parse_key, prefix_of
from situate.server.registry.list import wait_for
from situate.server.registry.list_options import parse_resource_version
from situate.server.registry.store_errors import status_error
from situate.server.registry.stored_object import ListResult, StoredObject
from situate.server.registry.watchers import WatchEvent
from situate.server.requests import ListOptions, Target, WatchOptions
from situate.server.resources import BY_KIND
from situate.server.views.pace import Pace
from situate.server.views.placement_events import FROM_THE_POD, event_between, stored_event, with_reason
from situate.store.contract import Store, Watch
from situate.store.entries import Batch, Entry, Event, Revision
from situate.store.errors import CompactedError, StoreError

PODS: Final = BY_KIND["v1", "Pod"]
TOO_OLD: Final = "too old resource version: {asked} ({oldest}): the history of placements starts at {oldest}"
NO_SELECTORS: Final = "placementevents support no label or field selectors; select a namespace"
MAX_LISTED: Final = 10_000
"""A list has at most this many of the newest events."""
BOOKMARK_S: Final = 20.0
"""How often a watch gets a bookmark to resume from."""
READY_LIMIT: Final = 256
OLDEST: Final = "0"

_log = Log(__name__)


class PlacementLog:
    """The placement events of a store."""

    def __init__(self, store: Store, cache: Cache) -> None:
        self._store = store
        self._cache = cache

    async def watch(self, target: Target, options: WatchOptions) -> PlacementWatch:
        """From a revision; without one, from now; with "0", from the oldest. 410 if it is compacted."""
        if options.labels or options.fields:
            raise bad_request(NO_SELECTORS)
        if options.resource_version in ("", OLDEST):
            await self._cache.wait_until_fresh()
        else:
            await wait_for(self._cache, parse_resource_version(options.resource_version))
        oldest = options.resource_version == OLDEST
        asked = parse_resource_version(options.resource_version)
        since = Revision(asked if options.resource_version else self._cache.revision)
        watch = PlacementWatch(self._store, target.namespace, since, bookmarks=options.bookmarks)
        try:
            await watch.open(self._cache.revision)
        except CompactedError as error:
            if not oldest:
                await watch.aclose()
                raise expired(TOO_OLD.format(asked=since, oldest=error.compacted)) from None
            await watch.reopen(error.compacted, self._cache.revision)
        except StoreError as error:
            raise status_error(error) from None
        if options.timeout_s:
            watch.end_after(options.timeout_s)
        return watch

    async def list(self, target: Target, options: ListOptions) -> ListResult:
        """The newest events, oldest first."""
        wanted = WatchOptions(options.labels, options.fields, OLDEST, bookmarks=True)
        found: deque[StoredObject] = deque(maxlen=MAX_LISTED)
        watch = await self.watch(target, wanted)
        try:
            async for event in watch:
                if event.stored is not None:
                    found.append(event.stored)
                elif event.type == "ERROR" and event.status is not None:
                    raise StatusError(event.status["code"], event.status["reason"], event.status["message"])
                elif event.initial_end:
                    return ListResult(event.revision, list(found))
        finally:
            await watch.aclose()
        return ListResult(self._cache.revision, list(found))


class PlacementWatch:
    """An async iterator of WatchEvent: ADDED for each event, a BOOKMARK after the existing ones, a final ERROR."""

    def __init__(self, store: Store, namespace: str, since: Revision, *, bookmarks: bool) -> None:
        self._store = store
        self._prefix = prefix_of(PLACEMENT_DECISIONS, namespace)
        self._since = since
        self._bookmarks = bookmarks
        self._watch: Watch | None = None
        self._first: Batch | None = None
        self._caught_up = False
        self._events: deque[WatchEvent] = deque()
        self._deadline: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._progress: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._pace = Pace()
        self._ended = False

    async def open(self, newest: int) -> None:
        """Start the watch. For an old revision, wait for the first batch, events or a bookmark: it tells whether the
        history is still there."""
        self._watch = watch = self._store.watch(self._prefix, self._since)
        if self._since < newest:
            await watch.ask_progress()
            self._first = await anext(watch)
        else:
            await self._append(Batch(self._since))
        self._bookmark_later()

    async def reopen(self, since: Revision, newest: int) -> None:
        """Start from the oldest revision. Compaction may move it meanwhile; then start from there."""
        while True:
            if self._watch is not None:
                await self._watch.aclose()
            self._since = since
            try:
                await self.open(newest)
                return
            except CompactedError as error:
                since = max(Revision(since + 1), error.compacted)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._events:
            if self._ended or self._watch is None:
                raise StopAsyncIteration
            try:
                first, self._first = self._first, None
                await self._append(await anext(self._watch) if first is None else first)
                await self._pace.pause()  # history does not await, and there may be much of it
            except StoreError as error:
                if self._ended:
                    raise StopAsyncIteration from None
                self._fail(error)
        return self._events.popleft()

    def ready(self, limit: int = READY_LIMIT) -> list[WatchEvent]:
        """The events available without waiting."""
        return [self._events.popleft() for _ in range(min(limit, len(self._events)))]

    def end_after(self, seconds: float) -> None:
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._end)

    async def aclose(self) -> None:
        for timer in (self._deadline, self._timer):
            if timer is not None:
                timer.cancel()
        if self._progress is not None:
            self._progress.cancel()
        if self._watch is not None:
            await self._watch.aclose()

    # -- batches ------------------------------------------------------------------------------------------------------

    async def _append(self, batch: Batch) -> None:
        if not batch.events:
            if self._bookmarks:
                self._events.append(WatchEvent("BOOKMARK", batch.revision, initial_end=not self._caught_up))
            self._caught_up = True
            return
        for event in batch.events:
            try:
                stored = await self._event_of(batch.revision, event)
            except Exception as error:  # noqa: BLE001 - whatever is odd about this decision, the others are told
                _log.error("Cannot show a decision", key=event.key, err=describe_error(error))
                continue
            if stored is not None:
                self._events.append(WatchEvent("ADDED", batch.revision, stored))

    async def _event_of(self, revision: Revision, event: Event) -> StoredObject | None:
        found = event_between(_decision(event.before), _decision(event.entry))
        if found is None:
            return None
        key = parse_key(event.key)
        if found.event in FROM_THE_POD:
            pod = await self._pod(key.namespace, key.name, revision, gone=event.entry is None)
            if pod is not None:
                found = with_reason(found, pod)
        return stored_event(found, key.namespace, revision)

    async def _pod(self, namespace: str, name: str, revision: Revision, *, gone: bool) -> dict[str, object] | None:
        """The pod at that revision; None if it is compacted."""
        at = Revision(revision - 1) if gone else revision
        try:
            reading = await self._store.read([key_of(PODS, namespace, name)], at)
        except StoreError:
            return None
        entry = reading.entries[0]
        return None if entry is None else decode(entry.value, PODS.api_version, PODS.kind, entry.modified)

    # -- end and bookmarks --------------------------------------------------------------------------------------------

    def _fail(self, error: StoreError) -> None:
        if isinstance(error, CompactedError):
            status = expired(TOO_OLD.format(asked=error.asked, oldest=error.compacted)).status()
        else:
            status = status_error(error).status()
        self._events.append(WatchEvent("ERROR", self._since, status=status))
        self._ended = True

    def _end(self) -> None:
        self._ended = True
        if self._watch is not None:  # wakes the reader
            self._closing = asyncio.create_task(self._watch.aclose())

    def _bookmark_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(BOOKMARK_S, self._remind)

    def _remind(self) -> None:
        self._request_progress()
        self._bookmark_later()

    def _request_progress(self) -> None:
        if self._watch is not None and (self._progress is None or self._progress.done()):
            self._progress = asyncio.create_task(self._watch.ask_progress())


def _decision(entry: Entry | None) -> PlacementDecision | None:
    return None if entry is None else decisions.decoded(entry.value)
