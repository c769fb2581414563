"""Columns that follow the load of the nodes, so that a pod with requests of its own costs few passes over all rows.

They are exact: what they add up to equals, bit for bit, what the plugins compute for one row.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from situate.core.contract import MAX_SCORE
from situate.core.model.base import INT64_MAX
from situate.core.state.classes import CPU, MEMORY
from situate.core.state.columns import FloatColumn, IntColumn, sealed
from situate.core.state.view import View

SMALL_AMOUNTS: Final = 1 << 42
"""Below this, a percentage of an amount is either an integer or more than 1e-13 away from one."""

SmallIntColumn = npt.NDArray[np.int32]


class FreeAmounts:
    """What is free of each resource on each row; negative on overcommitted nodes."""

    __slots__ = ("_cells", "_view", "amounts", "least")

    def __init__(self, view: View, about: None = None) -> None:
        self._view = view
        self._cells: list[tuple[int, memoryview[int], memoryview[int], memoryview[int]]] = []
        self.amounts: dict[int, IntColumn] = {}
        """By column of the resource, as far as they were asked for."""
        self.least: dict[int, int] = {}
        """No node has less. It may be that all have more: a pod may have left the node that had the least."""

    def add(self, column: int) -> None:
        """Another resource is asked for."""
        view, nodes = self._view, self._view.cluster.nodes
        amounts: IntColumn = view.allocatable(column) - view.requested(column)
        self.amounts[column] = sealed(amounts)
        self.least[column] = int(amounts.min(where=view.present, initial=INT64_MAX))
        self._cells.append((column, amounts.data, nodes.allocatable_cells[column], nodes.requested_cells[column]))

    def update(self, row: int) -> None:
        least = self.least
        for column, cells, allocatable, requested in self._cells:
            free = cells[row] = allocatable[row] - requested[row]
            if free < least[column]:  # noqa: PLR1730 - min() costs more than the rest
                least[column] = free


class FreePercentages:
    """How much of one resource is free on each row, as a percentage, as LeastAllocated counts it.

    `100 * (allocatable - used - amount) / allocatable`, rounded down. All but the amount is computed beforehand. What
    the sum of the parts is off by is less than half the distance of a true quotient from the next integer, and so much
    is added to each before it is rounded down.
    """

    __slots__ = ("_allocatable", "_cells", "_least", "_longest_step", "_percent", "_step", "_used")

    def __init__(self, view: View, column: int) -> None:
        nodes = view.cluster.nodes
        self._allocatable = nodes.allocatable_cells[column]
        self._used = nodes.nonzero_cells[column] if column in (CPU, MEMORY) else nodes.requested_cells[column]
        used = view.nonzero_requested(column) if column in (CPU, MEMORY) else view.requested(column)
        room = np.maximum(view.allocatable(column), 1).astype(np.float64)
        # Rows without a node count as empty nodes.
        percent = np.where(view.present, ((room - used) * MAX_SCORE + 0.5) / room, float(MAX_SCORE))
        step = np.where(view.present, MAX_SCORE / room, 0.0)
        there = step[view.present]
        self._percent: FloatColumn = percent
        self._step: FloatColumn | float = float(there[0]) if there.size and (there == there[0]).all() else step
        self._longest_step = float(step.max(initial=0.0))
        self._cells = percent.data
        self._least = float(percent.min(initial=MAX_SCORE))

    def update(self, row: int) -> None:
        room = self._allocatable[row] or 1
        percent = self._cells[row] = ((room - self._used[row]) * MAX_SCORE + 0.5) / room
        self._least = min(self._least, percent)

    def after(self, amount: int) -> SmallIntColumn:
        """With a pod that asks for so much, as a new array; 0 where it does not fit."""
        step = self._step
        part: FloatColumn = self._percent - step * amount
        if self._least - self._longest_step * amount <= -1.0:
            np.maximum(part, 0.0, out=part)
        return part.astype(np.int32)
