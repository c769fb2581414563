"""The score of InterPodAffinity where few pods count: nearly all rows of a domain get the same.

Terms by zone and the like are summed by domain. Where each row is a domain of its own, as with host names, only the
rows that run a pod that counts differ from the others of their zone. So all that is done for every row is to look up
the score of its domain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from situate.core.contract import MAX_SCORE, DomainScores, Scores
from situate.core.plugins.support.domains import FEW_DOMAINS, in_row_order, rows_by_domain
from situate.core.plugins.support.normalize import constant
from situate.core.state.classes import PodClass
from situate.core.state.view import View

FEW_PLACES: Final = 256
"""Up to this many places of pods are looked at one by one."""


@dataclass(slots=True)
class SparseSums:
    """What matching pods add up to."""

    topology_key: str | None = None
    """The one that has domains of several rows; None if no term has one."""
    by_domain: dict[int, int] = field(default_factory=dict)
    by_row: dict[int, int] = field(default_factory=dict)
    """What comes on top in domains of one row."""
    places: int = 0
    """How many places of pods were looked at."""

    def add(self, view: View, topology_key: str, classes: Mapping[PodClass, int], weight: int) -> bool:
        """Add the pods of these classes, times their number times a weight; False if that is not possible."""
        domain_at, domains = view.memo(("domain at", topology_key), lambda whole: _domain_at(whole, topology_key))
        if domain_at is None:
            return self._add_rows(classes, weight)
        if self.topology_key != topology_key:
            if self.topology_key is not None or domains >= FEW_DOMAINS:
                return False
            self.topology_key = topology_key
        sums, places = self.by_domain, self.places
        for pod_class, times in classes.items():
            placed = pod_class.placed
            places += len(placed)
            if places > FEW_PLACES:
                return False
            for row, count in placed.items():
                domain = domain_at[row]
                if domain >= 0:
                    sums[domain] = sums.get(domain, 0) + weight * times * count
        self.places = places
        return True

    def _add_rows(self, classes: Mapping[PodClass, int], weight: int) -> bool:
        sums, places = self.by_row, self.places
        for pod_class, times in classes.items():
            placed = pod_class.placed
            places += len(placed)
            if places > FEW_PLACES:
                return False
            for row, count in placed.items():
                sums[row] = sums.get(row, 0) + weight * times * count
        self.places = places
        return True

    def scores(self, view: View) -> DomainScores | Scores | None:
        """Normalized over the feasible nodes; None if no pod counted."""
        if not self.by_domain and not self.by_row:
            return None
        feasible = view.feasible
        count = int(np.count_nonzero(feasible))
        is_feasible = feasible.data
        if self.topology_key is None:
            here = {row: total for row, total in self.by_row.items() if is_feasible[row]}
            return _normalised(None, [0], [count - len(here)], here, view)
        ids, values = view.label(self.topology_key)
        domain_at = ids.data
        left = rows_by_domain(view, self.topology_key, feasible, count)
        bases = [0] * (len(values) + 1)  # the last is of the rows without the label
        for domain, total in self.by_domain.items():
            bases[domain] = total
        here = {}
        for row, more in self.by_row.items():
            if is_feasible[row]:
                domain = domain_at[row]
                left[domain] -= 1
                here[row] = bases[domain] + more
        return _normalised(self.topology_key, bases, left, here, view)


def _normalised(
    topology_key: str | None, bases: list[int], left: list[int], here: dict[int, int], view: View
) -> DomainScores | Scores:
    """The scores of sums by domain, where feasible rows are left in it, and of the rows that differ, which are
    overwritten."""
    seen = [base for base, rows in zip(bases, left, strict=True) if rows]
    seen += here.values()
    low, high = (min(seen), max(seen)) if seen else (0, 0)
    if low == high:
        return constant(0, view)
    # In float64 and in this order, truncated: as Kubernetes computes it.
    width = float(high - low)
    table = [int((base - low) / width * MAX_SCORE) if rows else 0 for base, rows in zip(bases, left, strict=True)]
    for row, total in here.items():
        here[row] = int((total - low) / width * MAX_SCORE)
    return DomainScores(topology_key, table, here)


def _domain_at(whole: View, topology_key: str) -> tuple[memoryview[int] | None, int]:
    """The domain of each row, None where each row is its own; and how many domains there are."""
    ids, values = whole.label(topology_key)
    return None if in_row_order(whole, topology_key) else ids.data, len(values)


def each_once(classes: Iterable[PodClass]) -> dict[PodClass, int]:
    return dict.fromkeys(classes, 1)
