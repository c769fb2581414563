"""The marker of a store's format in etcd: a key beside the prefix, which no list or watch of objects sees."""

from __future__ import annotations

import secrets
from typing import Any, Final

from situate import __version__
from situate.store.errors import StoreFullError
from situate.store.etcd.client import EtcdClient
from situate.store.etcd.protocol import EQUAL, OF_MODIFIED, RANGE, TXN, message
from situate.store.etcd.translation import Keys
from situate.store.format import FORMAT, StoreMarker, checked, decode, encode

IDENTITY_BYTES: Final = 16


async def open_marker(client: EtcdClient, keys: Keys) -> StoreMarker:
    """The marker. Where there is none, the store is new, or of a release that wrote none: write it. Several servers may
    try at once; the first one wins. FormatError if this release cannot use the store."""
    while True:
        found, revision = await _find(client, keys)
        if found is not None and checked(found).format == FORMAT:
            return found
        identity = secrets.token_hex(IDENTITY_BYTES) if found is None else found.identity
        made = StoreMarker(FORMAT, __version__, identity)
        try:
            await client.ask(TXN, _replace(keys, revision, made))
        except StoreFullError:
            return made  # it is written at the next start


async def find_marker(client: EtcdClient, keys: Keys) -> StoreMarker | None:
    return (await _find(client, keys))[0]


async def _find(client: EtcdClient, keys: Keys) -> tuple[StoreMarker | None, int]:
    """The marker and the revision at which it was written; 0: there is none."""
    answer = await client.ask(RANGE, RANGE.request(key=keys.format))
    return (decode(answer.kvs[0].value), answer.kvs[0].mod_revision) if answer.kvs else (None, 0)


async def add_marker(client: EtcdClient, keys: Keys, marker: StoreMarker) -> bool:
    """Write the marker where there is none. Returns whether this is the marker now."""
    await client.ask(TXN, _replace(keys, 0, marker))
    return await find_marker(client, keys) == marker


async def write_marker(client: EtcdClient, keys: Keys, marker: StoreMarker) -> None:
    """Replace the marker, whatever it is."""
    put = message("RequestOp")(request_put=message("PutRequest")(key=keys.format, value=encode(marker)))
    await client.ask(TXN, TXN.request(success=[put]))


def _replace(keys: Keys, revision: int, made: StoreMarker) -> Any:
    """Replace it, if it is still the one of this revision. Its bytes do not tell: releases may write them otherwise."""
    unchanged = message("Compare")(key=keys.format, result=EQUAL, target=OF_MODIFIED, mod_revision=revision)
    put = message("RequestOp")(request_put=message("PutRequest")(key=keys.format, value=encode(made)))
    return TXN.request(compare=[unchanged], success=[put])
