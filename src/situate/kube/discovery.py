"""Discovery: which kinds the API server has, and in which versions."""

from __future__ import annotations

from typing import Protocol

import msgspec

from situate.core.versions import DEFAULT, KubernetesRules, rules_of_server
from situate.kube.errors import ApiError
from situate.kube.kinds import WatchedKind
from situate.loop.controllers.cache import ServedKind


class ApiReader(Protocol):
    """The part of a Client that discovery needs."""

    async def request(self, method: str, path: str) -> bytes: ...


class _Resource(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    kind: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class _ResourceList(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    group_version: str = ""
    resources: tuple[_Resource, ...] = ()


class _Preferred(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    preferred_version: _Preferred = _Preferred()


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""


async def server_rules(client: ApiReader) -> KubernetesRules:
    """The rules that the API server's version asks for; the default if it does not tell its version."""
    try:
        found = msgspec.json.decode(await client.request("GET", "/version"), type=_Version)
    except (ApiError, msgspec.DecodeError):
        return DEFAULT
    return rules_of_server(found.git_version) or DEFAULT


async def served_version(client: ApiReader, kind: WatchedKind) -> str | None:
    """The best version in which the server can watch the kind; None if it has none. Raises ApiError."""
    for version in kind.versions:
        try:
            found = await _resources(client, kind.group_path(version))
        except ApiError as error:
            if error.not_found:
                continue
            raise
        if any(one.name == kind.resource and "watch" in one.verbs for one in found.resources):
            return version
    return None


async def served_kinds(client: ApiReader) -> list[tuple[ServedKind, bool]]:
    """All kinds that can be listed and watched, each in its preferred version; and whether they are namespaced."""
    groups = msgspec.json.decode(await client.request("GET", "/apis"), type=_Groups)
    paths = ["/api/v1", *(f"/apis/{group.preferred_version.group_version}" for group in groups.groups)]
    found: list[tuple[ServedKind, bool]] = []
    for path in paths:
        listed = await _resources(client, path)
        found += [
            (ServedKind(listed.group_version, one.kind, one.name), one.namespaced)
            for one in listed.resources
            if "/" not in one.name and "watch" in one.verbs and "list" in one.verbs
        ]
    return found


async def _resources(client: ApiReader, path: str) -> _ResourceList:
    try:
        return msgspec.json.decode(await client.request("GET", path), type=_ResourceList)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ApiError(0, "Unreadable", f"{path}: not a list of resources") from None
