"""All that can happen, as the engine is told of it. Each is a fact: it was seen, or somebody carried something out.

Changes come in the order in which they were observed. One that is old news changes nothing: a pod that is already
known, a bind of an earlier attempt.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.model.refs import Millis, PodRef

__all__ = [
    "BindDone",
    "BindFailed",
    "Change",
    "EvictDone",
    "EvictFailed",
    "ExtenderSaid",
    "Leading",
    "Millis",
    "NodeGone",
    "NodeSeen",
    "ObjectGone",
    "ObjectSeen",
    "Paused",
    "PodGone",
    "PodRef",
    "PodSeen",
    "VolumesBound",
    "VolumesFailed",
]


class NodeSeen(Struct, frozen=True):
    """A node was added or changed."""

    node: Node


class NodeGone(Struct, frozen=True):
    name: str


class PodSeen(Struct, frozen=True):
    """A pod was added or changed: waiting, bound, or finished."""

    pod: Pod


class PodGone(Struct, frozen=True):
    pod: PodRef


class ObjectSeen(Struct, frozen=True):
    """Any other object that scheduling reads was added or changed."""

    item: NamedObject | PriorityClass


class ObjectGone(Struct, frozen=True):
    """Such an object was deleted; the last that was seen of it."""

    item: NamedObject | PriorityClass


class BindDone(Struct, frozen=True):
    """A bind was carried out. The pod will be seen bound, before or after."""

    pod: PodRef
    attempt: int


class BindFailed(Struct, frozen=True):
    """A bind was not carried out. `final` if trying the same again cannot help: the pod must be decided anew."""

    pod: PodRef
    attempt: int
    problem: str
    final: bool = False


class EvictDone(Struct, frozen=True):
    """A victim's deletion was accepted; it will be seen leaving, and then gone."""

    pod: PodRef


class EvictFailed(Struct, frozen=True):
    pod: PodRef
    problem: str


class VolumesBound(Struct, frozen=True):
    """The volumes of a reserved pod are ready on its node."""

    pod: PodRef
    attempt: int


class VolumesFailed(Struct, frozen=True):
    pod: PodRef
    attempt: int
    problem: str


class ExtenderSaid(Struct, frozen=True):
    """An extender answered. Names that were not asked about are ignored: an answer may only narrow."""

    ask: int
    nodes: tuple[str, ...] | None = None
    """What is left of the nodes; None: all of them."""
    refused: tuple[tuple[str, str], ...] = ()
    """(node, why) of nodes that eviction might free."""
    refused_for_good: tuple[tuple[str, str], ...] = ()
    scores: tuple[tuple[str, int], ...] = ()
    """(node, 0..10)."""
    victims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """To `preempt`: (node, uids of the pods that may be evicted there). A node that is not here is left alone."""
    problem: str = ""
    """Why there is no answer, where there is none."""


class Leading(Struct, frozen=True):
    """Whether decisions are ours from now on. Who does not lead hears everything, and decides nothing."""

    leads: bool


class Paused(Struct, frozen=True):
    """Whether no pod is to be decided for now: more binds are under way than can be carried out soon, or we are about
    to stop. What was decided goes on."""

    paused: bool


Change: TypeAlias = (
    NodeSeen
    | NodeGone
    | PodSeen
    | PodGone
    | ObjectSeen
    | ObjectGone
    | BindDone
    | BindFailed
    | EvictDone
    | EvictFailed
    | VolumesBound
    | VolumesFailed
    | ExtenderSaid
    | Leading
    | Paused
)
