"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod would leave used more evenly than before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import MAX_SCORE, Bounds, Scores
from situate.core.model.field_errors import child, index, invalid
from situate.core.plugins.support.arguments import CPU_AND_MEMORY, PluginArgs, ResourceSpec, repeated_name, with_weights
from situate.core.plugins.support.device_counts import Amount, amounts, amounts_at, device_counts
from situate.core.plugins.support.load_bounds import BalanceBounds
from situate.core.plugins.support.load_columns import SmallIntColumn
from situate.core.plugins.support.normalize import constant
from situate.core.plugins.support.resource_scoring import (
    Capacity,
    Cells,
    capacity,
    request_of,
    scored_columns,
    used_column,
)
from situate.core.state.classes import CPU, MEMORY, PodClass
from situate.core.state.columns import FloatColumn, Mask
from situate.core.state.followers import following
from situate.core.state.view import View

HALF: Final = MAX_SCORE // 2

NEARLY_FULL: Final = 0.999
"""Below this, no rounding makes a fraction exceed 1."""

Columns = Sequence[tuple[int, int, int]]
"""(resource column, amount, weight)"""


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True, kw_only=True):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    def with_defaults(self) -> NodeResourcesBalancedAllocationArgs:
        return NodeResourcesBalancedAllocationArgs(resources=with_weights(self.resources))

    def validate(self, path: str) -> list[str]:
        problems = []
        for i, resource in enumerate(self.resources):
            here = index(child(path, "resources"), i)
            problems += repeated_name(here, self.resources, i)
            if resource.weight != 1:
                problems.append(invalid(child(here, "weight"), resource.weight, "must be 1"))
        return problems


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocation:
    """Compares the balance of resource use with and without the pod. Does not score pods that request none."""

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    may_skip: bool = True
    """Whether a pod that requests none gets no score instead of 0. False where preScore is disabled."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"

    @classmethod
    def from_args(
        cls, args: NodeResourcesBalancedAllocationArgs, points: frozenset[str]
    ) -> NodeResourcesBalancedAllocation:
        return cls(args.resources, may_skip="preScore" in points)

    def score(self, pod: PodClass, view: View) -> Scores | None:
        if not self._asks(pod):
            return None if self.may_skip else constant(0, view)
        if view.is_plain and self.resources == CPU_AND_MEMORY:
            balance = following(view, Balance, (CPU, MEMORY))
            if balance.is_exact:
                return balance.gains(pod.requests.milli_cpu, pod.requests.memory)
        columns = scored_columns(self.resources, pod.requests, view, nonzero=False)
        if counts := device_counts(self.resources, pod, view):
            rows = amounts(columns, counts, view, nonzero=False)
            return np.fromiter((_gain_of(row) for row in rows), np.int64, len(rows))
        score = evenness(view, columns)
        score -= self._evenness_before(view, columns)
        # HALF + (HALF + difference) / 2, in integers. Evenness is within HALF..MAX_SCORE, so nothing here is
        # negative, and truncation equals Go's division.
        score += 3 * HALF
        score /= 2
        return score.astype(np.int64)

    def bounds(self, pod: PodClass, view: View) -> Bounds | None:
        cpu, memory = pod.requests.milli_cpu, pod.requests.memory
        if not view.is_plain or self.resources != CPU_AND_MEMORY or not (cpu or memory):
            return None
        balance = following(view, BalanceBounds, (CPU, MEMORY))
        if not balance.is_known:
            return None
        upper = balance.bounds(cpu, memory)
        return None if upper is None else Bounds(upper, lambda row: balance.exact_at(row, cpu, memory))

    def _evenness_before(self, view: View, columns: Columns) -> FloatColumn:
        """The evenness without the pod: the same for all pods that count the same resources."""
        idle = tuple((column, 0, weight) for column, _, weight in columns)
        cells = _cells(view, idle)
        return view.derived(
            (self.name, idle), lambda shown: evenness(shown, idle), lambda row: _evenness_at(_fractions_at(cells, row))
        )

    def _asks(self, pod: PodClass) -> bool:
        for resource in self.resources:  # noqa: SIM110 - a generator costs more than the requests
            if request_of(pod.requests, resource.name, nonzero=False):
                return True
        return False

    def scorer_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        """The scalar twin of `score`. Precomputes all that does not depend on the row."""
        columns = scored_columns(self.resources, pod.requests, view, nonzero=False)
        if counts := device_counts(self.resources, pod, view):
            at = amounts_at(columns, counts, view, nonzero=False)
            return lambda row: _gain_of(at(row))
        after = _cells(view, columns)
        before = _cells(view, [(column, 0, weight) for column, _, weight in columns])

        def score_at(row: int) -> int:
            gain = _evenness_at(_fractions_at(after, row)) - _evenness_at(_fractions_at(before, row))
            return HALF + (HALF + gain) // 2

        return score_at


class Balance:
    """How evenly two resources are used on each row."""

    __slots__ = ("_before", "_before_cells", "_first", "_second", "is_exact")

    def __init__(self, view: View, columns: tuple[int, int]) -> None:
        rooms = [capacity(view, column) for column in columns]
        self.is_exact = all(room.exact and room.missing is None for room in rooms)
        """Whether every node has some of both, and amounts are exact as floats. Else it does not know the gains."""
        idle = [(column, 0, 1) for column in columns]
        self._first, self._second = (_Use(view, column) for column in columns)
        # The difference that it makes is added to HALF twice: see `gains`.
        before = 3 * HALF - evenness(view, idle).astype(np.int32)
        self._before: SmallIntColumn = before
        self._before_cells = before.data

    def update(self, row: int) -> None:
        one, other = self._first.update(row), self._second.update(row)
        self._before_cells[row] = 3 * HALF - int((2.0 - abs(one - other)) * HALF)

    def gains(self, first: int, second: int) -> SmallIntColumn:
        """The scores of a pod that requests so much of both, as a new array."""
        spread = self._first.fraction(first)
        np.subtract(spread, self._second.fraction(second), out=spread)
        np.abs(spread, out=spread)
        # (1 - spread / 2) * MAX_SCORE: halving is exact, so it may as well come last.
        np.subtract(2.0, spread, out=spread)
        np.multiply(spread, float(HALF), out=spread)
        gains: SmallIntColumn = spread.astype(np.int32)
        gains += self._before
        return np.right_shift(gains, 1, out=gains)


class _Use:
    """What is requested of a resource on each row."""

    __slots__ = ("_cells", "_divisor", "_most", "_requested", "_room", "_smallest", "_used")

    def __init__(self, view: View, column: int) -> None:
        nodes = view.cluster.nodes
        self._room, self._requested = nodes.allocatable_cells[column], nodes.requested_cells[column]
        # Nothing is used of rows without a node, whatever a pod requests.
        self._divisor = np.where(view.present, capacity(view, column).divisor, np.inf)
        self._used: FloatColumn = view.requested(column).astype(np.float64)
        self._cells = self._used.data
        self._smallest = float(self._divisor.min(initial=np.inf))
        self._most = float((self._used / self._divisor).max(initial=0.0))
        """No node has a larger fraction in use."""

    def update(self, row: int) -> float:
        """Returns the fraction in use there."""
        used, room = self._requested[row], self._room[row] or 1
        self._cells[row] = used
        fraction = float(used) / room
        if fraction > self._most:  # noqa: PLR1730 - max() costs more than the rest
            self._most = fraction
        return min(fraction, 1.0)

    def fraction(self, amount: int) -> FloatColumn:
        """The fraction in use after a pod that requests so much; at most 1. A new array."""
        work = self._used + float(amount)
        np.divide(work, self._divisor, out=work)
        if self._most + amount / self._smallest > NEARLY_FULL:
            np.minimum(work, 1.0, out=work)
        return work


def evenness(view: View, columns: Columns) -> FloatColumn:
    """100 if all resources have the same utilization, lower the more they differ; absent resources do not count."""
    rooms = [capacity(view, column) for column, _, _ in columns]
    fractions = [
        _fraction(view, column, amount, room) for (column, amount, _), room in zip(columns, rooms, strict=True)
    ]
    if len(fractions) != 2 or any(room.missing is not None for room in rooms):
        return _evenness_of_some(view.size, fractions, rooms)
    spread = fractions[0]
    spread -= fractions[1]
    np.abs(spread, out=spread)
    spread /= 2
    return _falling(spread)


def _falling(spread: FloatColumn) -> FloatColumn:
    np.subtract(1.0, spread, out=spread)
    spread *= MAX_SCORE
    return np.floor(spread, out=spread)


def _fraction(view: View, column: int, amount: int, room: Capacity) -> FloatColumn:
    """The fraction in use after the pod; at most 1."""
    if room.exact:
        fraction = used_column(view, column, nonzero=False) + amount
    else:
        fraction = (view.requested(column) + amount).astype(np.float64)
    fraction /= room.divisor
    if fraction.size and fraction.max() > 1.0:
        np.minimum(fraction, 1.0, out=fraction)
    return fraction


def _evenness_of_some(size: int, fractions: Sequence[FloatColumn], rooms: Sequence[Capacity]) -> FloatColumn:
    """The same for any number of resources, where nodes may lack some."""
    counted = [np.ones(size, np.bool_) if room.missing is None else ~room.missing for room in rooms]
    # Summed in the order of the resources, one by one, as Go does: the order of float additions is part of the result.
    count = np.zeros(size, np.int64)
    total = np.zeros(size)
    for fraction, has in zip(fractions, counted, strict=True):
        total += np.where(has, fraction, 0.0)
        count += has
    mean = total / np.maximum(count, 1)
    squares = np.zeros(size)
    for fraction, has in zip(fractions, counted, strict=True):
        off = fraction - mean
        squares += np.where(has, off * off, 0.0)
    deviation = np.where(count > 2, np.sqrt(squares / np.maximum(count, 1)), 0.0)
    return _falling(np.where(count == 2, _half_gap(size, fractions, counted), deviation))


def _half_gap(size: int, fractions: Sequence[FloatColumn], counted: Sequence[Mask]) -> FloatColumn:
    """Half the difference of the two fractions, if two count."""
    seen = np.zeros(size, np.int64)
    gap = np.zeros(size)
    for fraction, has in zip(fractions, counted, strict=True):
        gap = np.where(has & (seen == 0), fraction, np.where(has & (seen == 1), gap - fraction, gap))
        seen += has
    return np.abs(gap / 2)


def _gain_of(row: Sequence[Amount]) -> int:
    """The score by the amounts of one row."""
    after = [((room,), (used,), amount, weight) for room, used, amount, weight in row]
    before = [((room,), (used,), 0, weight) for room, used, _, weight in row]
    gain = _evenness_at(_fractions_at(after, 0)) - _evenness_at(_fractions_at(before, 0))
    return HALF + (HALF + gain) // 2


def _cells(view: View, columns: Columns) -> Cells:
    nodes = view.cluster.nodes
    return [
        (nodes.allocatable_cells[column], nodes.requested_cells[column], amount, weight)
        for column, amount, weight in columns
    ]


def _fractions_at(cells: Cells, row: int) -> list[float]:
    found = []
    for allocatable, requested, amount, _ in cells:
        room = allocatable[row]
        if room:
            taken = requested[row] + amount
            # Convert both to floats before the division: beyond 2**53 the integer quotient may differ.
            found.append(float(taken) / room if taken < room else 1.0)
    return found


def _evenness_at(fractions: list[float]) -> int:
    count = len(fractions)
    if count == 2:
        return int((1.0 - abs(fractions[0] - fractions[1]) / 2) * MAX_SCORE)
    if count < 2:
        return MAX_SCORE
    # Not sum(): from Python 3.12 on it corrects rounding, which Go does not.
    total = squares = 0.0
    for fraction in fractions:
        total += fraction
    mean = total / count
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return int((1.0 - sqrt(squares / count)) * MAX_SCORE)
