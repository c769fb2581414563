"""Store leases that delete Events an hour after their last write.

Events written within a few minutes share a lease, so that a burst of events is not a burst of leases.
"""

from __future__ import annotations

from typing import Final

from situate.server.registry.selectable_fields import EVENTS
from situate.store.contract import Store
from situate.store.entries import NO_LEASE, LeaseId

EVENT_TTL_S: Final = 3_600
SHARED_S: Final = 300
"""How long new events share a lease. An event may live this much longer than its TTL."""


class EventLeases:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lease = NO_LEASE
        self._since_s = 0

    async def lease(self, stored_as: str, now_s: int) -> LeaseId:
        """The lease for a write now; NO_LEASE for kinds that do not expire."""
        if stored_as != EVENTS:
            return NO_LEASE
        if self._lease == NO_LEASE or not 0 <= now_s - self._since_s < SHARED_S:  # the clock may have been set back
            self._lease = await self._store.grant(EVENT_TTL_S + SHARED_S)
            self._since_s = now_s
        return self._lease
