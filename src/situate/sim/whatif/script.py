"""The script of a simulation: which pods arrive when, for how long, and which are deleted.

Every configuration plays the same script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import TypeAlias

from situate.core.changes import Millis
from situate.core.devices.template_claims import Templates
from situate.core.model.meta import controller_of
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.storage import PersistentVolumeClaim
from situate.sim.whatif.distributions import Distribution

Member: TypeAlias = Callable[[int], Pod]
Claims: TypeAlias = Callable[[int], Sequence[PersistentVolumeClaim]]


def no_claims(number: int) -> Sequence[PersistentVolumeClaim]:
    return ()


@unique
class NextPod(Enum):
    """When the controller of a set creates the next pod."""

    NEVER = "never"
    BOUND = "bound"
    """When the previous one has a node: an ordered StatefulSet."""
    FINISHED = "finished"
    """When one has finished: a Job."""


@dataclass(frozen=True, slots=True, eq=False)
class PodSet:
    """Pods of one source: a workload, part of a trace, or one owner in the snapshot."""

    name: str
    """`Deployment default/web`."""
    member: Member
    """The pod by number, from 0."""
    first: int = 0
    """How many arrive at the start."""
    total: int = 0
    """How many arrive in total."""
    next: NextPod = NextPod.NEVER
    claims: Claims = no_claims
    named: bool = False
    """A replacement keeps the name, because it has an ordinal, an index or a node."""
    lasting: bool = False
    """Pods run for ever, unless they set a duration."""
    daemon: bool = False
    duration: Distribution | None = None
    """How long pods run; None: for ever."""


@dataclass(frozen=True, slots=True)
class Arrival:
    at_ms: Millis
    pod: Pod
    group: int
    number: int
    runs_ms: Millis | None
    """Run time from the bind; None: for ever."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """The pod is deleted if it still exists."""

    at_ms: Millis
    key: str


@dataclass(slots=True)
class ClusterSnapshot:
    """The initial cluster."""

    nodes: list[Node] = field(default_factory=list)
    named: list[NamedObject] = field(default_factory=list)
    bound: list[Pod] = field(default_factory=list)


@dataclass(slots=True)
class Script:
    """Arrivals and deletions are ordered by time."""

    groups: list[PodSet] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    named: list[NamedObject] = field(default_factory=list)
    """Objects that come with the workloads, at the start."""
    templates: Templates = field(default_factory=dict)
    """From which the claims of pods are made when they arrive."""
    seed: int = 0


def owner_name(pod: Pod) -> str:
    """The owner of a pod, `ReplicaSet default/web-7d4b9`, or its own name if it has none."""
    owner, meta = controller_of(pod.metadata), pod.metadata
    return f"Pod {meta.namespace}/{meta.name}" if owner is None else f"{owner.kind} {meta.namespace}/{owner.name}"
