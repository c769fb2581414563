"""The desired state of a node: its newest snapshot. Pure.

    version          the revision of the snapshot
    bindings         the version of each pod's binding, by the pod's uid
    configuration    how the control plane wants the agent to renew its lease

Versions are revisions of the control plane's store and only grow, so a snapshot with a lower version is ignored. With
another control plane the agent starts from nothing: see `checkpoint`.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec


class NodeConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    """Defaults as in Kubernetes."""

    lease_duration_seconds: int = 40
    renew_interval_seconds: int = 10


class _Bound(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    binding_version: int = 0


class _Spec(msgspec.Struct, frozen=True):
    pods: tuple[_Bound, ...] = ()
    configuration: NodeConfiguration = NodeConfiguration()


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()


_decode: Final = msgspec.json.Decoder(_Object).decode


class Snapshot(msgspec.Struct, frozen=True):
    version: int
    bindings: dict[str, int] = {}
    configuration: NodeConfiguration = NodeConfiguration()


def decode_snapshot(body: bytes) -> Snapshot:
    """Raises msgspec.DecodeError."""
    found = _decode(body)
    bindings = {one.uid: one.binding_version for one in found.spec.pods}
    wanted = found.spec.configuration
    if (
        min(wanted.lease_duration_seconds, wanted.renew_interval_seconds) < 1
    ):  # no agent could renew such a lease in time
        wanted = NodeConfiguration()
    return Snapshot(int(found.metadata.resource_version), bindings, wanted)


class DesiredState:
    def __init__(self, held: Snapshot | None = None) -> None:
        self.held = held
        """The newest snapshot; None: none yet."""

    @property
    def version(self) -> int:
        return 0 if self.held is None else self.held.version

    def binding(self, uid: str) -> int | None:
        """The version of a pod's binding; None: the snapshot does not have the pod."""
        return None if self.held is None else self.held.bindings.get(uid)

    def update(self, snapshot: Snapshot) -> Literal["newer", "same", "older"]:
        """Keep the snapshot if it is newer than the known one."""
        held = self.held
        if held is not None:
            if snapshot.version < held.version:
                return "older"
            if snapshot.version == held.version:
                return "same"
            if any(version < held.bindings.get(uid, version) for uid, version in snapshot.bindings.items()):
                return "older"
        self.held = snapshot
        return "newer"
