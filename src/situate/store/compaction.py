"""Compacts history at an interval, as kube-apiserver does: each time up to the revision of the time before."""

from __future__ import annotations

import asyncio
from typing import Final

from situate.store.contract import Store
from situate.store.errors import StoreFullError, UnavailableError

EVERY_S: Final = 300.0


async def compact_regularly(store: Store, every_s: float = EVERY_S) -> None:
    """Run until cancelled. Several servers on one store may run it."""
    seen = await store.revision()
    while True:
        await asyncio.sleep(every_s)
        try:
            newest = await store.revision()
            await store.compact(seen)
        except (StoreFullError, UnavailableError):
            continue  # the next round compacts more
        seen = newest
