"""What evictions would free on every node: the requests of its pods of lower priority."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from situate.core.state.columns import IntColumn
from situate.core.state.view import View


def freed(view: View, priority: int, columns: Iterable[int]) -> dict[int, IntColumn]:
    """Resource column -> what the pods below this priority request of it, by row."""
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
        for pod in view.removed:
            kind = view.cluster.pods.kind(pod)
            if kind.priority < priority:
                found[column][view.cluster.pods.node_rows[pod]] -= dict(kind.takes).get(column, 0)
    return found
