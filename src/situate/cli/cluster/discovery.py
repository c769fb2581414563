"""What an API server has, by the names that people type: `po`, `deploy/web`, `podgroups.scheduling.k8s.io`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from situate.wire.errors import InputError

if TYPE_CHECKING:
    from situate.kube.client import Client

__all__ = ["Catalogue", "Entry", "read_catalogue"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One resource in its preferred version."""

    api_version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def named(self, name: str) -> str:
        """As kubectl names an object: `deployment.apps/web`."""
        return f"{self.singular}.{self.group}/{name}" if self.group else f"{self.singular}/{name}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        base = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        if namespace and self.namespaced:
            base += f"/namespaces/{quote(namespace, safe='')}"
        parts = [base, self.plural, *(quote(part, safe="") for part in (name, subresource) if part)]
        return "/".join(parts)


@dataclass(frozen=True, slots=True)
class Catalogue:
    entries: Sequence[Entry]

    def find(self, said: str) -> Entry:
        """The resource that is meant, or InputError."""
        name, _, group = said.lower().partition(".")
        for entry in self.entries:
            if name in (entry.plural, entry.singular, *entry.short_names) and entry.group.startswith(group):
                return entry
        raise InputError(f'the server does not have a resource "{said}"; `situate get` lists those it has')

    def find_all(self, said: str) -> list[Entry]:
        """One resource, several parted by commas, or a category such as `all`."""
        found: list[Entry] = []
        for word in said.split(","):
            in_category = [entry for entry in self.entries if word in entry.categories]
            found += in_category or [self.find(word)]
        return found

    def of_object(self, body: dict[str, Any], file: str = "") -> Entry:
        """The resource of an object as it is written in a file."""
        api_version, kind = body.get("apiVersion"), body.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str):
            raise InputError("an object needs apiVersion and kind", file=file)
        for entry in self.entries:
            if (entry.api_version, entry.kind) == (api_version, kind):
                return entry
        raise InputError(f'the server does not have kind "{kind}" in version "{api_version}"', file=file)


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    singular_name: str = ""
    kind: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class _Resources(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str = ""
    resources: tuple[_Resource, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct, frozen=True):
    versions: tuple[_Version, ...] = ()


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


async def read_catalogue(client: Client) -> Catalogue:
    """Ask the server; the best version of each group comes first. Raises ApiError."""
    groups = msgspec.json.decode(await client.request("GET", "/apis"), type=_Groups)
    paths = ["/api/v1", *(f"/apis/{one.group_version}" for group in groups.groups for one in group.versions)]
    entries: list[Entry] = []
    for path in paths:
        listed = msgspec.json.decode(await client.request("GET", path), type=_Resources)
        entries += [
            Entry(
                listed.group_version,
                one.name,
                one.singular_name or one.kind.lower(),
                one.kind,
                one.namespaced,
                one.short_names,
                one.categories,
                one.verbs,
            )
            for one in listed.resources
            if "/" not in one.name
        ]
    return Catalogue(entries)
