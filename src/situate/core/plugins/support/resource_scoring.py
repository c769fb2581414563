"""The three scoring strategies of NodeResourcesFit, over all nodes and for one.

Kubernetes computes in int64. Below a dividend of 2**53, float64 gives the same integers after rounding down (the true
quotient is either an integer or further from the next one than half a unit in the last place), in a tenth of the time;
above that, integers are divided one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from situate.core.contract import MAX_SCORE, Scores
from situate.core.model.requests import Requests
from situate.core.model.resources import is_scalar
from situate.core.plugins.support.arguments import CPU_AND_MEMORY, ResourceSpec, UtilizationShapePoint
from situate.core.plugins.support.device_counts import Amount, amounts, amounts_at, device_counts
from situate.core.plugins.support.load_columns import SMALL_AMOUNTS, FreePercentages, SmallIntColumn
from situate.core.state.classes import CPU, MEMORY, PodClass
from situate.core.state.columns import FloatColumn, Mask
from situate.core.state.followers import following
from situate.core.state.view import View

EXACT_FLOATS: Final = 1 << 53
MAX_UTILIZATION: Final = 100
SHAPE_SCALE: Final = MAX_SCORE // 10
"""The configuration gives the scores of a shape as 0..10."""

Strategy = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """The score (0..MAX_SCORE) at a utilization (0..100)."""

    utilization: int
    score: int


def scaled_shape(points: Sequence[UtilizationShapePoint]) -> tuple[ShapePoint, ...]:
    """The shape of a configuration, which gives scores as 0..10."""
    return tuple(ShapePoint(point.utilization, point.score * SHAPE_SCALE) for point in points)


def request_of(requests: Requests, name: str, *, nonzero: bool) -> int:
    """The request for one resource; `nonzero` applies Kubernetes' minimum for cpu and memory."""
    match name:
        case "cpu":
            return requests.nonzero_milli_cpu if nonzero else requests.milli_cpu
        case "memory":
            return requests.nonzero_memory if nonzero else requests.memory
        case "ephemeral-storage":
            return requests.ephemeral_storage
        case _:
            return requests.scalar.get(name, 0)


def scored_columns(
    resources: Sequence[ResourceSpec], requests: Requests, view: View, *, nonzero: bool
) -> list[tuple[int, int, int]]:
    """(column, amount, weight) of the resources that count for this pod.

    Skips resources that no node has, and extended ones that the pod does not request. `pods` cannot be weighed:
    Kubernetes does not count it among a node's scalar resources.
    """
    found = []
    for resource in resources:
        amount = request_of(requests, resource.name, nonzero=nonzero)
        column = view.resource(resource.name)
        if column < 0 or resource.name == "pods" or (not amount and is_scalar(resource.name)):
            continue
        found.append((column, amount, resource.weight))
    return found


@dataclass(frozen=True, slots=True)
class Capacity:
    """The allocatable amount of one resource over all rows, 1 instead of 0 to allow division."""

    divisor: FloatColumn
    missing: Mask | None
    """The rows that have none of it; None if every node has some."""
    exact: bool
    """Whether a hundred times the amount is exact as a float."""
    small: bool
    """Whether percentages can be added up from parts: see `FreePercentages`."""


def capacity(view: View, column: int) -> Capacity:
    def compute(whole: View) -> Capacity:
        allocatable = whole.allocatable(column)
        missing = allocatable == 0
        none_missing = not (missing & whole.present).any()
        most = int(allocatable.max(initial=0))
        return Capacity(
            divisor=np.maximum(allocatable, 1).astype(np.float64),
            missing=None if none_missing else missing,
            exact=most * MAX_SCORE < EXACT_FLOATS,
            small=most < SMALL_AMOUNTS,
        )

    found = view.memo(("capacity", column), compute)
    rows, missing = view.rows, found.missing
    if view.size == len(found.divisor):
        return found
    return replace(found, divisor=found.divisor[rows], missing=None if missing is None else missing[rows])


