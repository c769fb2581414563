"""The part of the registry's cache that identity reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from situate.server.requests import Object
from situate.server.resources import BY_PATH, Resource


class CachedObject(Protocol):
    """An object in the cache, not decoded."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def revision(self) -> int: ...

    def object(self, resource: Resource) -> Object: ...


class ResourceState(Protocol):
    @property
    def last_change(self) -> int:
        """The revision of the last write or delete of the resource."""
        ...


class ObjectReader(Protocol):
    """Reads need no I/O and see every acknowledged write."""

    def get(self, resource: Resource, namespace: str, name: str) -> CachedObject | None: ...

    def all(self, resource: Resource, namespace: str = "") -> Iterable[CachedObject]:
        """All objects of a resource, in key order."""
        ...

    def on_node(self, node: str) -> Iterable[CachedObject]:
        """The pods bound to a node."""
        ...

    def of(self, resource: Resource) -> ResourceState: ...


def resource_of(api_version: str, plural: str) -> Resource:
    group, _, version = api_version.rpartition("/")
    return BY_PATH[group, version, plural]


def uid_of(found: Object) -> str:
    return str(found.get("metadata", {}).get("uid", ""))
