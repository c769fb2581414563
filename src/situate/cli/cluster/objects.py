"""Reading objects of a live cluster as plain values."""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from situate.cli.cluster.connection import Client
from situate.kube.errors import ApiError

PAGE: Final = 5_000
"""How many objects a page of a list has at most."""

T = TypeVar("T")


class _Meta(msgspec.Struct, frozen=True):
    more: str = msgspec.field(default="", name="continue")


class _OnlyMeta(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Page(_OnlyMeta, frozen=True):
    items: list[msgspec.Raw] | None = None


_page = msgspec.json.Decoder(_Page).decode
_only_meta = msgspec.json.Decoder(_OnlyMeta).decode


def next_page(data: bytes) -> str:
    """The token of the page after this one; empty if it is the last, or no list at all."""
    try:
        return _only_meta(data).metadata.more
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


async def get_object(client: Client, path: str, params: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Raises ApiError."""
    found: dict[str, Any] = msgspec.json.decode(await client.request("GET", path, params=params))
    return found


async def list_objects(
    client: Client, path: str, params: Mapping[str, str] | None = None, *, containing: bytes = b""
) -> list[dict[str, Any]]:
    """All pages of a list; only the objects whose JSON contains these bytes. Raises ApiError."""
    found: list[dict[str, Any]] = []
    asked = {**(params or {}), "limit": str(PAGE)}
    while True:
        page = _page(await client.request("GET", path, params=asked))
        found += [msgspec.json.decode(item) for item in page.items or () if containing in bytes(item)]
        if not page.metadata.more:
            return found
        asked["continue"] = page.metadata.more


async def unless_refused(request: Awaitable[T], refused: T, *, forbidden: bool = True) -> T:
    """The response; `refused` where the server does not have the object, or (`forbidden`) does not let us read it."""
    try:
        return await request
    except ApiError as error:
        if error.not_found or (forbidden and error.forbidden):
            return refused
        raise