def used_column(view: View, column: int, *, nonzero: bool) -> FloatColumn:
    """The requested amount, as floats."""
    nonzero = nonzero and column in (CPU, MEMORY)
    nodes = view.cluster.nodes
    cells = nodes.nonzero_cells[column] if nonzero else nodes.requested_cells[column]

    def compute(shown: View) -> FloatColumn:
        used = shown.nonzero_requested(column) if nonzero else shown.requested(column)
        return used.astype(np.float64)

    return view.derived(("used", column, nonzero), compute, cells.__getitem__)


def percentages(strategy: Strategy, view: View, column: int, amount: int, room: Capacity) -> FloatColumn:
    """LeastAllocated: the free percentage. Others: the percentage in use. Overcommitted nodes count as full."""
    if not room.exact:
        return _percentages_of_large(strategy, view, column, amount)
    part = used_column(view, column, nonzero=True) + amount
    if strategy == "LeastAllocated":
        np.subtract(room.divisor, part, out=part)
        if part.size and part.min() < 0:
            np.maximum(part, 0.0, out=part)
    else:
        np.minimum(part, room.divisor, out=part)
    part *= MAX_SCORE
    part /= room.divisor
    return np.floor(part, out=part)


def _percentages_of_large(strategy: Strategy, view: View, column: int, amount: int) -> FloatColumn:
    """The same for amounts that floats do not represent exactly. Python's integers do not overflow where Go's would."""
    used = view.nonzero_requested(column) if column in (CPU, MEMORY) else view.requested(column)
    rooms, useds = view.allocatable(column).tolist(), used.tolist()
    if strategy == "LeastAllocated":
        parts = [
            max(room - taken - amount, 0) * MAX_SCORE // max(room, 1) for room, taken in zip(rooms, useds, strict=True)
        ]
    else:
        parts = [
            min(taken + amount, room) * MAX_SCORE // max(room, 1) for room, taken in zip(rooms, useds, strict=True)
        ]
    return np.array(parts, np.float64)


def interpolated(shape: Sequence[ShapePoint], utilization: int) -> int:
    """The score at a utilization: linear between the points of the shape, constant outside."""
    before = shape[0]
    if utilization <= before.utilization:
        return before.score
    for point in shape[1:]:
        if utilization <= point.utilization:
            rise = (point.score - before.score) * (utilization - before.utilization)
            return before.score + truncated(rise, point.utilization - before.utilization)
        before = point
    return before.score


def truncated(dividend: int, divisor: int) -> int:
    """Division as Go does it: towards zero. The divisor is positive."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)


def round_half_up(number: float) -> int:
    """Go's math.Round for non-negative numbers: halves round up."""
    return int(np.floor(number + 0.5))


