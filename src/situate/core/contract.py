"""What a plugin is: the questions it answers, the values it answers with, and what may wake a pod it refused.

A plugin is asked about every node at once and answers with arrays. It has no client, no handle, no bag of state and
no other plugin: what it may read is the pod's class and the view, and the view remembers what was read, so that an
answer is computed again only when something it was computed from has moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from situate.core.state.classes import PodClass
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
    POD_LABEL = "bound pod's labels changed"
    POD_SCALED_DOWN = "bound pod asks for less"
    POD_TOLERATION = "waiting pod's tolerations changed"
    POD_GATES_ELIMINATED = "waiting pod's gates were removed"
    CLAIM_ADDED = "claim added"
    CLAIM_UPDATED = "claim changed"
    VOLUME_ADDED = "volume added"
    VOLUME_UPDATED = "volume changed"
    STORAGE_CLASS_ADDED = "storage class added"
    STORAGE_CLASS_UPDATED = "storage class changed"
    CSI_NODE_ADDED = "CSI node added"
    CSI_NODE_UPDATED = "CSI node changed"
    CSI_DRIVER_UPDATED = "CSI driver changed"
    CSI_CAPACITY_ADDED = "storage capacity added"
    CSI_CAPACITY_UPDATED = "storage capacity changed"
    VOLUME_ATTACHMENT_DELETED = "volume attachment deleted"


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


Verdict: TypeAlias = "Codes | Refusal | Failure | None"


def status_code(eviction_helps: bool) -> str:
    """Kubernetes' name for this kind of no."""
    return "Unschedulable" if eviction_helps else "UnschedulableAndUnresolvable"


class Plugin(Protocol):
    """What every plugin has. It is also a Filter, a Scorer, or both."""

    name: ClassVar[str]


@runtime_checkable
class Filter(Protocol):
    """Refuses nodes."""

    name: ClassVar[str]
    reasons: ClassVar[tuple[Reason, ...]]
    wakes_on: ClassVar[frozenset[Wake]]

    def check(self, pod: PodClass, view: View) -> Verdict:
        """One byte a node; None where the plugin has no say on this pod; a Refusal turns the whole pod away."""


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


@runtime_checkable
class RowScorer(Protocol):
    """A scorer whose score of a node depends on that node's own row alone: the scalar twin of `score`."""

    def scorer_at(self, pod: PodClass, view: View) -> Callable[[int], int]: ...


@runtime_checkable
class Detailed(Protocol):
    """A filter whose texts for a node are more than one reason: which texts apply to which nodes."""

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, npt.NDArray[np.bool_]]]: ...
