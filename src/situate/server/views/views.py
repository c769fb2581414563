"""The computed resources: summaries, and placement events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.server.errors import method_not_allowed, not_found
from situate.server.registry.cache import Cache
from situate.server.registry.codec import encode
from situate.server.registry.keys import key_of
from situate.server.registry.list_options import validate_list_options
from situate.server.registry.selectors import selection
from situate.server.registry.stored_object import ListResult, StoredObject
from situate.server.requests import ListOptions, Object, Target, WatchOptions
from situate.server.resources import Resource
from situate.server.usage.measured import node_metrics, pod_metrics
from situate.server.views.pace import Pace
from situate.server.views.placement_events import PLACEMENT_EVENTS
from situate.server.views.placement_log import PlacementLog, PlacementWatch
from situate.server.views.pod_counts import PodCounter
from situate.server.views.summaries import VIEWS, View
from situate.store.contract import Store

METRICS: Final[Mapping[str, View]] = {"nodes": node_metrics, "pods": pod_metrics}
"""Of metrics.k8s.io, by plural."""


class Views:
    """The computed resources of a store."""

    def __init__(self, store: Store, cache: Cache) -> None:
        self._cache = cache
        self._log = PlacementLog(store, cache)
        self._counts = PodCounter(cache)

    async def get(self, target: Target) -> StoredObject:
        """Raises StatusError."""
        listing = await self._summaries(target, ListOptions())
        if not listing.items:
            raise not_found(target.resource.plural, target.resource.group, target.name)
        return listing.items[0]

    async def list(self, target: Target, options: ListOptions) -> ListResult:
        """The newest state, in one page."""
        if target.resource == PLACEMENT_EVENTS:
            return await self._log.list(target, options)
        return await self._summaries(target, options)

    async def watch(self, target: Target, options: WatchOptions) -> PlacementWatch:
        if target.resource != PLACEMENT_EVENTS:
            raise method_not_allowed(target.resource.plural, target.resource.group, "watch")
        return await self._log.watch(target, options)

    async def aclose(self) -> None:
        await self._counts.aclose()

    async def _summaries(self, target: Target, options: ListOptions) -> ListResult:
        validate_list_options(options)
        resource = target.resource
        selected = selection(resource, target.namespace, target.name, options.labels, options.fields)
        found: list[StoredObject] = []
        pace = Pace()
        async with self._counts.reading() as revision:
            objects = (METRICS.get(resource.plural) or VIEWS[resource.plural])(
                self._cache, self._counts, selected.namespace, target.name
            )
            for obj in objects:
                if obj is not None:
                    stored = _stored(resource, obj, revision)
                    if selected.matches(stored):
                        found.append(stored)
                await pace.pause()
        return ListResult(revision, found)


def _stored(resource: Resource, obj: Object, revision: int) -> StoredObject:
    meta = obj["metadata"]
    namespace, name = meta.get("namespace", ""), meta["name"]
    key = key_of(resource, namespace, name)
    return StoredObject(key, namespace, name, revision, encode(obj), meta["uid"], meta.get("labels", {}), ())
