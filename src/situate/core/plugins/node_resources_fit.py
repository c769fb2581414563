"""NodeResourcesFit: refuse nodes without the requested resources, and score by how full they would be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final, get_args

import numpy as np
from msgspec.structs import replace

from situate.core.contract import MAX_SCORE, Codes, Reason, Scores, Wake, WakeEvent
from situate.core.model.field_errors import child, forbidden, index, invalid, required, unsupported
from situate.core.model.resources import is_extended
from situate.core.plugins.support.arguments import (
    CPU_AND_MEMORY,
    ArgModel,
    PluginArgs,
    ResourceSpec,
    UtilizationShapePoint,
    label_name_problems,
    range_problems,
    weight_problems,
    with_weights,
)
from situate.core.plugins.support.resource_scoring import LEAST_ALLOCATED, Scoring, ShapePoint, Strategy
from situate.core.state.classes import FIXED_RESOURCES, PODS, PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View

SHORT: Final = 1
"""Not enough is free; evicting pods could change that."""
TOO_SMALL: Final = 2
"""Even the empty node has too little."""

TOO_MANY_PODS: Final = "Too many pods"
STRATEGIES: Final[tuple[str, ...]] = get_args(Strategy)
SHAPE_SCALE: Final = MAX_SCORE // 10
"""The configuration gives the scores of a shape as 0..10."""


class RequestedToCapacityRatio(ArgModel, frozen=True, kw_only=True):
    shape: tuple[UtilizationShapePoint, ...] = ()

    def validate(self, path: str) -> list[str]:
        here = child(path, "shape")
        if not self.shape:
            return [required(here, "at least one point must be specified")]
        problems = []
        for i, (last, point) in enumerate(pairwise(self.shape), start=1):
            if last.utilization >= point.utilization:
                detail = "values must be sorted in increasing order"
                problems.append(invalid(child(index(here, i), "utilization"), point.utilization, detail))
                break
        for i, point in enumerate(self.shape):
            problems += range_problems(child(index(here, i), "utilization"), point.utilization, 0, 100)
            problems += range_problems(child(index(here, i), "score"), point.score, 0, 10)
        return problems


class ScoringStrategy(ArgModel, frozen=True, kw_only=True):
    """`type`: LeastAllocated, MostAllocated or RequestedToCapacityRatio."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None

    omit_empty = ("resources",)

    def validate(self, path: str) -> list[str]:
        problems = []
        if self.type not in STRATEGIES:
            problems.append(unsupported(child(path, "type"), self.type, STRATEGIES))
        problems += weight_problems(child(path, "resources"), self.resources)
        ratio, ratio_path = self.requested_to_capacity_ratio, child(path, "requestedToCapacityRatio")
        if self.type != "RequestedToCapacityRatio":
            if ratio is not None:
                problems.append(forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio"))
        elif ratio is None:
            problems.append(required(ratio_path, "must be specified when type is RequestedToCapacityRatio"))
        else:
            problems += ratio.validate(ratio_path)
        return problems

    def parse(self) -> Scoring:
        ratio = self.requested_to_capacity_ratio
        points = () if ratio is None else ratio.shape
        shape = tuple(ShapePoint(point.utilization, point.score * SHAPE_SCALE) for point in points)
        return Scoring(self.type, self.resources, shape)  # type: ignore[arg-type]


class NodeResourcesFitArgs(PluginArgs, frozen=True, kw_only=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated", resources=CPU_AND_MEMORY)

    omit_empty = ("ignored_resources", "ignored_resource_groups")

    def with_defaults(self) -> NodeResourcesFitArgs:
        strategy = self.scoring_strategy
        return replace(self, scoring_strategy=replace(strategy, resources=with_weights(strategy.resources)))

    def validate(self, path: str) -> list[str]:
        problems: list[str] = []
        for i, resource in enumerate(self.ignored_resources):
            problems += label_name_problems(index(child(path, "ignoredResources"), i), resource)
        for i, group in enumerate(self.ignored_resource_groups):
            here = index(child(path, "ignoredResourceGroups"), i)
            if "/" in group:
                problems.append(invalid(here, group, "resource group name can't contain '/'"))
            problems += label_name_problems(here, group)
        return problems + self.scoring_strategy.validate(child(path, "scoringStrategy"))


@dataclass(frozen=True, slots=True)
class NodeResourcesFit:
    """Counts requests, not use. A request of 0 fits anywhere, even on an overcommitted node."""

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

    @classmethod
    def from_args(cls, args: NodeResourcesFitArgs, points: frozenset[str]) -> NodeResourcesFit:
        ignored, groups = frozenset(args.ignored_resources), frozenset(args.ignored_resource_groups)
        return cls(ignored, groups, args.scoring_strategy.parse())

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
        """Whether the pod would fit on the empty node; resources that may be ignored do not count."""
        may_ignore = bool(self.ignored_resources or self.ignored_groups)
        return all(
            room.get(column, 0) >= amount
            for column, amount in pod.asks
            if column < len(FIXED_RESOURCES) or not may_ignore
        )

    def asked(self, pod: PodClass, view: View) -> list[tuple[int, int]]:
        """(column, amount) of the requests that are checked: all that the configuration does not ignore."""
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
        """The scalar twin of `check`. Precomputes all that does not depend on the row."""
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
        """Names every resource that a node is short of, not only the first."""
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
    """Whether the node has more of anything that the pod requests, pod slots included."""
    return any(room.get(column, 0) > before.get(column, 0) for column, _ in pod.asks)


def _freed(pod: PodClass, before: PodClass, after: PodClass) -> bool:
    """Whether a bound pod now requests less of anything that the pod requests."""
    takes, took = dict(after.takes), dict(before.takes)
    return any(takes.get(column, 0) < took.get(column, 0) for column, _ in pod.asks)


def _smallest(view: View, column: int) -> int:
    """The lowest allocatable amount of any node."""

    def compute(whole: View) -> int:
        return int(whole.allocatable(column)[whole.present].min(initial=(1 << 63) - 1))

    return view.memo((NodeResourcesFit.name, "smallest", column), compute)
