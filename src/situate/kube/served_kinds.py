"""All kinds that an API server has, for controllers that follow every one."""

from __future__ import annotations

import msgspec

from situate.kube.discovery import ApiReader, resources_at
from situate.loop.controllers.cache import ServedKind


class _Preferred(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    preferred_version: _Preferred = _Preferred()


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


async def served_kinds(client: ApiReader) -> list[tuple[ServedKind, bool]]:
    """All kinds that can be listed and watched, each in its preferred version; and whether they are namespaced."""
    groups = msgspec.json.decode(await client.request("GET", "/apis"), type=_Groups)
    paths = ["/api/v1", *(f"/apis/{group.preferred_version.group_version}" for group in groups.groups)]
    found: list[tuple[ServedKind, bool]] = []
    for path in paths:
        listed = await resources_at(client, path)
        found += [
            (ServedKind(listed.group_version, one.kind, one.name), one.namespaced)
            for one in listed.resources
            if "/" not in one.name and "watch" in one.verbs and "list" in one.verbs
        ]
    return found
