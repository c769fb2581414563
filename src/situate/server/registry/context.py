"""What every write of the registry needs: the store, its cache, the strategies, the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from situate.core.model.duration import MAX_SECONDS
from situate.server.kinds.strategy import Strategy
from situate.server.quota.charging import QuotaAccounts
from situate.server.registry.cache import Cache
from situate.server.registry.create_cache import CreateCache, RecentPods
from situate.server.registry.event_leases import EventLeases
from situate.server.registry.managed_fields import ManagedFieldsCache
from situate.server.registry.ports import Admission, AdmissionCheck, AuthorizeCreate, TransactionExtension
from situate.server.registry.user_admission import NOBODY, UserAdmission
from situate.server.resources import Resource
from situate.store.contract import Store
from situate.store.transactions import Guard

_PLAIN: Final = Strategy()


@dataclass(frozen=True, slots=True)
class RegistryContext:
    store: Store
    cache: Cache
    strategies: Mapping[str, Strategy]
    admission: Sequence[Admission]
    checks: Sequence[AdmissionCheck]
    extension: TransactionExtension | None
    authorize_create: AuthorizeCreate | None
    """None: callers may create whatever they may update."""
    quotas: QuotaAccounts
    managed_fields: ManagedFieldsCache
    templates: CreateCache
    recent_pods: RecentPods
    event_leases: EventLeases
    wall_ns: Callable[[], int]
    new_uid: Callable[[], str]
    new_suffix: Callable[[], str]
    users: UserAdmission = NOBODY
    """The admission plugins that users configure."""
    fences: tuple[Callable[[], Guard], ...] = ()
    """Each returns a condition for every write, such as that the caller still leads. Raises StatusError."""

    def strategy(self, resource: Resource) -> Strategy:
        """The strategy of a kind; a kind without one has no rules of its own."""
        if resource.custom is not None:
            return resource.custom.strategy
        return self.strategies.get(f"{resource.group}/{resource.kind}", _PLAIN)

    def now(self, later_s: int = 0) -> str:
        """RFC 3339 to the second, as in metadata. No further than 292 years from now."""
        return _rfc3339(self.now_s() + min(later_s, MAX_SECONDS))

    def now_s(self) -> int:
        return self.wall_ns() // 1_000_000_000


@lru_cache(maxsize=64)
def _rfc3339(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
