"""Let go of old history at a steady pace, as Kubernetes' server does: what is older than a turn, by the next one."""

from __future__ import annotations

import asyncio
from typing import Final

from situate.store.contract import Store
from situate.store.errors import StoreFullError, UnavailableError

EVERY_S: Final = 300.0


async def compact_regularly(store: Store, every_s: float = EVERY_S) -> None:
    """Until it is cancelled. Several servers on one store may all do this."""
    seen = await store.revision()
    while True:
        await asyncio.sleep(every_s)
        try:
            newest = await store.revision()
            await store.compact(seen)
        except (StoreFullError, UnavailableError):
            continue  # the next turn makes up for it
        seen = newest
