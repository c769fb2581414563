"""What happened, as columns: each pod that was there, each stay on a node, each time it waited and for what reason.

All figures are worked out from here when the run is over; while it goes on, nothing is summed.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from situate.core.changes import Millis
from situate.core.plugins.support.prices import COMES_WITH_THE_NODE
from situate.core.state.classes import PodClass

__all__ = ["OPEN", "PodEnd", "RunLedger", "Origin", "PodShape"]

OPEN: Final = -1
"""The end of what has not ended, and the moment of what has not happened."""


class Origin(IntEnum):
    """How a pod came to be."""

    SNAPSHOT = 0
    """It was bound when the simulation began."""
    ARRIVED = 1
    REMADE = 2
    """Its controller made it, in place of one that was evicted."""


class PodEnd(IntEnum):
    """What became of a pod."""

    THERE = 0
    """It waits, or it runs."""
    FINISHED = 1
    DELETED = 2
    EVICTED = 3


@dataclass(frozen=True, slots=True)
class PodShape:
    """What the pods of one class take of a node, as (resource column, amount)."""

    takes: tuple[tuple[int, int], ...]
    daemon: bool
    """They are where a node is, and not the other way round."""


@dataclass(slots=True)
class RunLedger:
    """Rows are in the order in which things happened."""

    shapes: list[PodShape] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Why pods waited: each text once."""
    keys: list[str] = field(default_factory=list)
    """Of each pod: namespace/name."""
    origins: array[int] = field(default_factory=lambda: array("b"))
    fates: array[int] = field(default_factory=lambda: array("b"))
    groups: array[int] = field(default_factory=lambda: array("i"))
    came_ms: array[int] = field(default_factory=lambda: array("q"))
    bound_ms: array[int] = field(default_factory=lambda: array("q"))
    """When it first got a node; OPEN if it never did."""
    pod_shapes: array[int] = field(default_factory=lambda: array("i"))
    """OPEN of a pod that no scheduler ever looked at."""
    # Stays: a pod on a node.
    stay_pods: array[int] = field(default_factory=lambda: array("i"))
    stay_nodes: array[int] = field(default_factory=lambda: array("i"))
    stay_from: array[int] = field(default_factory=lambda: array("q"))
    stay_to: array[int] = field(default_factory=lambda: array("q"))
    # Waits: a pod without one.
    wait_pods: array[int] = field(default_factory=lambda: array("i"))
    wait_reasons: array[int] = field(default_factory=lambda: array("i"))
    wait_from: array[int] = field(default_factory=lambda: array("q"))
    wait_to: array[int] = field(default_factory=lambda: array("q"))
    evictions: int = 0
    _shape_at: dict[PodClass, int] = field(default_factory=dict)
    _reason_at: dict[str, int] = field(default_factory=dict)

    def pod(self, key: str, origin: Origin, group: int, now: Millis) -> int:
        """A pod came to be; its row."""
        self.keys.append(key)
        self.origins.append(origin)
        self.fates.append(PodEnd.THERE)
        self.groups.append(group)
        self.came_ms.append(now)
        self.bound_ms.append(OPEN)
        self.pod_shapes.append(OPEN)
        return len(self.keys) - 1

    def shape(self, pod: int, kind: PodClass) -> None:
        """The class of a pod, once it is known."""
        at = self._shape_at.get(kind)
        if at is None:
            daemon = kind.owner is not None and kind.owner.kind in COMES_WITH_THE_NODE
            at = self._shape_at[kind] = len(self.shapes)
            self.shapes.append(PodShape(kind.takes, daemon))
        self.pod_shapes[pod] = at

    def stay(self, pod: int, node_row: int, now: Millis) -> int:
        """A pod got a node; the row of its stay."""
        if self.bound_ms[pod] == OPEN:
            self.bound_ms[pod] = now
        self.stay_pods.append(pod)
        self.stay_nodes.append(node_row)
        self.stay_from.append(now)
        self.stay_to.append(OPEN)
        return len(self.stay_pods) - 1

    def waited(self, pod: int, reason: int, since: Millis, until: Millis) -> None:
        self.wait_pods.append(pod)
        self.wait_reasons.append(reason)
        self.wait_from.append(since)
        self.wait_to.append(until)

    def reason(self, text: str) -> int:
        at = self._reason_at.get(text)
        if at is None:
            at = self._reason_at[text] = len(self.reasons)
            self.reasons.append(text)
        return at
