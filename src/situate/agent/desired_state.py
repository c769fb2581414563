"""What a node is to run, by its snapshot: the newest that was told, and never an older one. Pure.

    version          the revision of the snapshot
    bindings         by a pod's uid, the version of its binding
    configuration    what the control plane has the agent go by

Versions are revisions of the control plane's store and only grow. What is told with a lower one is old, and is refused.
Whoever comes to another control plane begins with nothing: see `checkpoint`.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

__all__ = ["NodeConfiguration", "Snapshot", "DesiredState", "decode_snapshot"]


class NodeConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    """How the control plane wants its agents. What is not said is as in Kubernetes."""

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
    """Of one node, in one version."""

    version: int
    bindings: dict[str, int] = {}
    configuration: NodeConfiguration = NodeConfiguration()


def decode_snapshot(body: bytes) -> Snapshot:
    """As a server shows it. Raises msgspec.DecodeError."""
    found = _decode(body)
    bindings = {one.uid: one.binding_version for one in found.spec.pods}
    return Snapshot(int(found.metadata.resource_version), bindings, found.spec.configuration)


class DesiredState:
    """One node's."""

    def __init__(self, held: Snapshot | None = None) -> None:
        self.held = held
        """The newest that was taken; None: none yet."""

    @property
    def version(self) -> int:
        return 0 if self.held is None else self.held.version

    def binding(self, uid: str) -> int | None:
        """The version of a pod's binding; None: it is not to run here, as far as is known."""
        return None if self.held is None else self.held.bindings.get(uid)

    def told(self, told: Snapshot) -> Literal["newer", "same", "older"]:
        """Only a newer one is taken."""
        held = self.held
        if held is not None:
            if told.version < held.version:
                return "older"
            if told.version == held.version:
                return "same"
            if any(version < held.bindings.get(uid, 0) for uid, version in told.bindings.items()):
                return "older"
        self.held = told
        return "newer"
