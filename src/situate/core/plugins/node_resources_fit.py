"""NodeResourcesFit: refuse nodes without the requested resources, and score by how full they would be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, get_args

import numpy as np
from msgspec.structs import replace

from situate.core.contract import Bounds, Codes, Reason, Scores, Wake, WakeEvent
from situate.core.model.field_errors import child, forbidden, index, invalid, required, unsupported
from situate.core.model.resources import is_extended
from situate.core.plugins.support.arguments import (
    CPU_AND_MEMORY,
    ArgModel,
    PluginArgs,
    ResourceSpec,
    UtilizationShapePoint,
    label_name_problems,
    shape_problems,
    weight_problems,
    with_weights,
)
from situate.core.plugins.support.extended_devices import EMPTY_COLUMNS, served_columns, serves_request
from situate.core.plugins.support.load_bounds import LeastAllocatedBounds
from situate.core.plugins.support.load_columns import FreeAmounts
from situate.core.plugins.support.normalize import fits_everywhere
from situate.core.plugins.support.resource_scoring import LEAST_ALLOCATED, Scoring, Strategy, scaled_shape
from situate.core.state.classes import CPU, FIXED_RESOURCES, MEMORY, PODS, PodClass
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.followers import following
from situate.core.state.objects import ObjectTable
from situate.core.state.view import DEVICES, View

SHORT: Final = 1
"""Not enough is free; evicting pods could change that."""
TOO_SMALL: Final = 2
"""Even the empty node has too little."""

TOO_MANY_PODS: Final = "Too many pods"
STRATEGIES: Final[tuple[str, ...]] = get_args(Strategy)


class RequestedToCapacityRatio(ArgModel, frozen=True, kw_only=True):
    shape: tuple[UtilizationShapePoint, ...] = ()

    def validate(self, path: str) -> list[str]:
        return shape_problems(child(path, "shape"), self.shape)


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
        scoring = Scoring(self.type, self.resources, scaled_shape(points))  # type: ignore[arg-type]
        return LEAST_ALLOCATED if scoring == LEAST_ALLOCATED else scoring


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
        {
            Wake.POD_DELETED,
            Wake.POD_SCALED_DOWN,
            Wake.NODE_ADDED,
            Wake.NODE_ALLOCATABLE,
            Wake.DEVICE_CLASS_ADDED,
            Wake.DEVICE_CLASS_UPDATED,
        }
    )

    @classmethod
    def from_args(cls, args: NodeResourcesFitArgs, points: frozenset[str]) -> NodeResourcesFit:
        ignored, groups = frozenset(args.ignored_resources), frozenset(args.ignored_resource_groups)
        return cls(ignored, groups, args.scoring_strategy.parse())

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        match event.kind:
            case Wake.NODE_ADDED:
                return event.room is None or self._could_hold(pod, event.room, event.objects)
            case Wake.NODE_ALLOCATABLE if event.room is not None and event.room_before is not None:
                if not self._could_hold(pod, event.room, event.objects):
                    return False
                return _gained(pod, event.room, event.room_before) or _now_devices(pod, event)
            case Wake.DEVICE_CLASS_ADDED | Wake.DEVICE_CLASS_UPDATED:
                return serves_request(pod, event)
            case Wake.POD_DELETED:
                return bool(event.node_name)
            case Wake.POD_SCALED_DOWN if event.pod is not None and event.pod_before is not None and not event.own:
                return _freed(pod, event.pod_before, event.pod)
            case _:
                return True

    def _could_hold(self, pod: PodClass, room: Mapping[int, int], objects: ObjectTable | None) -> bool:
        """Whether the pod would fit on the empty node; resources that may be ignored do not count, nor do those that
        the node lacks and that devices may serve."""
        may_ignore = bool(self.ignored_resources or self.ignored_groups)
        return all(
            room.get(column, 0) >= amount or (room.get(column, 0) <= 0 and column in served_columns(pod, objects))
            for column, amount in pod.asks
            if column < len(FIXED_RESOURCES) or not may_ignore
        )

    def asked(self, pod: PodClass, view: View) -> Sequence[tuple[int, int]]:
        """(column, amount) of the requests that are checked: all that the configuration does not ignore."""
        if not (self.ignored_resources or self.ignored_groups):
            return pod.asks
        names = view.cluster.resources.names
        return [(column, amount) for column, amount in pod.asks if not self._ignored(names[column])]

    def _ignored(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self.ignored_resources or name.partition("/")[0] in self.ignored_groups

    def check(self, pod: PodClass, view: View) -> Codes | None:
        if view.is_plain:
            return self._check_all(pod, view)
        short = np.zeros(view.size, np.bool_)
        too_small: list[Mask] = []
        served = _served(pod, view)
        for column, amount in self.asked(pod, view):
            allocatable = view.allocatable(column)
            lacking = view.requested(column) > allocatable - amount
            short |= lacking & (allocatable > 0) if column in served else lacking
            if column != PODS and amount > _smallest(view, column):
                too_small.append(_below(allocatable, amount, column in served))
        return _codes(short, too_small)

    def _check_all(self, pod: PodClass, view: View) -> Codes | None:
        """The same where all rows are shown as they are. Does not look at resources of which every node has enough."""
        short: Mask | None = None
        too_small: list[Mask] = []
        free = following(view, FreeAmounts, None)
        served = _served(pod, view)
        for column, amount in self.asked(pod, view):
            if column not in free.least:
                free.add(column)
            if amount <= free.least[column]:
                continue
            lacking = free.amounts[column] < amount
            if column in served:
                lacking &= view.allocatable(column) > 0
            short = lacking if short is None else np.logical_or(short, lacking, out=short)
            if column != PODS and amount > _smallest(view, column):
                too_small.append(_below(view.allocatable(column), amount, column in served))
        if short is None:
            return None if view.once else fits_everywhere(view)
        return _codes(short, too_small)

    def checker_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        """The scalar twin of `check`. Precomputes all that does not depend on the row."""
        nodes = view.cluster.nodes
        served = _served(pod, view)
        if served:
            return self._checker_with_devices(pod, view, served)
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

    def _checker_with_devices(self, pod: PodClass, view: View, served: Mapping[int, str]) -> Callable[[int], int]:
        nodes = view.cluster.nodes
        cells = [
            (nodes.allocatable_cells[column], nodes.requested_cells[column], amount, column)
            for column, amount in self.asked(pod, view)
        ]

        def check_at(row: int) -> int:
            code = 0
            for allocatable, requested, amount, column in cells:
                room = allocatable[row]
                if requested[row] + amount > room and (room > 0 or column not in served):
                    if column != PODS and amount > room:
                        return TOO_SMALL
                    code = SHORT
            return code

        return check_at

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, Mask]]:
        """Names every resource that a node is short of, not only the first."""
        names = view.cluster.resources.names
        served = _served(pod, view)
        found: list[tuple[str, Mask]] = []
        for column, amount in self.asked(pod, view):
            allocatable = view.allocatable(column)
            lacking = view.requested(column) > allocatable - amount
            if column in served:
                lacking = lacking & (allocatable > 0)
            found.append((TOO_MANY_PODS if column == PODS else f"Insufficient {names[column]}", lacking))
        return found

    def score(self, pod: PodClass, view: View) -> Scores:
        return self.scoring.score(pod, view)

    def bounds(self, pod: PodClass, view: View) -> Bounds | None:
        if self.scoring is not LEAST_ALLOCATED or not view.is_plain:
            return None
        free = following(view, LeastAllocatedBounds, (CPU, MEMORY))
        if not free.is_known:
            return None
        cpu, memory = pod.weighs.nonzero_milli_cpu, pod.weighs.nonzero_memory
        return Bounds(free.bounds(cpu, memory), lambda row: free.exact_at(row, cpu, memory))

    def scorer_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        return self.scoring.scorer_at(pod, view)


def _served(pod: PodClass, view: View) -> Mapping[int, str]:
    """The requested resources that devices serve where a node has none: DynamicResources decides there."""
    if not pod.requested_names:
        return EMPTY_COLUMNS
    view.reads |= DEVICES
    return served_columns(pod, view.cluster.objects)


def _below(allocatable: IntColumn, amount: int, served: bool) -> Mask:
    below: Mask = allocatable < amount
    return below & (allocatable > 0) if served else below


def _now_devices(pod: PodClass, event: WakeEvent) -> bool:
    """Whether a resource that the node had is now up to devices."""
    served = served_columns(pod, event.objects)
    room, before = event.room or {}, event.room_before or {}
    return any(room.get(column, 0) <= 0 < before.get(column, 0) for column in served)


def _codes(short: Mask, too_small: Sequence[Mask]) -> Codes:
    """Overwrites `short`."""
    codes = short.view(np.uint8)
    for mask in too_small:
        codes[mask] = TOO_SMALL
    return codes


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
