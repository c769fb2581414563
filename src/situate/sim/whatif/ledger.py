"""The record of a run, as columns: pods, stays on nodes, and waits with their reasons.

The figures are computed from it after the run.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from situate.core.changes import Millis
from situate.core.plugins.support.prices import NODE_OWNERS
from situate.core.state.classes import PodClass

_AVAILABLE: Final = re.compile(r"\d+/\d+ nodes are available: ?(.*?)(?:\.(?: .*)?)?", re.DOTALL)
_PART: Final = re.compile(r"(?:^|, )\d+ (.*?)(?=, \d+ |$)", re.DOTALL)
LONGEST: Final = 300
OPEN: Final = -1
"""The time of what has not happened or ended yet."""


class Origin(IntEnum):
    SNAPSHOT = 0
    """Bound at the start of the simulation."""
    ARRIVED = 1
    REMADE = 2
    """Created by its controller to replace an evicted pod."""


class PodEnd(IntEnum):
    THERE = 0
    """Pending or running."""
    FINISHED = 1
    DELETED = 2
    EVICTED = 3


@dataclass(frozen=True, slots=True)
class PodShape:
    """The requests of a class, as (resource column, amount)."""

    takes: tuple[tuple[int, int], ...]
    daemon: bool
    """A daemon: it comes with its node."""


@dataclass(slots=True)
class RunLedger:
    """Rows are in the order of events."""

    shapes: list[PodShape] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Distinct reasons of waits."""
    keys: list[str] = field(default_factory=list)
    """namespace/name of each pod."""
    origins: array[int] = field(default_factory=lambda: array("b"))
    ends: array[int] = field(default_factory=lambda: array("b"))
    groups: array[int] = field(default_factory=lambda: array("i"))
    came_ms: array[int] = field(default_factory=lambda: array("q"))
    bound_ms: array[int] = field(default_factory=lambda: array("q"))
    """When it first got a node; OPEN: never."""
    pod_shapes: array[int] = field(default_factory=lambda: array("i"))
    """OPEN: no scheduler looked at the pod."""
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
        """Add a pod; return its row."""
        self.keys.append(key)
        self.origins.append(origin)
        self.ends.append(PodEnd.THERE)
        self.groups.append(group)
        self.came_ms.append(now)
        self.bound_ms.append(OPEN)
        self.pod_shapes.append(OPEN)
        return len(self.keys) - 1

    def shape(self, pod: int, kind: PodClass) -> None:
        """Set the class of a pod."""
        at = self._shape_at.get(kind)
        if at is None:
            daemon = kind.owner is not None and kind.owner.kind in NODE_OWNERS
            at = self._shape_at[kind] = len(self.shapes)
            self.shapes.append(PodShape(kind.takes, daemon))
        self.pod_shapes[pod] = at

    def stay(self, pod: int, node_row: int, now: Millis) -> int:
        """Add a stay on a node; return its row."""
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


def reason_in(message: str) -> str:
    """The reason without numbers and advice, so that equal ones can be counted: `Insufficient cpu, Too many pods`. A
    text that is not kube-scheduler's stays as it is."""
    match = _AVAILABLE.fullmatch(message)
    said = message if match is None else match[1]
    parts = _PART.findall(said) if match is not None else []
    text = ", ".join(sorted(dict.fromkeys(parts))) if parts else said
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
