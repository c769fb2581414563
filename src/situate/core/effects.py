"""All that the engine asks of the world. An effect is a value: somebody else carries it out, and reports back.

The texts of events and conditions are Kubernetes' own.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from situate.core.model.refs import PodRef


class Bind(Struct, frozen=True):
    """Bind a pod to a node. Answered by BindDone or BindFailed with the same attempt.

    After a failure it is asked for again as another attempt; after silence, as the same one.
    """

    pod: PodRef
    node: str
    attempt: int
    extender: int | None = None
    """The place in the configuration of the extender that binds this pod, if one does."""
    annotations: tuple[tuple[str, str], ...] = ()
    """What is to be written on the pod together with the bind. Extenders are not told: their protocol has no word."""


class BindVolumes(Struct, frozen=True):
    """Make the volumes of a reserved pod ready on a node. Answered by VolumesBound or VolumesFailed."""

    pod: PodRef
    node: str
    attempt: int
    static: tuple[tuple[str, str], ...]
    """(claim, volume) to be bound."""
    provision: tuple[str, ...]
    """Claims to be provisioned for this node."""


class Evict(Struct, frozen=True):
    """Delete a victim, saying why in its conditions. Answered by EvictDone or EvictFailed."""

    victim: PodRef
    node: str
    preemptor: PodRef
    message: str


class Nominate(Struct, frozen=True):
    """Note on the pod which node is being freed for it; an empty node takes the note back."""

    pod: PodRef
    node: str


class SetCondition(Struct, frozen=True):
    """Set a condition of the pod, where it is not as said already."""

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
    """Who would have to leave a node to make room for a pod."""

    node: str
    pods: tuple[PodRef, ...]
    """The most important first."""
    violations: int
    """How many of them a disruption budget protects."""


class AskExtender(Struct, frozen=True):
    """Ask an HTTP extender, by its place in the configuration. Answered by ExtenderSaid with the same number."""

    ask: int
    extender: int
    verb: Literal["filter", "prioritize", "preempt"]
    pod: PodRef
    nodes: tuple[str, ...]
    victims: tuple[Victims, ...] = ()
    """To `preempt`: for each of the nodes, the least harmful first."""


Effect: TypeAlias = Bind | BindVolumes | Evict | Nominate | SetCondition | SetGroupCondition | Report | AskExtender
