"""NodeSnapshot as it is stored: a node's ledger and configuration; its revision is the version that agents follow.

The bytes are the registry's stored form. The sums in it are exact, so a ledger that is read back is the one written.
"""

from __future__ import annotations

from typing import Final

import msgspec

from situate.core.model.base import EMPTY
from situate.core.reconcile.api_values import SECOND
from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.server.placing.ledger import Ledger, LedgerPod, amount_of, quantity
from situate.server.registry.codec import encode_compact
from situate.server.resources import BY_KIND, Resource

__all__ = ["NODE_SNAPSHOTS", "SnapshotMetadata", "configuration", "configuration_of", "decoded", "encoded"]

NODE_SNAPSHOTS: Final[Resource] = BY_KIND["situate.dev/v1alpha1", "NodeSnapshot"]


class SnapshotMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a snapshot, which stays as it was when it was made."""

    name: str
    uid: str
    creation_timestamp: str


class _Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    pods: tuple[LedgerPod, ...] = ()
    configuration: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """As it is written: it is the same for all, and nobody here asks what is in it."""


class _Status(msgspec.Struct, frozen=True):
    allocated: dict[str, str]


class _Snapshot(msgspec.Struct, frozen=True):
    metadata: SnapshotMetadata
    spec: _Spec
    status: _Status


_decode: Final = msgspec.json.Decoder(_Snapshot).decode


def configuration(profile: NodeProfile) -> msgspec.Raw:
    """What agents go by."""
    lease_s, renew_s = profile.lease_ms // SECOND, profile.renew_ms // SECOND
    said = {"profile": profile.name, "leaseDurationSeconds": lease_s, "renewIntervalSeconds": renew_s}
    return msgspec.Raw(encode_compact(said))


def encoded(
    identity: SnapshotMetadata, ledger: Ledger, config: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
) -> bytes:
    allocated = {resource: quantity(resource, amount) for resource, amount in sorted(ledger.allocated.items())}
    return encode_compact(_Snapshot(identity, _Spec(ledger.pods, config), _Status(allocated)))


def configuration_of(value: bytes) -> bytes:
    """As it stands in a snapshot; empty: nothing is said."""
    found = _decode(value).spec.configuration
    return b"" if isinstance(found, msgspec.UnsetType) else bytes(found)


def decoded(value: bytes) -> tuple[SnapshotMetadata, Ledger]:
    found = _decode(value)
    allocated = {resource: amount_of(resource, text) for resource, text in found.status.allocated.items()}
    return found.metadata, Ledger(found.spec.pods, allocated or EMPTY)
