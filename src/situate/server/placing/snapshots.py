"""NodeSnapshot as it is stored: a node's ledger and its agent's configuration. Agents follow its revision.

The bytes are the registry's stored form. Its sums are exact, so decoding yields the ledger that was encoded.
"""

from __future__ import annotations

from typing import Final

import msgspec

from situate.core.model.base import EMPTY
from situate.core.model.ledger import Ledger, LedgerPod, amount_of, quantity
from situate.core.reconcile.api_values import SECOND
from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.server.registry.codec import encode_compact
from situate.server.resources import BY_KIND, Resource

NODE_SNAPSHOTS: Final[Resource] = BY_KIND["situate.dev/v1alpha1", "NodeSnapshot"]


class SnapshotMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """It never changes."""

    name: str
    uid: str
    creation_timestamp: str


class _Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    pods: tuple[LedgerPod, ...] = ()
    configuration: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """Encoded: it is the same for all nodes, and nothing here reads it."""


class _Status(msgspec.Struct, frozen=True):
    allocated: dict[str, str]


class _Snapshot(msgspec.Struct, frozen=True):
    metadata: SnapshotMetadata
    spec: _Spec
    status: _Status


_decode: Final = msgspec.json.Decoder(_Snapshot).decode


def configuration(profile: NodeProfile) -> msgspec.Raw:
    """The configuration of agents."""
    lease_s, renew_s = profile.lease_ms // SECOND, profile.renew_ms // SECOND
    said = {"profile": profile.name, "leaseDurationSeconds": lease_s, "renewIntervalSeconds": renew_s}
    return msgspec.Raw(encode_compact(said))


def encoded(
    identity: SnapshotMetadata, ledger: Ledger, config: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
) -> bytes:
    allocated = {resource: quantity(resource, amount) for resource, amount in sorted(ledger.allocated.items())}
    return encode_compact(_Snapshot(identity, _Spec(ledger.pods, config), _Status(allocated)))


def configuration_of(value: bytes) -> bytes:
    """As encoded in a snapshot, or empty."""
    found = _decode(value).spec.configuration
    return b"" if isinstance(found, msgspec.UnsetType) else bytes(found)


def decoded(value: bytes) -> tuple[SnapshotMetadata, Ledger]:
    found = _decode(value)
    allocated = {resource: amount_of(resource, text) for resource, text in found.status.allocated.items()}
    return found.metadata, Ledger(found.spec.pods, allocated or EMPTY)
