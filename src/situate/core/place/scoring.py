"""How good each feasible node is: the weighted sum of all scorers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from situate.core.contract import Bounds, DomainScores, Scores
from situate.core.place.profile import Profile
from situate.core.place.selecting import NOWHERE, first_feasible_best
from situate.core.state.classes import PodClass
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.view import View

MOST_CORRECTIONS: Final = 8
"""After so many rows whose bounds were too high, all rows are scored."""

SMALL_SUM_WEIGHT: Final = 50
"""Up to this weight, a few scorers' sum fits 16 bits."""

SMALL_WEIGHT: Final = 1 << 16
"""Up to this weight, the sum of all scorers fits 32 bits."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The weighted scores by plugin, and their sum. Only feasible rows count."""

    by_plugin: dict[str, Scores]
    total: IntColumn


def totals(profile: Profile, pod: PodClass, view: View, feasible: Mask) -> IntColumn:
    total, everywhere = _summed(profile, pod, view, feasible)
    return np.add(total, everywhere, dtype=np.int64)


def ranks(profile: Profile, pod: PodClass, view: View, feasible: Mask) -> Scores:
    """Numbers that order the rows as their totals do. Read-only."""
    return _summed(profile, pod, view, feasible)[0]


def _summed(profile: Profile, pod: PodClass, view: View, feasible: Mask) -> tuple[Scores, int]:
    """The sum by row, and what has to be added to every row."""
    scoring = view.scoring(feasible)
    total: Scores | None = None
    everywhere = 0
    for weighted in profile.scorers:
        scores = weighted.scorer.score(pod, scoring)
        if scores is None:
            continue
        if scores.size and scores.strides[0] == 0:
            everywhere += int(scores[0]) * weighted.weight  # one number for all rows: see `constant`
            continue
        part = scores if weighted.weight == 1 else weighed(scores, weighted.weight)
        total = part if total is None else total + part
    return np.zeros(view.size, np.int32) if total is None else total, everywhere


def best_row(profile: Profile, pod: PodClass, view: View, feasible: Mask, excluded: Collection[int] = ()) -> int:
    """The first feasible row with the highest total, or NOWHERE, for an answer that nobody keeps.

    Scorers that can do so give upper bounds, or scores by domain. Where the row that looks best has the total that its
    bounds promise, no other row can have more.
    """
    sums = _Sums(profile, pod, view.scoring(feasible))
    total = sums.total()
    eligible = feasible
    if excluded:
        eligible = feasible.copy()
        eligible[list(excluded)] = False
    row = first_feasible_best(total, eligible, sums.lowest)
    corrected: dict[int, None] = {}
    while row != NOWHERE and row not in corrected:
        excess = 0
        for weight, (upper, exact_at) in sums.bounded:
            excess += weight * (int(upper[row]) - exact_at(row))
        if not excess:
            return row
        if len(corrected) == MOST_CORRECTIONS:
            return first_feasible_best(ranks(profile, pod, view, feasible), eligible)
        if not corrected:
            total = total.copy()  # it may be what a plugin keeps
        corrected[row] = None
        total[row] -= excess
        row = first_feasible_best(total, eligible, sums.lowest)
    return row


class _Sums:
    """What all scorers add up to, each in the briefest form that it has."""

    __slots__ = ("_brief", "_is_shared", "_narrow", "_view", "_wide", "bounded", "lowest")

    def __init__(self, profile: Profile, pod: PodClass, view: View) -> None:
        self._view = view
        self._wide: Scores | None = None
        self._brief: list[tuple[int, DomainScores]] = []
        self.bounded: list[tuple[int, Bounds]] = []
        """With their weights."""
        self.lowest = 0
        narrow: npt.NDArray[np.int16] | None = None
        self._is_shared = True
        """Whether those are a plugin's own."""
        for weighted in profile.scorers:
            weight, bounded, by_domain = weighted.weight, weighted.bounded, weighted.by_domain
            if bounded is not None and (bounds := bounded.bounds(pod, view)) is not None:
                self.bounded.append((weight, bounds))
                if weight != 1:
                    self._add(bounds.upper.astype(np.int32), weight)
                elif narrow is None:
                    narrow = bounds.upper
                else:
                    narrow = narrow + bounds.upper
                    self._is_shared = False
                continue
            scores = weighted.scorer.score(pod, view) if by_domain is None else by_domain.brief_scores(pod, view)
            if scores is None:
                continue
            if isinstance(scores, DomainScores):
                self._brief.append((weight, scores))
            elif not (scores.size and scores.strides[0] == 0):
                self._add(scores, weight)  # one number for all rows would make no difference
        self._narrow = narrow
        """Of bounds that weigh 1."""

    def _add(self, scores: Scores, weight: int) -> None:
        part = scores if weight == 1 else weighed(scores, weight)
        self._wide = part if self._wide is None else self._wide + part

    def total(self) -> Scores | npt.NDArray[np.int16]:
        """By row, but for what all rows share. No row has less than `lowest`."""
        view, total = self._view, self._narrow
        if self._brief and self._is_shared and total is not None:
            total = total.copy()  # else the bounds would change with it
        for weight, scores in self._brief:
            if weight > SMALL_SUM_WEIGHT:
                self._add(scores.by_node(view), weight)
            else:
                total = self._with(scores, weight, total)
        if self._wide is None:
            return np.zeros(view.size, np.int16) if total is None else total
        return self._wide if total is None else self._wide + total.astype(np.int32)

    def _with(self, scores: DomainScores, weight: int, total: npt.NDArray[np.int16] | None) -> npt.NDArray[np.int16]:
        key, table, by_row = scores
        if total is None:
            total = np.zeros(self._view.size, np.int16)
        ids = None if key is None else self._view.label(key)[0]
        if ids is not None:
            total += np.array([weight * score for score in table], np.int16).take(ids)
        if by_row:
            cells, domain_at = total.data, None if ids is None else ids.data
            for row, score in by_row.items():
                more = weight * (score - table[0 if domain_at is None else domain_at[row]])
                cells[row] += more
        if ids is None and by_row:
            self.lowest += min(0, weight * (min(by_row.values()) - table[0]))
        return total


def run_scorers(profile: Profile, pod: PodClass, view: View, feasible: Mask) -> Scored:
    scoring = view.scoring(feasible)
    by_plugin: dict[str, Scores] = {}
    total = np.zeros(view.size, np.int64)
    for weighted in profile.scorers:
        scores = weighted.scorer.score(pod, scoring)
        if scores is not None:
            by_plugin[weighted.scorer.name] = part = weighed(scores, weighted.weight)
            total += part
    return Scored(by_plugin, total)


def weighed(scores: Scores, weight: int) -> Scores:
    return scores * weight if weight <= SMALL_WEIGHT else np.multiply(scores, weight, dtype=np.int64)
