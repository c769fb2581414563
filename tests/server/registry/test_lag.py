"""How far the watch cache is behind its store."""

import asyncio

from situate.server.registry.cache import Cache
from situate.server.registry.lag import CacheLag
from situate.store.entries import Revision
from situate.store.memory import MemoryStore
from situate.store.transactions import Put


class Ahead(MemoryStore):
    """A store whose newest revisions never arrive."""

    more = 0

    async def revision(self) -> Revision:
        return Revision(await super().revision() + self.more)


def test_a_cache_that_does_not_follow_its_store_is_a_problem_until_it_does() -> None:
    async def story() -> None:
        store = Ahead()
        cache = Cache(store)
        await cache.start()
        lag = CacheLag(store, cache, behind_s=0.2)
        await store.commit([], [Put("/other", b"")])  # no object: the cache has to ask how far the store is
        await lag.measure()
        assert lag.problem == ""
        assert 0 <= lag.seconds < 0.2
        store.more = 3
        await lag.measure()
        assert "has not reached 5 within" in lag.problem
        assert lag.seconds >= 0.2
        store.more = 0
        await lag.measure()
        assert lag.problem == ""
        await cache.aclose()
        await lag.measure()  # the cache's own problem, not ours
        assert lag.problem == ""
        await store.aclose()

    asyncio.run(story())
