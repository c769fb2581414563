"""All that the engine asks of the world. An effect is a value: a performer carries it out and reports back.

The texts of events and conditions are Kubernetes' own.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from situate.core.model.devices import AllocationResult, DeviceRequest
from situate.core.model.refs import PodRef


class Bind(Struct, frozen=True):
    """Bind a pod to a node. Answered by BindDone or BindFailed with the same attempt.

    After a failure the retry is another attempt; if no answer came, it is the same one.
    """

    pod: PodRef
    node: str
    attempt: int
    extender: int | None = None
    """The index in the configuration of the extender that binds this pod, if one does."""
    annotations: tuple[tuple[str, str], ...] = ()
    """What the bind writes on the pod. Extenders do not get it: their protocol has no field for it."""


class BindVolumes(Struct, frozen=True):
    """Make the volumes of a reserved pod ready on a node. Answered by VolumesBound or VolumesFailed."""

    pod: PodRef
    node: str
    attempt: int
    static: tuple[tuple[str, str], ...]
    """(claim, volume) to be bound."""
    provision: tuple[str, ...]
    """Claims to be provisioned for this node."""


class ClaimToBind(Struct, frozen=True):
    """A claim of a reserved pod."""

    name: str
    uid: str
    allocation: AllocationResult | None = None
    """The devices that it gets; None: it has some."""


class ExtendedResource(Struct, frozen=True):
    """Which request of the claim serves a container's extended resource."""

    container: str
    resource: str
    request: str


class ClaimToCreate(Struct, frozen=True):
    """The claim for the extended resources of a pod, with the devices that it gets."""

    requests: tuple[DeviceRequest, ...]
    allocation: AllocationResult
    mappings: tuple[ExtendedResource, ...]


class BindClaims(Struct, frozen=True):
    """Write the devices of a reserved pod in its claims, reserve the claims for it, and wait until the devices are
    ready. Answered by ClaimsBound or ClaimsFailed."""

    pod: PodRef
    node: str
    attempt: int
    claims: tuple[ClaimToBind, ...]
    create: ClaimToCreate | None = None


class UnreserveClaims(Struct, frozen=True):
    """The pod was not bound: claims are not reserved for it any more. Their devices stay; a claim that was created for
    its extended resources is deleted."""

    pod: PodRef
    claims: tuple[str, ...]


class ReleaseClaim(Struct, frozen=True):
    """Take the devices of a claim back, because the pod cannot use them on any node that it fits. A claim that was
    created for extended resources is deleted."""

    pod: PodRef
    claim: str
    uid: str
    delete: bool = False


class Evict(Struct, frozen=True):
    """Delete a victim, with the reason in its conditions. Answered by EvictDone or EvictFailed."""

    victim: PodRef
    node: str
    preemptor: PodRef
    message: str


class Nominate(Struct, frozen=True):
    """Set the pod's nominated node; an empty node clears it."""

    pod: PodRef
    node: str


class SetCondition(Struct, frozen=True):
    """Set a condition of the pod, unless it is set already."""

    pod: PodRef
    type: str
    status: Literal["True", "False"]
    reason: str
    message: str


class SetGroupCondition(Struct, frozen=True):
    """Set the condition PodGroupScheduled of a PodGroup of scheduling.k8s.io."""

    namespace: str
    name: str
    status: Literal["True", "False"]
    reason: str
    message: str


class Report(Struct, frozen=True):
    """An event about a pod."""

    pod: PodRef
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    related: PodRef | None = None


class Victims(Struct, frozen=True):
    """The pods that would be evicted from a node to make room."""

    node: str
    pods: tuple[PodRef, ...]
    """The most important first."""
    violations: int
    """How many of them a disruption budget protects."""


class AskExtender(Struct, frozen=True):
    """Ask an HTTP extender, by its index in the configuration. Answered by ExtenderSaid with the same number."""

    ask: int
    extender: int
    verb: Literal["filter", "prioritize", "preempt"]
    pod: PodRef
    nodes: tuple[str, ...]
    victims: tuple[Victims, ...] = ()
    """To `preempt`: for each of the nodes, the least harmful first."""


Effect: TypeAlias = (
    Bind
    | BindVolumes
    | BindClaims
    | UnreserveClaims
    | ReleaseClaim
    | Evict
    | Nominate
    | SetCondition
    | SetGroupCondition
    | Report
    | AskExtender
)
