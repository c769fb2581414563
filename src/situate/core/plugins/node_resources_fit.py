"""NodeResourcesFit: refuse nodes without the room a pod asks for, and prefer them by how full they would be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Codes, Reason, Scores, Wake, WakeEvent
from situate.core.model.resources import is_extended
from situate.core.plugins.support.resource_scoring import LEAST_ALLOCATED, Scoring
from situate.core.state.classes import FIXED_RESOURCES, PODS, PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View

SHORT: Final = 1
"""There is not enough left; there might be if others went."""
TOO_SMALL: Final = 2
"""The node could not give this much if it were empty."""

TOO_MANY_PODS: Final = "Too many pods"


@dataclass(frozen=True, slots=True)
class NodeResourcesFit:
    """Room by requests, not by use. Asking for nothing fits anywhere, even where it is overfull."""

    ignored_resources: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()
    scoring: Scoring = LEAST_ALLOCATED

    name: ClassVar[str] = "NodeResourcesFit"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("Insufficient resources", eviction_helps=True),
        Reason("Insufficient resources", eviction_helps=False),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {Wake.POD_DELETED, Wake.POD_SCALED_DOWN, Wake.NODE_ADDED, Wake.NODE_ALLOCATABLE}
    )

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        match event.kind:
            case Wake.NODE_ADDED:
                return event.room is None or self._could_hold(pod, event.room)
            case Wake.NODE_ALLOCATABLE if event.room is not None and event.room_before is not None:
                return self._could_hold(pod, event.room) and _gained(pod, event.room, event.room_before)
            case Wake.POD_DELETED:
                return bool(event.node_name)
            case Wake.POD_SCALED_DOWN if event.pod is not None and event.pod_before is not None and not event.own:
                return _freed(pod, event.pod_before, event.pod)
            case _:
                return True

    def _could_hold(self, pod: PodClass, room: Mapping[int, int]) -> bool:
        """Whether the pod would fit if nobody else were there; what may be ignored is not looked at."""
        may_ignore = bool(self.ignored_resources or self.ignored_groups)
        return all(
            room.get(column, 0) >= amount
            for column, amount in pod.asks
            if column < len(FIXED_RESOURCES) or not may_ignore
        )

    def asked(self, pod: PodClass, view: View) -> list[tuple[int, int]]:
        """(column, amount) of what is checked: all that is asked for but what the configuration ignores."""
        if not (self.ignored_resources or self.ignored_groups):
            return list(pod.asks)
        names = view.cluster.resources.names
        return [(column, amount) for column, amount in pod.asks if not self._ignored(names[column])]

    def _ignored(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self.ignored_resources or name.partition("/")[0] in self.ignored_groups

    def check(self, pod: PodClass, view: View) -> Codes | None:
        short = np.zeros(view.size, np.bool_)
        too_small: list[Mask] = []
        for column, amount in self.asked(pod, view):
            allocatable = view.allocatable(column)
            short |= view.requested(column) > allocatable - amount
            if column != PODS and amount > _smallest(view, column):
                too_small.append(allocatable < amount)
        codes = short.view(np.uint8)
        for mask in too_small:
            codes[mask] = TOO_SMALL
        return codes

    def checker_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        """The scalar twin of `check`, with all that does not depend on the row worked out."""
        nodes = view.cluster.nodes
        cells = [
            (nodes.allocatable_cells[column], nodes.requested_cells[column], amount, column != PODS)
            for column, amount in self.asked(pod, view)
        ]

        def check_at(row: int) -> int:
            code = 0
            for allocatable, requested, amount, can_be_too_small in cells:
                room = allocatable[row]
                if requested[row] + amount > room:
                    if can_be_too_small and amount > room:
                        return TOO_SMALL
                    code = SHORT
            return code

        return check_at

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, Mask]]:
        """Every resource a node is short of is named, not only the first."""
        names = view.cluster.resources.names
        return [
            (
                TOO_MANY_PODS if column == PODS else f"Insufficient {names[column]}",
                view.requested(column) > view.allocatable(column) - amount,
            )
            for column, amount in self.asked(pod, view)
        ]

    def score(self, pod: PodClass, view: View) -> Scores:
        return self.scoring.score(pod, view)

    def scorer_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        return self.scoring.scorer_at(pod, view)


def _gained(pod: PodClass, room: Mapping[int, int], before: Mapping[int, int]) -> bool:
    """Whether there is more of anything that the pod asks for, room for pods included."""
    return any(room.get(column, 0) > before.get(column, 0) for column, _ in pod.asks)


def _freed(pod: PodClass, before: PodClass, after: PodClass) -> bool:
    """Whether a bound pod takes less of anything that the pod asks for."""
    takes, took = dict(after.takes), dict(before.takes)
    return any(takes.get(column, 0) < took.get(column, 0) for column, _ in pod.asks)


def _smallest(view: View, column: int) -> int:
    """The least that any node has of a resource."""

    def compute(whole: View) -> int:
        return int(whole.allocatable(column)[whole.present].min(initial=(1 << 63) - 1))

    return view.memo((NodeResourcesFit.name, "smallest", column), compute)
