"""Reads a store in etcd at one revision, and fills an empty prefix from a backup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from situate import __version__
from situate.store.backup import BackupEntry
from situate.store.entries import NO_LEASE, LeaseId
from situate.store.errors import BackupError
from situate.store.etcd.client import EtcdClient
from situate.store.etcd.format import add_marker, find_marker, write_marker
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.store import EtcdStore
from situate.store.etcd.translation import Keys
from situate.store.format import FORMAT, StoreMarker, checked
from situate.store.transactions import Put, Write

WRITES_AT_ONCE: Final = 100
BYTES_AT_ONCE: Final = 1_000_000
LEAST_TTL_S: Final = 600
"""The least time to live of a restored lease. One that expired in the middle of the restore would make every restore
of that backup fail."""
NO_STORE: Final = "there is no store in the prefix {prefix} of etcd"
NOT_EMPTY: Final = (
    "the prefix {prefix} of etcd has data; restore into an empty one, such as etcd://host:port{prefix}-restored, and"
    " start the servers with that"
)


async def etcd_snapshot(settings: EtcdSettings) -> tuple[StoreMarker, int, list[BackupEntry]]:
    """All entries at one revision. Nothing is written: not even a marker, which `EtcdStore.open` would add."""
    client = EtcdClient(settings)
    store = EtcdStore(client)
    try:
        marker = await find_marker(client, Keys(settings.prefix))
        page = await store.scan("")
        if marker is None and not page.entries:
            raise BackupError(NO_STORE.format(prefix=settings.prefix))
        marker = StoreMarker(FORMAT, __version__, "") if marker is None else checked(marker)
        ttls = {lease: await store.ttl_s(lease) for lease in {entry.lease for entry in page.entries} - {NO_LEASE}}
        entries = [
            BackupEntry(entry.key, entry.value, entry.modified, entry.lease, ttls.get(entry.lease, 0))
            for entry in page.entries
            if entry.lease == NO_LEASE or ttls[entry.lease] > 0
        ]
        return marker, page.revision, entries
    finally:
        await store.aclose()


async def fill_etcd(settings: EtcdSettings, identity: str, entries: Iterable[BackupEntry]) -> int:
    """Write everything into an empty prefix. Until it is complete, its marker says so, and no server opens it.
    Returns the revision."""
    client, keys = EtcdClient(settings), Keys(settings.prefix)
    marker = StoreMarker(FORMAT, __version__, identity, restoring=True)
    try:
        if await find_marker(client, keys) is not None:
            raise BackupError(NOT_EMPTY.format(prefix=settings.prefix))
        store = EtcdStore(client)
        if (await store.scan("", limit=1)).entries or not await add_marker(client, keys, marker):
            raise BackupError(NOT_EMPTY.format(prefix=settings.prefix))
        await _write(store, entries)
        revision = await store.revision()
        await write_marker(client, keys, replace(marker, restoring=False))
        await store.aclose()
        return revision
    finally:
        await client.aclose()


async def _write(store: EtcdStore, entries: Iterable[BackupEntry]) -> None:
    leases: dict[int, LeaseId] = {0: NO_LEASE}
    writes: list[Write] = []
    size = 0
    for entry in entries:
        if entry.lease not in leases:
            leases[entry.lease] = await store.grant(max(entry.ttl_s, LEAST_TTL_S))
        if writes and (len(writes) == WRITES_AT_ONCE or size + len(entry.value) > BYTES_AT_ONCE):
            await store.commit([], writes)
            writes, size = [], 0
        writes.append(Put(entry.key, entry.value, leases[entry.lease]))
        size += len(entry.value) + len(entry.key)
    if writes:
        await store.commit([], writes)
