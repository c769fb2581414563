"""One stream of all events, shared by all watches of a store: etcd sends each event once, and it is decoded once.

A watch that starts in the past, or falls too far behind, reads what it missed from a stream of its own.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final

from situate.store.entries import Batch, Revision
from situate.store.errors import CompactedError, StoreError, UnavailableError
from situate.store.etcd.client import PAUSE_S, EtcdClient
from situate.store.etcd.translation import Keys
from situate.store.etcd.watch import EtcdWatch
from situate.store.feed import Feed, FeedWatch

HISTORY_AT_ONCE: Final = 1_000
"""Batches that a watch reads from the past before they are delivered."""
REST_S: Final = 1.0
"""The pause after an error that is final."""


class SharedWatch:
    """Follows etcd from the first watch on."""

    def __init__(self, client: EtcdClient, keys: Keys, newest: Callable[[], Awaitable[Revision]]) -> None:
        self._client = client
        self._keys = keys
        self._newest = newest
        self._feed = Feed(Revision(0), self._history)
        self._streams: weakref.WeakSet[EtcdWatch] = weakref.WeakSet()
        self._shared: EtcdWatch | None = None
        self._starting = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None
        self._last_read: asyncio.Task[Revision] | None = None
        self._next_read: asyncio.Task[Revision] | None = None
        self._wanted: list[tuple[Revision, EtcdFeedWatch]] = []
        """Watches that get a bookmark once everything up to a revision was sent to them."""

    def watch(self, prefix: str, after: Revision) -> EtcdFeedWatch:
        return EtcdFeedWatch(self, self._feed, prefix, after)

    def tick(self) -> None:
        """Called with each probe of the client."""
        for stream in list(self._streams):
            stream.tick()

    @property
    def following(self) -> bool:
        return self._following is not None and not self._following.done()

    async def start(self) -> None:
        """Follow etcd, unless we do."""
        async with self._starting:
            if not self.following:
                await self._skip_to_newest()
                self._following = asyncio.create_task(self._follow())

    async def _skip_to_newest(self) -> None:
        """Continue at the newest revision. Watches read what is before it on their own."""
        while True:
            try:
                newest = await self._newest()
            except UnavailableError:
                await asyncio.sleep(PAUSE_S)  # a watch waits for as long as etcd is away
                continue
            self._feed.restart(newest)
            self._progressed()
            return

    async def _follow(self) -> None:
        """Until cancelled. Readers get an error that is final, such as a missing right; then we try again."""
        while not self._feed.ended:
            try:
                await self._follow_stream()
            except CompactedError:
                await self._skip_to_newest()
            except StoreError as error:
                self._feed.restart(self._feed.revision, error)
                await asyncio.sleep(REST_S)

    async def _follow_stream(self) -> None:
        async with aclosing(self._stream("", self._feed.revision)) as shared:
            self._shared = shared
            async for batch in shared:
                if batch.events:
                    self._feed.publish(batch)
                else:
                    self._feed.revision = max(self._feed.revision, batch.revision)
                if self._wanted:
                    self._progressed()

    def _stream(self, prefix: str, after: Revision) -> EtcdWatch:
        made = EtcdWatch(self._client, self._keys, prefix, after)
        self._streams.add(made)
        return made

    async def _history(self, prefix: str, after: Revision, until: Revision) -> tuple[list[Batch], Revision]:
        batches: list[Batch] = []
        async with aclosing(self._stream(prefix, after)) as past:
            await past.ask_progress()
            async for batch in past:
                if batch.events and batch.revision <= until:
                    batches.append(batch)
                if batch.revision >= until:
                    return batches, until
                if len(batches) >= HISTORY_AT_ONCE:
                    return batches, batch.revision
        raise AssertionError("a watch does not end")

    # -- bookmarks -----------------------------------------------------------------------------------------------

    async def ask_progress(self, watch: EtcdFeedWatch) -> None:
        await self.start()
        newest = await self._read_newest()
        self._wanted.append((newest, watch))
        self._progressed()
        if self._wanted and self._shared is not None:
            self._shared.request_progress(newest)

    async def _read_newest(self) -> Revision:
        """One read for all who ask while another is on its way: that one may be older than their calls."""
        if self._next_read is None:
            self._next_read = asyncio.create_task(self._read_after(self._last_read))
            self._next_read.add_done_callback(_heard)
        return await asyncio.shield(self._next_read)

    async def _read_after(self, last: asyncio.Task[Revision] | None) -> Revision:
        if last is not None and not last.done():
            await asyncio.wait((last,))
        self._last_read, self._next_read = self._next_read, None
        return await self._newest()

    def _progressed(self) -> None:
        ready = [watch for revision, watch in self._wanted if revision <= self._feed.revision]
        self._wanted = [one for one in self._wanted if one[0] > self._feed.revision]
        for watch in ready:
            watch.bookmark()

    # -- the end -------------------------------------------------------------------------------------------------

    async def end(self, error: StoreError) -> None:
        self._feed.end(error)
        if self._following is not None:
            self._following.cancel()
        for stream in list(self._streams):
            await stream.aclose()


def _heard(read: asyncio.Task[Revision]) -> None:
    """Whoever waits gets the error; nobody need be left who does."""
    if not read.cancelled():
        read.exception()


class EtcdFeedWatch(FeedWatch):
    """One of the watches."""

    def __init__(self, shared: SharedWatch, feed: Feed, prefix: str, after: Revision) -> None:
        super().__init__(feed, prefix, after)
        self._shared = shared

    async def __anext__(self) -> Batch:
        if not self._shared.following:
            self.check_open()
            await self._shared.start()
        return await super().__anext__()

    async def ask_progress(self) -> None:
        await self._shared.ask_progress(self)
