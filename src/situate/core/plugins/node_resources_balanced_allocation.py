"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod would leave used more evenly than before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from situate.core.contract import MAX_SCORE, Scores
from situate.core.plugins.resource_scoring import (
    CPU_AND_MEMORY,
    Capacity,
    Cells,
    ResourceWeight,
    amount_of,
    capacity,
    scored_columns,
)
from situate.core.state.classes import PodClass
from situate.core.state.view import View

HALF: Final = MAX_SCORE // 2

Fractions = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocation:
    """Compares how evenly resources are used with the pod and without it. Sits out for pods that ask for none."""

    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"

    def score(self, pod: PodClass, view: View) -> Scores | None:
        if not self._asks(pod):
            return None
        columns = scored_columns(self.resources, pod.requests, view, nonzero=False)
        rooms = [capacity(view, column) for column, _, _ in columns]
        used = [view.requested(column) for column, _, _ in columns]
        amounts = [amount for _, amount, _ in columns]
        before = evenness([_fraction(one, room) for one, room in zip(used, rooms, strict=True)], rooms)
        full = [one + amount for one, amount in zip(used, amounts, strict=True)]
        after = evenness([_fraction(one, room) for one, room in zip(full, rooms, strict=True)], rooms)
        after -= before
        after += HALF
        # Never negative: evenness is within HALF..MAX_SCORE, so a shift divides as Go does.
        after >>= 1
        after += HALF
        return after

    def _asks(self, pod: PodClass) -> bool:
        return any(amount_of(pod.requests, resource.name, nonzero=False) for resource in self.resources)

    def scorer_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        """The scalar twin of `score`, with all that does not depend on the row worked out."""
        nodes = view.cluster.nodes
        cells = [
            (nodes.allocatable_cells[column], nodes.requested_cells[column], amount, weight)
            for column, amount, weight in scored_columns(self.resources, pod.requests, view, nonzero=False)
        ]
        return lambda row: _score_at(cells, row)


def _fraction(used: npt.NDArray[np.int64], room: Capacity) -> Fractions:
    fraction: Fractions = np.true_divide(used, room.divisor)
    return np.minimum(fraction, 1.0, out=fraction)


def evenness(fractions: Sequence[Fractions], rooms: Sequence[Capacity]) -> Scores:
    """100 where all fractions are equal, less the further they spread; resources that a node lacks do not count."""
    if any(room.missing is not None for room in rooms) or len(fractions) > 2:
        return _evenness_of_some(fractions, rooms)
    if len(fractions) < 2:
        return np.full(fractions[0].shape if fractions else 0, MAX_SCORE, np.int64)
    spread = fractions[0] - fractions[1]
    np.abs(spread, out=spread)
    spread /= 2
    np.subtract(1.0, spread, out=spread)
    spread *= MAX_SCORE
    return spread.astype(np.int64)


def _evenness_of_some(fractions: Sequence[Fractions], rooms: Sequence[Capacity]) -> Scores:
    counted = [np.ones(len(fractions[0]), np.bool_) if room.missing is None else ~room.missing for room in rooms]
    # Summed in the order of the resources, one by one, as Go does: the order of float additions is part of the result.
    count = np.zeros(len(fractions[0]), np.int64)
    total = np.zeros(len(fractions[0]))
    for fraction, has in zip(fractions, counted, strict=True):
        total += np.where(has, fraction, 0.0)
        count += has
    mean = total / np.maximum(count, 1)
    squares = np.zeros(len(total))
    for fraction, has in zip(fractions, counted, strict=True):
        off = fraction - mean
        squares += np.where(has, off * off, 0.0)
    deviation = np.where(count > 2, np.sqrt(squares / np.maximum(count, 1)), 0.0)
    spread = np.where(count == 2, _half_gap(fractions, counted), deviation)
    return ((1.0 - spread) * MAX_SCORE).astype(np.int64)


def _half_gap(fractions: Sequence[Fractions], counted: Sequence[npt.NDArray[np.bool_]]) -> Fractions:
    """Half the difference of the two fractions that count, where two do."""
    seen = np.zeros(len(fractions[0]), np.int64)
    gap = np.zeros(len(fractions[0]))
    for fraction, has in zip(fractions, counted, strict=True):
        gap = np.where(has & (seen == 0), fraction, np.where(has & (seen == 1), gap - fraction, gap))
        seen += has
    return np.abs(gap / 2)


def _score_at(cells: Cells, row: int) -> int:
    after: list[float] = []
    before: list[float] = []
    for allocatable, requested, amount, _ in cells:
        room = allocatable[row]
        if room:
            used = requested[row]
            after.append(min((used + amount) / room, 1.0))
            before.append(min(used / room, 1.0))
    return HALF + (HALF + _evenness_at(after) - _evenness_at(before)) // 2


def _evenness_at(fractions: list[float]) -> int:
    count = len(fractions)
    if count == 2:
        return int((1.0 - abs((fractions[0] - fractions[1]) / 2)) * MAX_SCORE)
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
