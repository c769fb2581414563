"""A small dense simplex solver: maximize c·x where A·x <= b and x >= 0, for b >= 0.

The result is feasible even if the solver stops before the optimum. It is approximate: a caller that needs a proof
verifies the result in exact arithmetic.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PIVOTS: Final = 20_000
"""The maximum number of pivots."""
CLOSE: Final = 1e-9
NUDGE: Final = 1e-7
"""Perturbation of the limits, different for each, against cycling."""


def maximise(gain: Floats, limits: Floats, most: Floats, pivots: int = PIVOTS) -> Floats:
    """The optimal x, or the best one found within the pivots."""
    count, width = limits.shape
    table = np.zeros((count + 1, width + count + 1))
    table[:count, :width] = limits
    table[:count, width : width + count] = np.eye(count)
    table[:count, -1] = most + NUDGE * (1 + np.arange(count) / max(count, 1))
    table[-1, :width] = -gain
    basis = np.arange(width, width + count)
    for _ in range(pivots):
        column = int(table[-1, :-1].argmin())
        if table[-1, column] >= -CLOSE:
            break
        usable = np.flatnonzero(table[:count, column] > CLOSE)
        if not usable.size:
            break  # unbounded
        ratios = table[usable, -1] / table[usable, column]
        row = int(usable[ratios.argmin()])
        table[row] /= table[row, column]
        factors = table[:, column].copy()
        factors[row] = 0.0
        touched = np.flatnonzero(factors)
        table[touched] -= factors[touched, None] * table[row]
        basis[row] = column
    found = np.zeros(width + count)
    found[basis] = table[:count, -1]
    result: Floats = np.maximum(found[:width], 0.0)
    return result
