"""What a plugin is: the questions it answers, the values it answers with, and what may wake a pod it refused.

A plugin is asked about every node at once and answers with arrays. It has no client, no handle, no bag of state and
no other plugin: what it may read is the pod's class and the view, and the view remembers what was read, so that an
answer is computed again only when something it was computed from has moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

if TYPE_CHECKING:
    from situate.core.model.base import Model
    from situate.core.model.node import Node
    from situate.core.state.classes import PodClass
    from situate.core.state.objects import ObjectTable
    from situate.core.state.view import View

Codes: TypeAlias = npt.NDArray[np.uint8]
"""One byte a node: FITS, the 1-based index of one of the plugin's reasons, or RULED_OUT."""

Scores: TypeAlias = npt.NDArray[np.int64]
"""0..MAX_SCORE a node, already normalised over the feasible nodes. What stands at an infeasible node is not read."""

FITS: Final = 0
RULED_OUT: Final = 255
"""The node was ruled out before anybody looked at it: the pod names the nodes it may run on, and this is not one."""

MAX_SCORE: Final = 100


@unique
class Wake(Enum):
    """A kind of change that may make a refused pod fit. One that no refusing plugin lists does not wake the pod."""

    NODE_ADDED = "node added"
    NODE_DELETED = "node deleted"
    NODE_ALLOCATABLE = "node's allocatable changed"
    NODE_LABEL = "node's labels changed"
    NODE_TAINT = "node's taints changed"
    NODE_DECLARED_FEATURE = "node's declared features changed"
    POD_ADDED = "pod was bound"
    POD_DELETED = "bound pod left"
    POD_LEAVING = "bound pod is being deleted"
    POD_LABEL = "pod's labels changed"
    POD_SCALED_DOWN = "pod asks for less"
    POD_TOLERATION = "waiting pod's tolerations changed"
    POD_GATES_ELIMINATED = "waiting pod's gates were removed"
    NAMESPACE_LABEL = "namespace's labels changed"
    WORKLOAD_CHANGED = "service or controller came, changed or left"
    CLAIM_ADDED = "claim added"
    CLAIM_UPDATED = "claim changed"
    CLAIM_DELETED = "claim deleted"
    VOLUME_ADDED = "volume added"
    VOLUME_UPDATED = "volume changed"
    VOLUME_DELETED = "volume deleted"
    STORAGE_CLASS_ADDED = "storage class added"
    STORAGE_CLASS_UPDATED = "storage class changed"
    STORAGE_CLASS_DELETED = "storage class deleted"
    CSI_NODE_ADDED = "CSI node added"
    CSI_NODE_UPDATED = "CSI node changed"
    CSI_NODE_DELETED = "CSI node deleted"
    CSI_DRIVER_UPDATED = "CSI driver changed"
    CSI_DRIVER_DELETED = "CSI driver deleted"
    CSI_CAPACITY_ADDED = "storage capacity added"
    CSI_CAPACITY_UPDATED = "storage capacity changed"
    VOLUME_ATTACHMENT_DELETED = "volume attachment deleted"
    LATENCY_CHANGED = "latency table changed"


