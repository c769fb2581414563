"""What a plugin is: its methods, the values it returns, and the events that wake the pods it refused.

A plugin judges all nodes at once and returns arrays. It has no client, no handle, no state bag and no other plugin: it
may read the pod's class and the view. The view records what was read, so a verdict is computed again only when
something it depends on changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

if TYPE_CHECKING:
    from situate.core.model.base import Model
    from situate.core.model.node import Node
    from situate.core.state.classes import PodClass
    from situate.core.state.objects import ObjectTable
    from situate.core.state.view import View
    from situate.core.versions import KubernetesRules

Codes: TypeAlias = npt.NDArray[np.uint8]
"""One byte per node: FITS, the 1-based index of one of the plugin's reasons, or RULED_OUT."""

Scores: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.int32]
"""0..MAX_SCORE per node, normalized over the feasible nodes. Values of infeasible nodes are ignored."""

FITS: Final = 0
RULED_OUT: Final = 255
"""The node was ruled out before filtering: the pod names the nodes it may run on, and this is not one of them."""

FAILED: Final = 254
"""The filter failed on the node: see NodeFailures."""

MAX_SCORE: Final = 100


@unique
class Wake(Enum):
    """A kind of event that may make a refused pod fit. It wakes the pod only if a plugin that refused it lists it."""

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
    RESOURCE_CLAIM_ADDED = "resource claim added"
    RESOURCE_CLAIM_UPDATED = "resource claim changed"
    RESOURCE_CLAIM_DELETED = "resource claim deleted"
    RESOURCE_SLICE_ADDED = "resource slice added"
    RESOURCE_SLICE_UPDATED = "resource slice changed"
    RESOURCE_SLICE_DELETED = "resource slice deleted"
    DEVICE_CLASS_ADDED = "device class added"
    DEVICE_CLASS_UPDATED = "device class changed"
    DEVICE_CLASS_DELETED = "device class deleted"
    POD_RESOURCE_CLAIMS = "claims were made for the waiting pod"


class WakeEvent(Struct, frozen=True):
    """Something happened that unschedulable pods may wait for. What it is not about is None or empty."""

    kind: Wake
    node: Node | None = None
    """The node that was added, or as it is now."""
    node_before: Node | None = None
    """As it was before it changed or left."""
    room: Mapping[int, int] | None = None
    """The node's allocatable amounts by resource column, where they are new."""
    room_before: Mapping[int, int] | None = None
    pod: PodClass | None = None
    """The bound pod that was added, changed or left; with `own`, the waiting pod itself."""
    pod_before: PodClass | None = None
    own: bool = False
    """The waiting pod itself changed. The event is for this pod alone."""
    node_name: str = ""
    """The node of the bound pod; empty if that node has left, too."""
    up_to: int | None = None
    """Only pods of at most this priority are concerned: the room was nominated, not taken."""
    item: Model | None = None
    """Any other object: as it is now, or as it was last seen."""
    item_before: Model | None = None
    objects: ObjectTable | None = None
    """The objects as they are now, for selectors over namespaces and workloads."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node was refused, in Kubernetes' words, and whether evictions on the node could change that."""

    text: str
    eviction_helps: bool

    @property
    def code(self) -> str:
        return status_code(self.eviction_helps)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The pod is turned away before any node is filtered."""

    text: str
    eviction_helps: bool = False

    @property
    def code(self) -> str:
        return status_code(self.eviction_helps)


@dataclass(frozen=True, slots=True)
class Failure:
    """The plugin failed: something is wrong with an object it had to read. The pod is retried as after an error."""

    text: str
    stage: str = "PreFilter"
    """The extension point where Kubernetes would fail; its message names it."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeFailures:
    """The verdict of a filter that failed on some nodes: FAILED in `codes`.

    The pod fails with the first of them that no earlier filter refuses, whatever other nodes there are.
    """

    codes: Codes
    texts: Mapping[int, str]
    """By row."""


class Unjudged(str):
    """The message of a Detailed filter for a node that it could not judge. Kubernetes calls that an error."""

    __slots__ = ("plugin",)

    plugin: str

    def __new__(cls, text: str, plugin: str) -> Unjudged:
        made = super().__new__(cls, text)
        made.plugin = plugin
        return made

    @property
    def error(self) -> str:
        return f'running "{self.plugin}" filter plugin: {self}'


Verdict: TypeAlias = "Codes | NodeFailures | Refusal | Failure | None"


def status_code(eviction_helps: bool) -> str:
    """Kubernetes' status code for a refusal."""
    return "Unschedulable" if eviction_helps else "UnschedulableAndUnresolvable"


