"""Fragmentation: the share of free resources on nodes where a typical pod does not fit.

For each pod of the mix, what is free on nodes that cannot fit it is lost to it. The fragmentation of a resource is the
lost share averaged over the pods that request it: 0 if every pod fits on every node with free resources, 1 if no pod
fits anywhere. Labels and taints are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from situate.sim.whatif.curves import Floats, Ints, Stays

MOST_SHAPES: Final = 64
"""Only the most frequent shapes count."""

Mix = Sequence[tuple[int, Ints]]
"""(count, requests by resource)."""


def mix_of(shapes: Ints, amounts: Ints) -> Mix:
    """The most frequent shapes; `amounts` has a row for each shape."""
    found, counts = np.unique(shapes[shapes >= 0], return_counts=True)
    order = np.lexsort((found, -counts))[:MOST_SHAPES]
    return [(int(counts[at]), amounts[found[at]]) for at in order]


def snapshots(held: Stays, amounts: Ints, nodes: int, moments: Ints) -> Iterator[Ints]:
    """The requests on each node by resource, at each moment in order."""
    used = np.zeros((amounts.shape[1], nodes), np.int64)
    times = np.concatenate([held.begin, held.end])
    rows = np.concatenate([held.nodes, held.nodes])
    taken = np.concatenate([amounts[held.shapes], -amounts[held.shapes]])
    order = np.argsort(times, kind="stable")
    times, rows, taken = times[order], rows[order], taken[order]
    before = 0
    for moment in moments.tolist():
        until = int(np.searchsorted(times, moment, side="right"))
        for resource in range(amounts.shape[1]):
            np.add.at(used[resource], rows[before:until], taken[before:until, resource])
        before = until
        yield used


def fragmentation(allocatable: Ints, used: Ints, mix: Mix) -> list[float | None]:
    """By resource; None if nothing is free or requested."""
    free = np.maximum(allocatable - used, 0)
    totals = free.sum(axis=1)
    lost: Floats = np.zeros(len(free))
    asking: Floats = np.zeros(len(free))
    for count, wanted in mix:
        asked = wanted > 0
        fits = (free[asked] >= wanted[asked, None]).all(axis=0)
        stuck = (free * ~fits).sum(axis=1)
        lost += np.where(asked, count * stuck.astype(np.float64), 0.0)
        asking += np.where(asked, count, 0)
    return [
        float(lost[at] / asking[at] / totals[at]) if totals[at] > 0 and asking[at] > 0 else None
        for at in range(len(free))
    ]
