"""The aggregated APIs of a cluster: those of all APIServices in the watch cache that name a Service.

A group and version that situate serves itself stays with it. One that custom kinds have, too, is the other server's, as
in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from situate.server.aggregation.discovered import NO_RESOURCES, Discovered
from situate.server.objects import Object
from situate.server.registry.cache import Cache
from situate.server.resources import BY_KIND, RESOURCES

SERVICES: Final = BY_KIND["apiregistration.k8s.io/v1", "APIService"]
AVAILABLE: Final = "Available"
OWN: Final = frozenset((one.group, one.version) for one in RESOURCES)


@dataclass(frozen=True, slots=True)
class AggregatedApi:
    """One APIService, as far as it is needed to serve its group and version."""

    name: str
    group: str
    version: str
    group_priority: int
    version_priority: int
    client: Mapping[str, Any]
    """Like the clientConfig of a webhook: `service` and `caBundle`."""
    insecure: bool
    problem: str
    """Why it is not available; empty if it is."""
    discovered: Discovered = NO_RESOURCES

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}"


class _Seen(NamedTuple):
    """What decides whether the set is still the same."""

    last_change: int
    discoveries: int


class AggregatedApis:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._seen = _Seen(-1, 0)
        self._discoveries = 0
        self._discovered: dict[str, Discovered] = {}
        self._by_version: Mapping[tuple[str, str], AggregatedApi] = {}

    def at(self, group: str, version: str) -> AggregatedApi | None:
        self._refresh()
        return self._by_version.get((group, version))

    @property
    def all(self) -> Sequence[AggregatedApi]:
        """In the order of discovery."""
        self._refresh()
        return tuple(self._by_version.values())

    def discover(self, name: str, found: Discovered) -> None:
        """What this APIService's server says that it serves."""
        if self._discovered.get(name) != found:
            self._discovered[name] = found
            self._discoveries += 1

    def forget_others(self, names: Iterable[str]) -> None:
        kept = set(names)
        self._discovered = {name: found for name, found in self._discovered.items() if name in kept}

    def _refresh(self) -> None:
        now = _Seen(self._cache.of(SERVICES).last_change, self._discoveries)
        if now == self._seen:
            return
        found = [one for one in map(self._understood, self._cache.all(SERVICES)) if one is not None]
        found.sort(key=lambda one: (-one.group_priority, one.group, -one.version_priority, one.version))
        self._by_version = {(one.group, one.version): one for one in found}
        self._seen = now

    def _understood(self, stored: Any) -> AggregatedApi | None:
        obj = stored.object(SERVICES)
        return api_of(obj, self._discovered.get(stored.name, NO_RESOURCES)) if is_remote(obj) else None


def is_remote(obj: Object) -> bool:
    """Whether another server has this group and version."""
    spec = obj["spec"]
    return "service" in spec and (spec.get("group", ""), spec.get("version", "")) not in OWN


def api_of(obj: Object, discovered: Discovered = NO_RESOURCES) -> AggregatedApi:
    spec = obj["spec"]
    return AggregatedApi(
        obj["metadata"]["name"],
        spec.get("group", ""),
        spec.get("version", ""),
        spec.get("groupPriorityMinimum", 0),
        spec.get("versionPriority", 0),
        {"service": spec["service"], "caBundle": spec.get("caBundle") or ""},
        spec.get("insecureSkipTLSVerify", False),
        _problem(obj),
        discovered,
    )


def conditions_of(obj: Object) -> Sequence[Object]:
    return (obj.get("status") or {}).get("conditions") or ()


def available(obj: Object) -> Object | None:
    """The condition Available."""
    return next((one for one in conditions_of(obj) if one.get("type") == AVAILABLE), None)


def _problem(obj: Object) -> str:
    one = available(obj)
    if one is None:
        return "not checked yet"
    return "" if one.get("status") == "True" else one.get("message") or one.get("reason") or "not available"
