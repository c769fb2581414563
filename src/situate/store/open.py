"""Opens a store by its address: `memory`, a file, or `etcd://host:port,host:port/prefix`."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from situate.store.contract import Store
from situate.store.errors import InvalidRequestError
from situate.store.etcd.settings import EtcdSettings
from situate.store.memory import MemoryStore

MEMORY: Final = "memory"
RESERVE_BYTES: Final = 32 << 20
"""The disk space that a server reserves, so that objects can be deleted from a full store; see sqlite/room.py."""
SCHEMES: Final = ("sqlite", "etcd", "etcds")


async def open_store(
    where: str, etcd: EtcdSettings | None = None, limit_bytes: int = 0, reserve_bytes: int = 0
) -> Store:
    """`etcd` has what an address cannot express: certificates, names, timeouts. `etcds://` uses TLS. The limit and the
    reserve are those of a file."""
    if where == MEMORY:
        return MemoryStore()
    scheme, separator, rest = where.partition("://")
    if not separator or scheme == "sqlite":
        # Imported late, like gRPC and protobuf, so that one store does not load the others.
        from situate.store.sqlite.store import SqliteStore

        path = Path(rest if separator else where).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return await SqliteStore.open(path, limit_bytes, reserve_bytes)
    if scheme not in SCHEMES:
        raise InvalidRequestError(f"{where!r} is not a store: use {MEMORY!r}, a file, or etcd://host:port/prefix")
    from situate.store.etcd.store import EtcdStore

    return await EtcdStore.open(etcd_settings(where, etcd))


def etcd_settings(where: str, base: EtcdSettings | None = None) -> EtcdSettings:
    parts = urlsplit(where)
    endpoints = tuple(filter(None, parts.netloc.split(",")))
    if not endpoints or "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidRequestError(f"{where!r} is not an address of etcd: use etcd://host:port,host:port/prefix")
    settings = replace(base or EtcdSettings(endpoints=endpoints), endpoints=endpoints)
    if parts.scheme == "etcds":
        settings = replace(settings, tls=True)
    return replace(settings, prefix=parts.path.rstrip("/")) if parts.path.strip("/") else settings
