"""PlacementDecision as it is stored: the pod's node and why, or why it has none, and the phases of the binding.

It is written and deleted with its pod, at the same revision. If the pod failed or was evicted and another of its name
will come, it stays until then, so that binding versions count on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import astuple, replace

from situate.core.model.base import EMPTY
from situate.server.placing.phases import Phase
from situate.server.registry.codec import encode_compact
from situate.server.resources import BY_KIND, Resource

PLACEMENT_DECISIONS: Final[Resource] = BY_KIND["situate.dev/v1alpha1", "PlacementDecision"]
PHASES_KEPT: Final = 16
"""How many of its last phases a decision keeps."""


class Score(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A node's score: the sum, and each plugin's weighted part of it."""

    node: str
    total: int
    plugins: Mapping[str, int] = EMPTY


class Refusals(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """How many nodes were refused for one reason. Each node counts once, for the first plugin that refused it."""

    reason: str
    plugin: str
    nodes: int


class Details(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """What the scheduler saw when it decided. Empty for another scheduler's bind."""

    reason: str = ""
    """For a pending pod: `Unschedulable` or `SchedulerError`."""
    message: str = ""
    score: int | None = None
    """Of the chosen node."""
    nodes: int = 0
    """How many were considered: all, or as many as the profile's sampling drew."""
    feasible: int = 0
    attempts: int = 0
    scores: tuple[msgspec.Raw, ...] = ()
    """The best ten, best first, each an encoded Score."""
    alternatives: tuple[str, ...] = ()
    """The next best nodes."""
    refusals: tuple[Refusals, ...] = ()
    wakes_on: tuple[str, ...] = ()
    """The events that trigger a retry."""
    sampled_from: int = 0
    """How many nodes there were, if not all of them were considered."""


class _Owner(msgspec.Struct, frozen=True, rename="camel", gc=False):
    api_version: str
    kind: str
    name: str
    uid: str


class _Meta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str
    namespace: str
    uid: str
    creation_timestamp: str
    owner_references: tuple[_Owner, ...]


class _Spec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    pod_uid: str = msgspec.field(name="podUID")
    node: str = ""
    binding_version: int = 0
    scheduler: str = ""
    snapshot_version: str = ""
    """The version of the node's snapshot that the bind was checked against."""


class PhaseChange(msgspec.Struct, frozen=True, gc=False):
    phase: Phase
    at: str


class _Status(Details, frozen=True, rename="camel", omit_defaults=True, gc=False):
    phase: Phase | None = None
    phases: tuple[PhaseChange, ...] = ()


class PlacementDecision(msgspec.Struct, frozen=True, gc=False):
    """The whole object, in its stored form."""

    metadata: _Meta
    spec: _Spec
    status: _Status

    @property
    def phase(self) -> Phase | None:
        return self.status.phase


_decode: Final = msgspec.json.Decoder(PlacementDecision).decode


def encoded(decision: PlacementDecision) -> bytes:
    return encode_compact(decision)


def decoded(value: bytes) -> PlacementDecision:
    return _decode(value)


def decided(pod: Mapping[str, Any], held: PlacementDecision | None, new_uid: str, at: str) -> PlacementDecision:
    """The decision about this pod: the held one, one carried over from an earlier pod of its name, or a new one."""
    meta = pod["metadata"]
    owner = _Owner("v1", "Pod", meta["name"], meta["uid"])
    if held is not None:
        if held.spec.pod_uid == meta["uid"]:
            return held
        kept = replace(held.metadata, owner_references=(owner,))
        spec = _Spec(meta["uid"], "", held.spec.binding_version)
        return PlacementDecision(kept, spec, _Status(phase=held.phase, phases=held.status.phases))
    made = _Meta(meta["name"], meta["namespace"], new_uid, at, (owner,))
    return PlacementDecision(made, _Spec(meta["uid"]), _Status())


def moved(
    decision: PlacementDecision,
    phase: Phase,
    at: str,
    *,
    node: str | None = None,
    binding_version: int | None = None,
    scheduler: str = "",
    snapshot_version: str = "",
    details: Details | None = None,
) -> PlacementDecision:
    """The decision in this phase; what is None or empty stays."""
    spec, status = decision.spec, decision.status
    if node is not None:
        version = spec.binding_version if binding_version is None else binding_version
        spec = _Spec(
            spec.pod_uid, node, version, scheduler or spec.scheduler, snapshot_version or spec.snapshot_version
        )
    phases = status.phases
    if phase != status.phase:
        phases = (*phases[-(PHASES_KEPT - 1) :], PhaseChange(phase, at))
    if details is None and spec.node and spec.binding_version != decision.spec.binding_version:
        status = _Status(phase=phase, phases=phases)  # why it waited is over, and who bound it gave no reasons
    elif details is None:
        status = replace(status, phase=phase, phases=phases)
    else:
        status = _Status(*astuple(details), phase, phases)  # type: ignore[call-arg]
    return PlacementDecision(decision.metadata, spec, status)
