"""What identity reads of the objects in the server's memory: a narrow view of the registry's cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from situate.server.requests import Object
from situate.server.resources import BY_PATH, Resource

__all__ = ["CachedObject", "ObjectReader", "ResourceState", "resource_of", "uid_of"]


class CachedObject(Protocol):
    """An object in memory, not yet decoded."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def revision(self) -> int: ...

    def object(self, resource: Resource) -> Object: ...


class ResourceState(Protocol):
    """All of one resource."""

    @property
    def last_change(self) -> int:
        """The revision at which something of it was last written or deleted."""
        ...


class ObjectReader(Protocol):
    """The registry's cache, as far as it is needed here. Reads cost no I/O and see every write that was answered."""

    def get(self, resource: Resource, namespace: str, name: str) -> CachedObject | None: ...

    def all(self, resource: Resource, namespace: str = "") -> Iterable[CachedObject]:
        """All of a resource, in the order of their keys."""
        ...

    def on_node(self, node: str) -> Iterable[CachedObject]:
        """The pods that are bound to it."""
        ...

    def of(self, resource: Resource) -> ResourceState: ...


def resource_of(api_version: str, plural: str) -> Resource:
    group, _, version = api_version.rpartition("/")
    return BY_PATH[group, version, plural]


def uid_of(found: Object) -> str:
    return str(found.get("metadata", {}).get("uid", ""))
