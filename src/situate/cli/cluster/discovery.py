"""The resources that an API server serves, by the names that people type: `po`, `podgroups.scheduling.k8s.io`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from situate.cli.cluster.connection import Client
from situate.cli.cluster.objects import get_object
from situate.wire.errors import InputError


@dataclass(frozen=True, slots=True)
class ApiResource:
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
class ApiResources:
    """Everything that a server serves."""

    all: Sequence[ApiResource]

    def find(self, word: str) -> ApiResource:
        """The resource of this name or short name, with or without its group. Raises InputError."""
        name, _, group = word.lower().partition(".")
        for one in self.all:
            if name in (one.plural, one.singular, *one.short_names) and one.group.startswith(group):
                return one
        raise InputError(f'the server does not have a resource "{word}"; `situate get` lists those it has')

    def find_all(self, words: str) -> list[ApiResource]:
        """One resource, several separated by commas, or a category such as `all`."""
        found: list[ApiResource] = []
        for word in words.split(","):
            in_category = [one for one in self.all if word in one.categories]
            found += in_category or [self.find(word)]
        return found

    def of_object(self, body: dict[str, Any], file: str = "") -> ApiResource:
        """The resource of a manifest. Raises InputError."""
        api_version, kind = body.get("apiVersion"), body.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str):
            raise InputError("an object needs apiVersion and kind", file=file)
        for one in self.all:
            if (one.api_version, one.kind) == (api_version, kind):
                return one
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


async def read_resources(client: Client) -> ApiResources:
    """Ask the server; the preferred version of each group comes first. Raises ApiError."""
    groups = (await get_object(client, "/apis")).get("groups") or ()
    versions = [version["groupVersion"] for group in groups for version in group.get("versions") or ()]
    found: list[ApiResource] = []
    for path in ("/api/v1", *(f"/apis/{version}" for version in versions)):
        listed = msgspec.json.decode(await client.request("GET", path), type=_Resources)
        found += [
            ApiResource(
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
    return ApiResources(found)


def split_names(resource: str, names: Sequence[str]) -> tuple[str, list[str]]:
    """The resource and the names of `pod/web`, or of `pod web api`."""
    word, _, name = resource.partition("/")
    return word, [*([name] if name else []), *names]