@dataclass(frozen=True, slots=True)
class Scoring:
    """A strategy with the resources it weighs."""

    strategy: Strategy = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    shape: tuple[ShapePoint, ...] = ()

    def score(self, pod: PodClass, view: View) -> Scores:
        if view.is_plain and self.strategy == "LeastAllocated" and self.resources == CPU_AND_MEMORY:
            free = following(view, LeastAllocated, (CPU, MEMORY))
            if free.is_exact:
                return free.scores(pod.weighs.nonzero_milli_cpu, pod.weighs.nonzero_memory)
        columns = scored_columns(self.resources, pod.weighs, view, nonzero=True)
        if counts := device_counts(self.resources, pod, view):
            rows = amounts(columns, counts, view, nonzero=True)
            return np.fromiter((self._score_of(row) for row in rows), np.int64, len(rows))
        if self.strategy == "RequestedToCapacityRatio":
            return self._by_shape(columns, view)
        total: FloatColumn | None = None
        weights: FloatColumn | int = 0
        for column, amount, weight in columns:
            room = capacity(view, column)
            part = percentages(self.strategy, view, column, amount, room)
            if weight != 1:
                part *= weight
            if room.missing is not None:
                part[room.missing] = 0
                weights = weights + np.where(room.missing, 0.0, weight)
            else:
                weights = weights + weight
            total = part if total is None else np.add(total, part, out=total)
        if total is None:
            return np.zeros(view.size, np.int64)
        total /= np.maximum(weights, 1)
        return total.astype(np.int64)

    def _by_shape(self, columns: Sequence[tuple[int, int, int]], view: View) -> Scores:
        table = np.array([interpolated(self.shape, percent) for percent in range(MAX_UTILIZATION + 1)], np.int64)
        total = np.zeros(view.size, np.int64)
        weights = np.zeros(view.size, np.int64)
        for column, amount, weight in columns:
            room = capacity(view, column)
            part = table[percentages(self.strategy, view, column, amount, room).astype(np.intp)]
            counted = part > 0
            if room.missing is not None:
                counted &= ~room.missing
            total += np.where(counted, part * weight, 0)
            weights += np.where(counted, weight, 0)
        # Halves round up, as in Go's math.Round; the sums are small, so this is exact.
        ratio = np.true_divide(total, np.maximum(weights, 1))
        return np.floor(ratio + 0.5).astype(np.int64)

    def scorer_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        """The scalar twin of `score`. Precomputes all that does not depend on the row."""
        columns = scored_columns(self.resources, pod.weighs, view, nonzero=True)
        if counts := device_counts(self.resources, pod, view):
            at = amounts_at(columns, counts, view, nonzero=True)
            return lambda row: self._score_of(at(row))
        nodes = view.cluster.nodes
        cells = [
            (
                nodes.allocatable_cells[column],
                nodes.nonzero_cells[column] if column in (CPU, MEMORY) else nodes.requested_cells[column],
                amount,
                weight,
            )
            for column, amount, weight in columns
        ]
        if self.strategy == "LeastAllocated":
            return lambda row: _least_at(cells, row)
        if self.strategy == "MostAllocated":
            return lambda row: _most_at(cells, row)
        return lambda row: _shaped_at(cells, self.shape, row)

    def _score_of(self, row: Sequence[Amount]) -> int:
        """The score by the amounts of one row."""
        cells = [((room,), (used,), amount, weight) for room, used, amount, weight in row]
        if self.strategy == "LeastAllocated":
            return _least_at(cells, 0)
        if self.strategy == "MostAllocated":
            return _most_at(cells, 0)
        return _shaped_at(cells, self.shape, 0)


LEAST_ALLOCATED: Final = Scoring()


class LeastAllocated:
    """The score by the free percentage of two resources that weigh the same."""

    __slots__ = ("_first", "_second", "is_exact")

    def __init__(self, view: View, columns: tuple[int, int]) -> None:
        rooms = [capacity(view, column) for column in columns]
        self.is_exact = all(room.small and room.missing is None for room in rooms)
        """Whether every node has some of both, and not too much for `FreePercentages`. Else it knows no scores."""
        self._first, self._second = (FreePercentages(view, column) for column in columns)

    def update(self, row: int) -> None:
        self._first.update(row)
        self._second.update(row)

    def scores(self, first: int, second: int) -> SmallIntColumn:
        """Of a pod that requests so much of both, as a new array."""
        total = self._first.after(first)
        total += self._second.after(second)
        return np.right_shift(total, 1, out=total)


Cells = Sequence[tuple["memoryview[int] | tuple[int, ...]", "memoryview[int] | tuple[int, ...]", int, int]]


def _least_at(cells: Cells, row: int) -> int:
    total = weights = 0
    for allocatable, used, amount, weight in cells:
        room = allocatable[row]
        if room:
            weights += weight
            free = room - used[row] - amount
            if free > 0:
                total += free * MAX_SCORE // room * weight
    return total // weights if weights else 0


def _most_at(cells: Cells, row: int) -> int:
    total = weights = 0
    for allocatable, used, amount, weight in cells:
        room = allocatable[row]
        if room:
            weights += weight
            total += min(used[row] + amount, room) * MAX_SCORE // room * weight
    return total // weights if weights else 0


def _shaped_at(cells: Cells, shape: Sequence[ShapePoint], row: int) -> int:
    total = weights = 0
    for allocatable, used, amount, weight in cells:
        room = allocatable[row]
        if room:
            score = interpolated(shape, min(used[row] + amount, room) * MAX_UTILIZATION // room)
            if score > 0:
                weights += weight
                total += score * weight
    return round_half_up(total / weights) if weights else 0
