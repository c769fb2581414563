"""Rows by two counts: the matching pods on a node, and its domain of another topology.

The default constraints spread over hostnames and zones. A score depends on these two counts only, and few combinations
of them exist. So scores are computed for each combination, and the rows that changed since the last question change
theirs. What was kept is compared with what is asked, so any question gets the right answer.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from situate.core.state.columns import IdColumn, IntColumn, Mask

MAX_COMBINATIONS: Final = 1 << 12
"""With more, computing the scores of each row is as cheap."""
FEW_ROWS: Final = 64
"""Up to this many changed rows are moved one by one."""


class RowCombinations:
    """The combination of each row: its count times the number of columns, plus its column. The columns are the domains
    in order, and a last one for the rows without the label."""

    __slots__ = ("_columns", "_counts", "_scored", "_width", "combination", "found", "scored")

    def __init__(self, ids: IdColumn, domains: int) -> None:
        self._columns: IntColumn = np.where(ids < 0, domains, ids).astype(np.int64)
        self._width = domains + 1
        self._counts: IntColumn = np.zeros(0, np.int64)
        self._scored: Mask = np.zeros(0, np.bool_)
        self.combination: IntColumn = np.zeros(0, np.int64)
        """Of each row."""
        self.found: npt.NDArray[np.int64] = np.zeros((0, self._width), np.int64)
        """How many rows that are scored have each combination, by count and by column."""
        self.scored = 0
        """How many rows are scored."""

    def update(self, counts: IntColumn, scored: Mask) -> bool:
        """Show these counts by row, and these rows as scored. False if there are too many combinations."""
        if len(counts) != len(self._counts):
            return self._build(counts, scored)
        moved = counts != self._counts
        moved |= scored != self._scored
        rows = moved.nonzero()[0]
        if len(rows) > FEW_ROWS:
            return self._build(counts, scored)
        for row in rows.tolist():
            count = int(counts[row])
            if count >= len(self.found):
                return self._build(counts, scored)
            column = self._columns[row]
            if self._scored[row]:
                self.found[self._counts[row], column] -= 1
                self.scored -= 1
            if scored[row]:
                self.found[count, column] += 1
                self.scored += 1
            self._counts[row], self._scored[row] = count, scored[row]
            self.combination[row] = count * self._width + column
        return True

    def _build(self, counts: IntColumn, scored: Mask) -> bool:
        most = int(counts.max(initial=0)) + 2  # the next pod need not build it again
        if counts.min(initial=0) < 0 or most * self._width > MAX_COMBINATIONS:
            self._counts = np.zeros(0, np.int64)
            return False
        self._counts, self._scored = counts.copy(), scored.copy()
        self.combination = counts * self._width + self._columns
        found = np.bincount(self.combination[scored], minlength=most * self._width)
        self.found = found.reshape(most, self._width)
        self.scored = int(np.count_nonzero(scored))
        return True
