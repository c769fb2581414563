"""Measures every few seconds how far the watch cache is behind its store, for a health check and a metric."""

from __future__ import annotations

import asyncio
from typing import Final

from situate.server.errors import StatusError
from situate.server.registry.cache import Cache
from situate.store.contract import Store
from situate.store.entries import Revision
from situate.store.errors import StoreError

EVERY_S: Final = 5.0
BEHIND_S: Final = 5.0
"""A cache that takes longer than this to catch up with the store is behind."""
BEHIND: Final = "the watch cache is at revision {revision}, and has not reached {newest} within {seconds:.0f} s"


class CacheLag:
    """Until the first measurement, the lag is 0."""

    def __init__(self, store: Store, cache: Cache, behind_s: float = BEHIND_S) -> None:
        self._store = store
        self._cache = cache
        self._behind_s = behind_s
        self.seconds = 0.0
        """How long the cache took to catch up with the store."""
        self.problem = ""

    async def run(self, every_s: float = EVERY_S) -> None:
        """Until cancelled."""
        while True:
            await self.measure()
            await asyncio.sleep(every_s)

    async def measure(self) -> None:
        """If the store does not answer, measure nothing: the check `store` reports that."""
        loop, newest = asyncio.get_running_loop(), Revision(0)
        try:
            newest = await self._store.revision()
            begun = loop.time()
            await self._cache.catch_up(newest, self._behind_s)
        except TimeoutError:
            self.seconds = max(self.seconds, self._behind_s) + EVERY_S if self.problem else self._behind_s
            self.problem = BEHIND.format(newest=newest, seconds=self._behind_s, revision=self._cache.revision)
        except (StoreError, StatusError):
            return
        else:
            self.seconds, self.problem = loop.time() - begun, ""
