"""The best node: the highest total; among equals, the first in node order.

Kubernetes leaves the choice among equals to chance. Here the same question has the same answer.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from situate.core.state.columns import IdColumn, IntColumn, Mask

NOWHERE: Final = -1
"""The row of no node."""

NO_ROWS: Final[IdColumn] = np.empty(0, np.intp)


def best_rows(total: IntColumn, feasible: Mask) -> IdColumn:
    """All rows with the highest total, in node order."""
    if not feasible.any():
        return NO_ROWS
    highest = total[feasible].max()
    return np.flatnonzero(feasible & (total == highest))


def first_best(rank: IntColumn) -> int:
    """The first row with the highest rank, infeasible rows having a negative one; NOWHERE if all are."""
    if not len(rank):
        return NOWHERE
    row = int(rank.argmax())
    return row if rank[row] >= 0 else NOWHERE
