"""What evictions would free: on every node at once, what its pods of lower priority take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from situate.core.state.columns import IntColumn
from situate.core.state.view import View


def freed(view: View, priority: int, columns: Iterable[int]) -> dict[int, IntColumn]:
    """Resource column -> what the pods below this priority take of it, by row."""
    kinds = [kind for kind in view.cluster.classes.values() if kind.total and kind.priority < priority]
    takes = [dict(kind.takes) for kind in kinds]
    rows: list[int] = []
    counts: list[int] = []
    for kind in kinds:
        rows.extend(kind.placed)
        counts.extend(kind.placed.values())
    which = np.repeat(np.arange(len(kinds)), [len(kind.placed) for kind in kinds])
    at, times = np.array(rows, np.intp), np.array(counts, np.int64)
    found: dict[int, IntColumn] = {}
    for column in columns:
        amounts = np.array([take.get(column, 0) for take in takes], np.int64)
        found[column] = np.zeros(view.size, np.int64)
        np.add.at(found[column], at, amounts[which] * times)
        for pod in view.gone():
            if pod.kind.priority < priority:
                found[column][pod.node_row] -= dict(pod.kind.takes).get(column, 0)
    return found


class Emptied(View):
    """Every node as if its pods of lower priority were gone, and no other node's: for what reads its own load alone."""

    __slots__ = ("_freed",)

    def __init__(self, view: View, freed_of: Mapping[int, IntColumn]) -> None:
        super().__init__(view.cluster, removed=view._removed, added=view._added)
        self._freed = freed_of

    def requested(self, column: int) -> IntColumn:
        return super().requested(column) - self._freed[column]
