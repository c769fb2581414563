"""The best node: the highest total; among equals, the first in node order.

Kubernetes chooses among equals at random. Here the same input always gives the same node.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from situate.core.contract import Scores
from situate.core.state.columns import IdColumn, IntColumn, Mask

NOWHERE: Final = -1
"""The row that stands for no node."""

NO_ROWS: Final[IdColumn] = np.empty(0, np.intp)


def best_rows(total: IntColumn, feasible: Mask) -> IdColumn:
    if not feasible.any():
        return NO_ROWS
    highest = total[feasible].max()
    return np.flatnonzero(feasible & (total == highest))


def first_best(rank: IntColumn) -> int:
    """The first row with the highest rank. Infeasible rows have a negative rank; NOWHERE if all do."""
    if not len(rank):
        return NOWHERE
    row = int(rank.argmax())
    return row if rank[row] >= 0 else NOWHERE


def first_feasible_best(total: Scores | npt.NDArray[np.int16], feasible: Mask, lowest: int = 0) -> int:
    """The first feasible row with the highest total; NOWHERE if no row is feasible. No total is below `lowest`."""
    if not len(total):
        return NOWHERE
    row = int(total.argmax())
    if feasible[row]:
        return row
    rank = total + (1 - lowest)
    rank *= feasible
    row = int(rank.argmax())
    return row if rank[row] else NOWHERE
