"""Discovery: which kinds the API server has, and in which versions."""

from __future__ import annotations

from typing import Protocol

import msgspec

from situate.core.versions import DEFAULT, KubernetesRules, rules_of_server
from situate.kube.errors import ApiError
from situate.kube.kinds import WatchedKind


class ApiReader(Protocol):
    """The part of a Client that discovery needs."""

    async def request(self, method: str, path: str) -> bytes: ...


class ServedResource(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    kind: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class ServedResources(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    group_version: str = ""
    resources: tuple[ServedResource, ...] = ()


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
            found = await resources_at(client, kind.group_path(version))
        except ApiError as error:
            if error.not_found:
                continue
            raise
        if any(one.name == kind.resource and "watch" in one.verbs for one in found.resources):
            return version
    return None


async def resources_at(client: ApiReader, path: str) -> ServedResources:
    """What the server has below the path of a group. Raises ApiError."""
    try:
        return msgspec.json.decode(await client.request("GET", path), type=ServedResources)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ApiError(0, "Unreadable", f"{path}: not a list of resources") from None
