"""DevicePool as it is stored: which claims hold which devices of a driver's pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2s
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import msgspec

from situate.core.model.base import EMPTY
from situate.server.errors import StatusError
from situate.server.objects import Object
from situate.server.placing.snapshots import SnapshotMetadata
from situate.server.registry.codec import encode_compact
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import BY_KIND, Resource

DEVICE_POOLS: Final[Resource] = BY_KIND["situate.dev/v1alpha1", "DevicePool"]

PoolId: TypeAlias = tuple[str, str]
"""The driver, and the name of its pool."""


class HeldDevice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One result of a claim's allocation."""

    device: str
    namespace: str
    claim: str
    uid: str
    share: str = ""
    consumed: Mapping[str, Any] = EMPTY


class _Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    driver: str
    pool: str
    devices: tuple[HeldDevice, ...] = ()


class _Pool(msgspec.Struct, frozen=True):
    metadata: SnapshotMetadata
    spec: _Spec


_decode: Final = msgspec.json.Decoder(_Pool).decode


def name_of(pool: PoolId) -> str:
    """The name of the object: names of pools may have slashes."""
    return f"{pool[0]}-{blake2s(pool[1].encode(), digest_size=6).hexdigest()}"


def encoded(identity: SnapshotMetadata, pool: PoolId, devices: tuple[HeldDevice, ...]) -> bytes:
    return encode_compact(_Pool(identity, _Spec(*pool, devices)))


def decoded(held: StoredObject) -> tuple[SnapshotMetadata, PoolId, tuple[HeldDevice, ...]]:
    """Raises StatusError: no device of a pool may be given away if its ledger cannot be read."""
    try:
        found = _decode(held.value)
    except (ValueError, msgspec.MsgspecError) as error:
        text = f"the ledger of device pool {held.name} cannot be read: {error}"
        raise StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", text) from error
    return found.metadata, (found.spec.driver, found.spec.pool), found.spec.devices


def held_by(claim: Object | None) -> Iterator[tuple[PoolId, HeldDevice]]:
    """The devices that a claim holds. Admin access holds none."""
    allocation = ((claim or {}).get("status") or {}).get("allocation")
    if claim is None or not allocation:
        return
    meta = claim["metadata"]
    for result in (allocation.get("devices") or {}).get("results", ()):
        if not result.get("adminAccess"):
            yield (
                (result.get("driver", ""), result.get("pool", "")),
                HeldDevice(
                    result.get("device", ""),
                    meta.get("namespace", ""),
                    meta["name"],
                    meta["uid"],
                    result.get("shareID") or "",
                    result.get("consumedCapacity") or EMPTY,
                ),
            )
