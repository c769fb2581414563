"""Upper bounds of the scores by load, in half the memory and half the time of the scores themselves.

Floats of 32 bits are off by less than MARGIN here, and so much is added before a bound is rounded down. A bound is
higher than the score only where a percentage is that close below an integer, which is rare; `exact_at` tells.

Every pod that shares its requests with no other comes by here, so the two resources are written out, without calls, and
arrays are used again: what `bounds` returns is overwritten by the next call.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from situate.core.contract import MAX_SCORE
from situate.core.plugins.support.resource_scoring import capacity
from situate.core.state.columns import FloatColumn
from situate.core.state.view import View

MARGIN: Final = 1e-4
HALF: Final = MAX_SCORE // 2

FEW_BITS: Final = np.float32
Percentages = npt.NDArray[np.float32]
Bounds = npt.NDArray[np.int16]

NEARLY_FULL: Final = 0.999
"""Below this, no rounding makes a fraction exceed 1."""


class LeastAllocatedBounds:
    """Of the score by the free percentage of two resources that weigh the same."""

    __slots__ = (
        "_cells_1",
        "_cells_2",
        "_free_1",
        "_free_2",
        "_least_1",
        "_least_2",
        "_longest_step_1",
        "_longest_step_2",
        "_other",
        "_part",
        "_room_1",
        "_room_2",
        "_step_1",
        "_step_2",
        "_total",
        "_used_1",
        "_used_2",
        "is_known",
    )

    def __init__(self, view: View, columns: tuple[int, int]) -> None:
        self.is_known = all(capacity(view, column).missing is None for column in columns)
        """Whether every node has some of both. Else there are no bounds."""
        first, second = columns
        nodes = view.cluster.nodes
        self._room_1, self._used_1 = nodes.allocatable_cells[first], nodes.nonzero_cells[first]
        self._room_2, self._used_2 = nodes.allocatable_cells[second], nodes.nonzero_cells[second]
        self._free_1, self._step_1, self._least_1, self._longest_step_1 = _free_percentages(view, first)
        self._free_2, self._step_2, self._least_2, self._longest_step_2 = _free_percentages(view, second)
        self._cells_1: memoryview[Any] = self._free_1.data
        self._cells_2: memoryview[Any] = self._free_2.data
        self._part: Percentages = np.empty(view.size, FEW_BITS)
        self._total: Bounds = np.empty(view.size, np.int16)
        self._other: Bounds = np.empty(view.size, np.int16)

    def update(self, row: int) -> None:
        room = self._room_1[row] or 1
        percent = (room - self._used_1[row]) * MAX_SCORE / room
        self._cells_1[row] = percent + MARGIN
        if percent < self._least_1:  # noqa: PLR1730 - min() costs more than the rest
            self._least_1 = percent
        room = self._room_2[row] or 1
        percent = (room - self._used_2[row]) * MAX_SCORE / room
        self._cells_2[row] = percent + MARGIN
        if percent < self._least_2:  # noqa: PLR1730
            self._least_2 = percent

    def bounds(self, first: int, second: int) -> Bounds:
        """For a pod that requests so much of both."""
        part, total, other = self._part, self._total, self._other
        np.subtract(self._free_1, self._step_1 * first, part)
        if self._least_1 - self._longest_step_1 * first <= -1.0:
            np.maximum(part, 0.0, out=part)
        total[...] = part
        np.subtract(self._free_2, self._step_2 * second, part)
        if self._least_2 - self._longest_step_2 * second <= -1.0:
            np.maximum(part, 0.0, out=part)
        other[...] = part
        np.add(total, other, total)
        return np.right_shift(total, 1, total)

    def exact_at(self, row: int, first: int, second: int) -> int:
        room = self._room_1[row] or 1
        free = room - self._used_1[row] - first
        score = free * MAX_SCORE // room if free > 0 else 0
        room = self._room_2[row] or 1
        free = room - self._used_2[row] - second
        if free > 0:
            score += free * MAX_SCORE // room
        return score >> 1


class BalanceBounds:
    """Of the score by how much more evenly two resources would be used than before."""

    __slots__ = (
        "_before",
        "_before_cells",
        "_cells",
        "_gains",
        "_gap",
        "_most_1",
        "_most_2",
        "_requested_1",
        "_requested_2",
        "_room_1",
        "_room_2",
        "_smallest_1",
        "_smallest_2",
        "_step_1",
        "_step_2",
        "_work",
        "is_known",
    )

    def __init__(self, view: View, columns: tuple[int, int]) -> None:
        rooms = [capacity(view, column) for column in columns]
        self.is_known = all(room.exact and room.missing is None for room in rooms)
        """Whether every node has some of both, and amounts are exact as floats. Else there are no bounds."""
        first, second = columns
        nodes = view.cluster.nodes
        self._room_1, self._requested_1 = nodes.allocatable_cells[first], nodes.requested_cells[first]
        self._room_2, self._requested_2 = nodes.allocatable_cells[second], nodes.requested_cells[second]
        # What one unit more adds to the fraction in use, times HALF; and the smallest capacity.
        self._step_1, self._smallest_1 = _steps(view, first)
        self._step_2, self._smallest_2 = _steps(view, second)
        one, other = (_fractions(view, column) for column in columns)
        # No node has a larger fraction in use.
        self._most_1, self._most_2 = float(one.max(initial=0.0)), float(other.max(initial=0.0))
        self._gap: Percentages = ((one - other) * HALF).astype(FEW_BITS)
        """Between the two fractions in use, times HALF."""
        self._cells: memoryview[Any] = self._gap.data
        # The difference that a pod makes is added to HALF twice: see `bounds`.
        even = ((2.0 - np.abs(np.minimum(one, 1.0) - np.minimum(other, 1.0))) * HALF).astype(np.int16)
        self._before: Bounds = 3 * HALF - even
        self._before_cells = self._before.data
        self._work: Percentages = np.empty(view.size, FEW_BITS)
        self._gains: Bounds = np.empty(view.size, np.int16)

    def update(self, row: int) -> None:
        one = self._requested_1[row] / (self._room_1[row] or 1)
        other = self._requested_2[row] / (self._room_2[row] or 1)
        if one > self._most_1:  # noqa: PLR1730
            self._most_1 = one
        if other > self._most_2:  # noqa: PLR1730
            self._most_2 = other
        self._cells[row] = (one - other) * HALF
        if one > 1.0 or other > 1.0:
            one, other = min(one, 1.0), min(other, 1.0)
        self._before_cells[row] = 3 * HALF - int((1.0 - abs(one - other) / 2) * MAX_SCORE)

    def bounds(self, first: int, second: int) -> Bounds | None:
        """For a pod that requests so much of both; None if it may be too much for a node."""
        if (
            self._most_1 + first / self._smallest_1 > NEARLY_FULL
            or self._most_2 + second / self._smallest_2 > NEARLY_FULL
        ):
            return None
        work, gains = self._work, self._gains
        np.add(self._gap, self._step_1 * first - self._step_2 * second, work)
        np.abs(work, work)
        np.subtract(MAX_SCORE + MARGIN, work, work)
        gains[...] = work
        np.add(gains, self._before, gains)
        return np.right_shift(gains, 1, gains)

    def exact_at(self, row: int, first: int, second: int) -> int:
        one = (self._requested_1[row] + first) / (self._room_1[row] or 1)
        other = (self._requested_2[row] + second) / (self._room_2[row] or 1)
        if one > 1.0 or other > 1.0:
            one, other = min(one, 1.0), min(other, 1.0)
        score: int = (int((1.0 - abs(one - other) / 2) * MAX_SCORE) + self._before_cells[row]) >> 1
        return score


def _free_percentages(view: View, column: int) -> tuple[Percentages, Percentages | float, float, float]:
    """How much of a resource is free on each row, with MARGIN; what one unit less takes away; the lowest percentage,
    and the longest step."""
    room = np.maximum(view.allocatable(column), 1).astype(np.float64)
    # Rows without a node count as empty nodes.
    percent = np.where(view.present, (room - view.nonzero_requested(column)) * MAX_SCORE / room, float(MAX_SCORE))
    steps = np.where(view.present, MAX_SCORE / room, 0.0)
    least, longest = float(percent.min(initial=MAX_SCORE)), float(steps.max(initial=0.0))
    return (percent + MARGIN).astype(FEW_BITS), _shared(steps, view), least, longest


def _steps(view: View, column: int) -> tuple[Percentages | float, float]:
    divisor = capacity(view, column).divisor
    steps = np.where(view.present, HALF / divisor, 0.0)  # rows without a node have a divisor of 1
    return _shared(steps, view), float(divisor[view.present].min(initial=np.inf))


def _shared(steps: FloatColumn, view: View) -> Percentages | float:
    """One number if all nodes have the same."""
    there = steps[view.present]
    is_uniform = bool(there.size) and bool((there == there[0]).all())
    return float(there[0]) if is_uniform else steps.astype(FEW_BITS)


def _fractions(view: View, column: int) -> FloatColumn:
    return view.requested(column) / capacity(view, column).divisor
