"""How a test of a store is told, and what every watch must keep to, whatever the test is about."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeAlias

from situate.store.contract import Store
from situate.store.entries import ABSENT, Batch, Entry, Revision
from situate.store.transactions import Committed, Outcome, Refused

WITHIN_S = 60.0

Opener: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]


def tell(opener: Opener, story: Callable[[Store], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(WITHIN_S), opener() as store:
            await story(store)

    asyncio.run(told())


def revision_of(outcome: Outcome) -> Revision:
    assert isinstance(outcome, Committed), outcome
    return outcome.revision


def refused(outcome: Outcome) -> Refused:
    assert isinstance(outcome, Refused), outcome
    return outcome


class Follower:
    """A copy of a prefix that is kept by a watch alone, and that is hard to please.

    Ordered, unique and atomic: revisions only grow, so none comes twice or in parts. Reliable: what an event says was
    there before is what we have. Bookmarkable: after a bookmark, nothing older comes.
    """

    def __init__(self, entries: tuple[Entry, ...] = (), at: Revision = ABSENT) -> None:
        self.entries = {entry.key: entry for entry in entries}
        self.revision = at
        self.batches: list[Batch] = []

    def take(self, batch: Batch) -> None:
        if not batch.events:
            self.revision = max(self.revision, batch.revision)
            return
        assert batch.revision > self.revision
        self.revision = batch.revision
        self.batches.append(batch)
        assert len({event.key for event in batch.events}) == len(batch.events)
        for event in batch.events:
            assert event.before == self.entries.get(event.key)
            if event.entry is None:
                assert event.before is not None
                del self.entries[event.key]
                continue
            assert event.entry.key == event.key
            assert event.entry.modified == batch.revision
            assert event.entry.created == (event.before.created if event.before else batch.revision)
            self.entries[event.key] = event.entry


async def follow(store: Store, prefix: str, until: Revision, start: Follower | None = None) -> Follower:
    """All that a watch tells after where the follower is, up to a revision."""
    follower = start or Follower()
    async with aclosing(store.watch(prefix, follower.revision)) as watch:
        while follower.revision < until:
            await watch.ask_progress()
            follower.take(await anext(watch))
    return follower
