"""All that can happen, as the engine sees it. Each is a fact: it was observed, or an effect was carried out.

Changes come in the order in which they were observed. An outdated one has no effect: a pod that is already known, an
answer to an earlier attempt.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from situate.core.model.devices import ResourceClaim
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.model.refs import Millis, PodRef

__all__ = [
    "BindDone",
    "BindFailed",
    "Change",
    "ClaimsBound",
    "ClaimsFailed",
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
    """Such an object was deleted. `item` is how it was last seen."""

    item: NamedObject | PriorityClass


class BindDone(Struct, frozen=True):
    """A bind was carried out. The pod is seen bound before or after this."""

    pod: PodRef
    attempt: int


class BindFailed(Struct, frozen=True):
    """A bind failed. `final`: a retry cannot help, so the pod must be decided again."""

    pod: PodRef
    attempt: int
    problem: str
    final: bool = False


class EvictDone(Struct, frozen=True):
    """The API server accepted a victim's deletion. The victim will be seen leaving, and then gone."""

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


class ClaimsBound(Struct, frozen=True):
    """The devices of a reserved pod are written in its claims, and ready."""

    pod: PodRef
    attempt: int
    claims: tuple[ResourceClaim, ...] = ()
    """The claims as they were written, which may be news. So their devices stay taken, whatever becomes of the pod."""


class ClaimsFailed(Struct, frozen=True):
    pod: PodRef
    attempt: int
    problem: str
    claims: tuple[ResourceClaim, ...] = ()
    """The claims as far as they were written or read."""


class ExtenderSaid(Struct, frozen=True):
    """An extender answered. Names that it was not asked about are ignored: an answer may only narrow."""

    ask: int
    nodes: tuple[str, ...] | None = None
    """The nodes that are left; None: all of them."""
    refused: tuple[tuple[str, str], ...] = ()
    """(node, why) of nodes where eviction might help."""
    refused_for_good: tuple[tuple[str, str], ...] = ()
    scores: tuple[tuple[str, int], ...] = ()
    """(node, 0..10)."""
    victims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """To `preempt`: (node, uids of the pods that may be evicted there). No pod is evicted from other nodes."""
    problem: str = ""
    """Why there is no answer."""


class Leading(Struct, frozen=True):
    """Whether this engine decides from now on. A standby follows all changes, and decides nothing."""

    leads: bool


class Paused(Struct, frozen=True):
    """Whether decisions pause: too many binds are under way, or the scheduler is about to stop. Binds and evictions
    that were asked for go on."""

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
    | ClaimsBound
    | ClaimsFailed
    | ExtenderSaid
    | Leading
    | Paused
)
