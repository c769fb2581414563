"""The request of a pod write beyond the pod itself: `Registry.modify` passes it to the transaction.

A binder or evictor knows more than the pod before and after: the scheduler, the binding version, what else belongs in
the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from msgspec import Struct

from situate.server.placing.decisions import Details
from situate.server.registry.resource_cache import ResourceCache
from situate.server.registry.selectable_fields import SelectorValues
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object
from situate.server.resources import Resource
from situate.store.transactions import Guard, Write

ExtraWrites: TypeAlias = Callable[["CacheReader", Object | None, Object | None], tuple[list[Guard], list[Write]]]
"""(cache, the pod before, the pod after). May raise StatusError."""


class CacheReader(Protocol):
    """The part of the registry's cache that a transaction needs. It never waits."""

    def get(self, resource: Resource, namespace: str, name: str) -> StoredObject | None: ...

    def all(self, resource: Resource, namespace: str = "") -> Iterator[StoredObject]: ...

    def of(self, resource: Resource) -> ResourceCache: ...

    def unreadable_at(self, resource: Resource, namespace: str, name: str) -> object | None: ...

    def expect(self, key: str, value: bytes, seen: SelectorValues) -> None: ...


def no_extra_writes(
    _cache: CacheReader, _before: Object | None, _after: Object | None
) -> tuple[list[Guard], list[Write]]:
    return [], []


class PodWriteRequest(Struct, frozen=True):
    binds: bool = False
    """Make every check of a bind. The caller holds the node's lock."""
    binding_version: int | None = None
    term: int | None = None
    scheduler: str = ""
    details: Details | None = None
    extra_writes: ExtraWrites = no_extra_writes
    """What else to guard and write in the same transaction; called again for each retry."""
