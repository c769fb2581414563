"""Live watches: a store publishes each commit once, and all watches share it.

A commit goes to the watches of its keys. A watch that starts in the past, or falls too far behind, reads the log until
it has caught up. It never skips an event, and ends only if the history it needs is compacted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Self, TypeAlias

from situate.store.entries import Batch, Revision
from situate.store.errors import ClosedError, StoreError

BACKLOG: Final = 1_024
"""Batches queued for a watch that nobody reads. Beyond, it reads the log when somebody does."""

History: TypeAlias = Callable[[str, Revision, Revision], Awaitable[tuple[list[Batch], Revision]]]
"""Returns the batches of a prefix after one revision and up to another, or as many as fit; and how far they reach."""


class Feed:
    """The watches of a store, and the newest revision published to them."""

    def __init__(self, revision: Revision, history: History) -> None:
        self.revision = revision
        self.history = history
        self.ended: StoreError | None = None
        self._live: dict[str, dict[FeedWatch, None]] = {}

    def publish(self, batch: Batch) -> None:
        """Send a commit to the watches. Call it in order, before the commit is acknowledged."""
        self.revision = batch.revision
        for prefix, watches in self._live.items():
            events = tuple([event for event in batch.events if event.key.startswith(prefix)])
            if events:
                own = batch if len(events) == len(batch.events) else Batch(batch.revision, events)
                for watch in watches:
                    watch.send(own)

    def watch(self, prefix: str, after: Revision) -> FeedWatch:
        return FeedWatch(self, prefix, after)

    def end(self, error: StoreError) -> None:
        """End every watch with this error."""
        self.ended = self.ended or error
        for watches in self._live.values():
            for watch in watches:
                watch.wake()

    def restart(self, revision: Revision, error: StoreError | None = None) -> None:
        """Continue at another revision. Every watch reads the log up to there, after it has raised the error."""
        self.revision = revision
        for watches in self._live.values():
            for watch in watches:
                watch.fall_behind(error)

    def add(self, watch: FeedWatch) -> None:
        self._live.setdefault(watch.prefix, {})[watch] = None

    def remove(self, watch: FeedWatch) -> None:
        watches = self._live.get(watch.prefix, {})
        watches.pop(watch, None)
        if not watches:
            self._live.pop(watch.prefix, None)


class FeedWatch:
    """One watch: history first, then live batches."""

    def __init__(self, feed: Feed, prefix: str, after: Revision) -> None:
        self.prefix = prefix
        self._feed = feed
        self._delivered = after
        self._past: deque[Batch] = deque()
        self._past_read = self._past_end = after
        self._live: deque[Batch] = deque()
        self._lagging = True
        self._bookmark = False
        self._closed = False
        self._failed: StoreError | None = None
        self._awake = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        while True:
            self.check_open()
            if self._past:
                return self._deliver(self._past.popleft())
            if self._past_read < self._past_end:
                batches, complete = await self._feed.history(self.prefix, self._past_read, self._past_end)
                self._past.extend(batches)
                self._past_read = complete
            elif self._lagging:
                self._go_live()
            elif self._live:
                batch = self._live.popleft()
                if batch.revision > self._delivered or not batch.events:
                    return self._deliver(batch)
            else:
                self._awake.clear()
                await self._awake.wait()

    def check_open(self) -> None:
        if self._closed or self._feed.ended:
            raise self._feed.ended or ClosedError
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed

    def _go_live(self) -> None:
        """Receive live batches from now on, and read the log up to here. Nothing awaits, so nothing falls between."""
        self._lagging = False
        self._feed.add(self)
        self._past_read = max(self._delivered, self._past_read)
        self._past_end = self._feed.revision
        if self._bookmark:
            self._bookmark = False
            self._live.append(Batch(self._feed.revision))

    def _deliver(self, batch: Batch) -> Batch:
        self._delivered = max(self._delivered, batch.revision)
        return batch

    def send(self, batch: Batch) -> None:
        if len(self._live) >= BACKLOG:
            self.fall_behind()
        if not self._lagging:
            self._live.append(batch)
            self._awake.set()

    def fall_behind(self, error: StoreError | None = None) -> None:
        """Read the log from here on, until we have caught up again."""
        self._bookmark = self._bookmark or any(not heard.events for heard in self._live)
        self._live.clear()
        self._lagging = True
        self._failed = error
        self._awake.set()

    def wake(self) -> None:
        self._awake.set()

    async def ask_progress(self) -> None:
        self.bookmark()

    def bookmark(self) -> None:
        """Deliver a bookmark after everything published so far."""
        if self._lagging:
            self._bookmark = True
        else:
            self._live.append(Batch(self._feed.revision))
        self._awake.set()

    def close(self) -> None:
        self._closed = True
        self._feed.remove(self)
        self._live.clear()
        self._awake.set()

    async def aclose(self) -> None:
        self.close()
