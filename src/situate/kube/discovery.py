"""Whether the API server has a kind, and in which version."""

from __future__ import annotations

from typing import Protocol

import msgspec

from situate.kube.errors import ApiError
from situate.kube.kinds import Kind

__all__ = ["ApiReader", "served_version"]


class ApiReader(Protocol):
    """The part of a Client that discovery needs."""

    async def request(self, method: str, path: str) -> bytes: ...


class _Resource(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    verbs: tuple[str, ...] = ()


class _ResourceList(msgspec.Struct, frozen=True, gc=False):
    resources: tuple[_Resource, ...] = ()


_decode = msgspec.json.Decoder(_ResourceList).decode


async def served_version(client: ApiReader, kind: Kind) -> str | None:
    """The best version in which the server can watch the kind; None if it has none. Raises ApiError."""
    for version in kind.versions:
        try:
            answer = await client.request("GET", kind.group_path(version))
        except ApiError as error:
            if error.not_found:
                continue
            raise
        try:
            found = _decode(answer).resources
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ApiError(0, "Unreadable", f"{kind.group_path(version)}: not a list of resources") from None
        if any(one.name == kind.resource and "watch" in one.verbs for one in found):
            return version
    return None
