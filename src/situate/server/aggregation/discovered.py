"""What another API server says that it serves: its APIResourceList, decoded, and in the form of aggregated discovery.

The other server is not trusted to be well-behaved: an answer that is no such list is refused as a whole.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec
from msgspec import Struct

MAX_RESOURCES: Final = 1_000
"""Of one group and version, with subresources."""


class DiscoveryError(Exception):
    """The answer is no list of resources. The message is one line."""


class OtherResource(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An APIResource."""

    name: str
    singular_name: str = ""
    namespaced: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage_version_hash: str = ""

    def plain(self) -> dict[str, Any]:
        always = {"singularName": self.singular_name, "namespaced": self.namespaced, "verbs": self.verbs}
        return {**msgspec.to_builtins(self), **always}


class _List(Struct, frozen=True, rename="camel"):
    kind: str
    group_version: str
    resources: tuple[OtherResource, ...]


class Discovered(Struct, frozen=True):
    rows: tuple[OtherResource, ...] = ()

    @property
    def hash(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self.rows)).hexdigest()

    def plain(self) -> list[dict[str, Any]]:
        return [row.plain() for row in self.rows]

    def aggregated(self) -> list[dict[str, Any]]:
        found = {row.name: _resource(row) for row in self.rows if "/" not in row.name}
        for row in self.rows:
            name, _, subresource = row.name.partition("/")
            if subresource and name in found:
                shown = {"subresource": subresource, "responseKind": _kind(row), "verbs": row.verbs}
                found[name].setdefault("subresources", []).append(shown)
        return list(found.values())


NO_RESOURCES: Final = Discovered()


def read_resources(body: bytes, group_version: str) -> Discovered:
    """Raises DiscoveryError."""
    try:
        found = msgspec.json.decode(body, type=_List)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise DiscoveryError(f"not an APIResourceList: {error}") from None
    if found.kind != "APIResourceList" or found.group_version != group_version:
        raise DiscoveryError(f"not the APIResourceList of {group_version}")
    if len(found.resources) > MAX_RESOURCES:
        raise DiscoveryError(f"{len(found.resources)} resources, where {MAX_RESOURCES} are allowed")
    return Discovered(tuple(sorted(found.resources, key=lambda row: row.name)))


def _resource(row: OtherResource) -> dict[str, Any]:
    found: dict[str, Any] = {
        "resource": row.name,
        "responseKind": _kind(row),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular_name,
        "verbs": row.verbs,
    }
    if row.short_names:
        found["shortNames"] = row.short_names
    if row.categories:
        found["categories"] = row.categories
    return found


def _kind(row: OtherResource) -> dict[str, str]:
    """Empty group and version: those of the list."""
    return {"group": row.group, "version": row.version, "kind": row.kind}