class WakeEvent(Struct, frozen=True):
    """Something happened that parked pods may have waited for. What it is not about is None or empty."""

    kind: Wake
    node: Node | None = None
    """The node that came, or as it is now."""
    node_before: Node | None = None
    """As it was before it changed or left."""
    room: Mapping[int, int] | None = None
    """What the node can give, by resource column; told where that is new."""
    room_before: Mapping[int, int] | None = None
    pod: PodClass | None = None
    """The bound pod that came, changed or left; or, where `own` says so, the waiting pod itself."""
    pod_before: PodClass | None = None
    own: bool = False
    """The waiting pod itself changed, and it alone is told of it."""
    node_name: str = ""
    """Where the bound pod is or was; empty if that node has left, too."""
    up_to: int | None = None
    """Only pods of at most this priority could see what changed: room that was promised, not taken."""
    item: Model | None = None
    """Any other object that came, as it is now, or the last that was seen of it."""
    item_before: Model | None = None
    objects: ObjectTable | None = None
    """The objects by name as they are: namespaces and workloads, where selectors have to be read."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node was refused, in Kubernetes' words; and whether evicting pods from the node could change the answer."""

    text: str
    eviction_helps: bool

    @property
    def code(self) -> str:
        return status_code(self.eviction_helps)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The pod is turned away before any node is looked at."""

    text: str
    eviction_helps: bool = False

    @property
    def code(self) -> str:
        return status_code(self.eviction_helps)


@dataclass(frozen=True, slots=True)
class Failure:
    """The plugin could not answer: something is wrong with an object it had to read. The pod is retried as an error."""

    text: str
    stage: str = "PreFilter"
    """Where Kubernetes would have noticed; its text names it."""


class Unjudged(str):
    """What is said of a node that a filter could not judge, by a Detailed filter. Kubernetes calls that an error."""

    __slots__ = ("plugin",)

    plugin: str

    def __new__(cls, text: str, plugin: str) -> Unjudged:
        made = super().__new__(cls, text)
        made.plugin = plugin
        return made

    @property
    def error(self) -> str:
        return f'running "{self.plugin}" filter plugin: {self}'


Verdict: TypeAlias = "Codes | Refusal | Failure | None"


def status_code(eviction_helps: bool) -> str:
    """Kubernetes' name for this kind of no."""
    return "Unschedulable" if eviction_helps else "UnschedulableAndUnresolvable"


@runtime_checkable
class Filter(Protocol):
    """Refuses nodes."""

    name: ClassVar[str]
    reasons: ClassVar[tuple[Reason, ...]]
    wakes_on: ClassVar[frozenset[Wake]]

    def check(self, pod: PodClass, view: View) -> Verdict:
        """One byte a node; None where the plugin has no say on this pod; a Refusal turns the whole pod away."""


@runtime_checkable
class Discerning(Protocol):
    """A filter that can tell whether an event of a kind it waits for could help a pod that it refused.

    It must not say no when the event could make it take a node that it refused: the pod would wait for ever.
    """

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool: ...


@runtime_checkable
class Scorer(Protocol):
    """Says how good each feasible node is."""

    name: ClassVar[str]

    def score(self, pod: PodClass, view: View) -> Scores | None:
        """0..100 a node, normalised over `view.feasible`; None where the plugin sits out."""


@runtime_checkable
class RowFilter(Protocol):
    """A filter whose answer for a node depends on that node's own row alone, and which can answer for one row.

    `checker_at` works out all that does not depend on the row, and returns the scalar twin of `check`: after a bind it
    refreshes the one row that the bind touched. It is asked for again when a node changes.
    """

    def checker_at(self, pod: PodClass, view: View) -> Callable[[int], int]: ...


@dataclass(frozen=True, slots=True)
class DomainChecker:
    """Says what a filter says, by domain of a topology key."""

    topology_key: str
    check: Callable[[View], Codes]
    """One byte a domain, as `View.label` numbers them; the last is for nodes without the label."""


@runtime_checkable
class DomainFilter(Protocol):
    """A filter whose answer may be the same for all nodes of a topology domain, and which can answer by domain.

    `domain_checker` works out all that does not depend on how many pods are where; None where the answer cannot be told
    by domain. After a bind few domains have another answer, and only the rows of those are looked at. It is asked for
    again when a node changes.
    """

    def domain_checker(self, pod: PodClass, view: View) -> DomainChecker | None: ...


@runtime_checkable
class RowScorer(Protocol):
    """A scorer whose score of a node depends on that node's own row alone: the scalar twin of `score`."""

    def scorer_at(self, pod: PodClass, view: View) -> Callable[[int], int]: ...


@runtime_checkable
class Assigner(Protocol):
    """Chooses something on the node that a pod goes to, and has it written on the pod: a device, say."""

    name: ClassVar[str]

    def assign(self, pod: PodClass, view: View, row: int) -> Mapping[str, str]:
        """The annotations that travel with the bind; none where the plugin has no say. The pod is not on the row yet.

        It must follow from the pod's class and from what is read of the row: it may be asked again.
        """


@runtime_checkable
class Detailed(Protocol):
    """A filter whose texts for a node are more than one reason: which texts apply to which nodes."""

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, npt.NDArray[np.bool_]]]: ...