@runtime_checkable
class Filter(Protocol):
    """Refuses nodes."""

    name: ClassVar[str]
    reasons: ClassVar[tuple[Reason, ...]]
    wakes_on: ClassVar[frozenset[Wake]]

    def check(self, pod: PodClass, view: View) -> Verdict:
        """One byte per node; None: the plugin does not judge this pod; a Refusal turns the whole pod away."""


@runtime_checkable
class Discerning(Protocol):
    """A filter that can tell whether an event it waits for could help a pod that it refused.

    It must not return False if the event could make it accept a node that it refused: the pod would wait for ever.
    """

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool: ...


@runtime_checkable
class Scorer(Protocol):
    """Rates feasible nodes."""

    name: ClassVar[str]

    def score(self, pod: PodClass, view: View) -> Scores | None:
        """0..100 per node, normalized over `view.feasible`; None: the plugin does not score this pod."""


@runtime_checkable
class Versioned(Protocol):
    """A plugin that decides differently by version of Kubernetes. Built without a version, it follows DEFAULT."""

    def with_rules(self, rules: KubernetesRules) -> Versioned:
        """The same plugin by these rules."""


@runtime_checkable
class RowFilter(Protocol):
    """A filter whose verdict on a node depends on that node's row alone, and that can judge a single row.

    `checker_at` computes what does not depend on the row, and returns the scalar twin of `check`. After a bind, the
    twin judges the one row that the bind touched. It is built again when a node changes.
    """

    def checker_at(self, pod: PodClass, view: View) -> Callable[[int], int]: ...


@dataclass(frozen=True, slots=True)
class DomainChecker:
    """The verdicts of a filter by domain of a topology key."""

    topology_key: str
    check: Callable[[View], Codes]
    """One byte per domain, as `View.label` numbers them; the last is for nodes without the label."""


@runtime_checkable
class DomainFilter(Protocol):
    """A filter whose verdict may be the same for all nodes of a topology domain, and that can judge by domain.

    `domain_checker` computes what does not depend on pod counts; it returns None if the verdict is not the same within
    domains. After a bind few domains change, and only their rows are updated. It is built again when a node changes.
    """

    def domain_checker(self, pod: PodClass, view: View) -> DomainChecker | None: ...


@runtime_checkable
class RowScorer(Protocol):
    """A scorer whose score of a node depends on that node's row alone: `scorer_at` is the scalar twin of `score`."""

    def scorer_at(self, pod: PodClass, view: View) -> Callable[[int], int]: ...


class Bounds(NamedTuple):
    """Upper bounds of a scorer's scores, and the score itself at a row."""

    upper: npt.NDArray[np.int16]
    exact_at: Callable[[int], int]


@runtime_checkable
class BoundedScorer(Protocol):
    """A scorer that can give upper bounds of its scores in less time than the scores, for an answer nobody keeps.

    The bounds should equal the scores nearly everywhere: the row that looks best is scored, and only where its bound
    was too high, another row has to be looked at.
    """

    def bounds(self, pod: PodClass, view: View) -> Bounds | None:
        """None: there are none for this pod and view, so `score` must be asked."""


class DomainScores(NamedTuple):
    """Scores that all nodes of a topology domain share, but for a few."""

    topology_key: str | None
    """None if all nodes share one."""
    by_domain: list[int]
    """As `View.label` numbers the domains; the last is for nodes without the label. A single one without a key."""
    by_row: Mapping[int, int]
    """The scores of the nodes that differ."""

    def by_node(self, view: View) -> Scores:
        """Written out for each node of a view of all rows."""
        table = np.array(self.by_domain, np.int32)
        if self.topology_key is None:
            scores = np.full(view.size, table[0], np.int32)
        else:
            scores = table.take(view.label(self.topology_key)[0])
        cells = scores.data
        for row, score in self.by_row.items():
            cells[row] = score
        return scores


@runtime_checkable
class DomainScorer(Protocol):
    """A scorer whose scores may be the same within domains: `brief_scores` is `score` without writing each node's."""

    def brief_scores(self, pod: PodClass, view: View) -> DomainScores | Scores | None: ...


@runtime_checkable
class Assigner(Protocol):
    """Chooses something on the pod's node, such as a device, and writes it on the pod."""

    name: ClassVar[str]

    def assign(self, pod: PodClass, view: View, row: int) -> Mapping[str, str]:
        """The annotations that the bind writes; none if the plugin ignores the pod. The pod is not on the row yet.

        The result must depend only on the pod's class and on what is read of the row: `assign` may be called again.
        """


@runtime_checkable
class Detailed(Protocol):
    """A filter with more than one reason for a node: which texts apply to which nodes."""

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, npt.NDArray[np.bool_]]]: ...
