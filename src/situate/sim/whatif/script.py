"""What is going to happen, before anybody knows where: which pods come when, for how long, and which are deleted.

One script is played to every configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import TypeAlias

from situate.core.changes import Millis
from situate.core.model.meta import controller_of
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.storage import PersistentVolumeClaim
from situate.sim.whatif.distributions import Distribution

__all__ = ["Arrival", "Deletion", "PodSet", "NextPod", "Script", "ClusterSnapshot", "no_claims", "owner_name"]

Member: TypeAlias = Callable[[int], Pod]
Claims: TypeAlias = Callable[[int], Sequence[PersistentVolumeClaim]]


def no_claims(number: int) -> Sequence[PersistentVolumeClaim]:
    return ()


@unique
class NextPod(Enum):
    """When whoever makes the pods of a group makes one more."""

    NEVER = "never"
    BOUND = "bound"
    """When the one before has a node: a StatefulSet that goes by order."""
    FINISHED = "finished"
    """When one has finished: a Job."""


@dataclass(frozen=True, slots=True, eq=False)
class PodSet:
    """Pods that are made alike: those of a workload, of a part of a trace, or of one owner in the snapshot."""

    name: str
    """`Deployment default/web`."""
    member: Member
    """The pod of a number, from 0."""
    first: int = 0
    """How many come at once."""
    total: int = 0
    """How many come in all."""
    next: NextPod = NextPod.NEVER
    claims: Claims = no_claims
    named: bool = False
    """A member that is made again has its name again: it has an ordinal, an index or a node of its own."""
    lasting: bool = False
    """Its pods are meant to run for good, unless they say otherwise."""
    daemon: bool = False
    duration: Distribution | None = None
    """How long its pods run; None is for good."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod is created."""

    at_ms: Millis
    pod: Pod
    group: int
    number: int
    runs_ms: Millis | None
    """How long it runs from when it has a node; None: for good."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A pod is deleted, if it is still there."""

    at_ms: Millis
    key: str


@dataclass(slots=True)
class ClusterSnapshot:
    """The cluster as it is at the beginning."""

    nodes: list[Node] = field(default_factory=list)
    named: list[NamedObject] = field(default_factory=list)
    bound: list[Pod] = field(default_factory=list)


@dataclass(slots=True)
class Script:
    """Arrivals and deletions by time; among those of one time, as they were given."""

    groups: list[PodSet] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    named: list[NamedObject] = field(default_factory=list)
    """Objects that come with the workloads, at the beginning."""
    seed: int = 0


def owner_name(pod: Pod) -> str:
    """Whose pod it is: `ReplicaSet default/web-7d4b9`; of one that nobody owns, its own name."""
    owner, meta = controller_of(pod.metadata), pod.metadata
    return f"Pod {meta.namespace}/{meta.name}" if owner is None else f"{owner.kind} {meta.namespace}/{owner.name}"
