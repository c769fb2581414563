"""The verdicts on one class of pods on a draft, kept up to date as the draft grows.

This is the verdict cache of `place` for an overlay. After a pod was added to a node, a plugin that reads the load of
single rows judges that row only; another is asked again only if the pod counts in what it read. The result is the same
as asking every plugin about the whole draft again; the tests compare them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from situate.core.contract import FITS, Codes, Filter, NodeFailures, RowFilter, RowScorer, Scorer, Verdict
from situate.core.gang.draft import Draft
from situate.core.place.filtering import combine
from situate.core.place.profile import Profile
from situate.core.place.selecting import NOWHERE, first_best
from situate.core.state.classes import PodClass
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.terms import CarriedTerm
from situate.core.state.topology import TopologyTally
from situate.core.state.view import CLAIMS, DEVICES, FEASIBLE, LOAD, ROW_DEVICES, TERMS, View

D = TypeVar("D", bound=np.generic)

ONE_ROW: Mask = np.ones(1, np.bool_)


@dataclass(frozen=True, slots=True)
class _Read:
    bits: int
    tallies: tuple[TopologyTally, ...]

    def moved_by(self, kind: PodClass, view: View) -> bool:
        """Whether adding or removing a pod of this class anywhere may change the verdict."""
        if self.bits & LOAD or (self.bits & TERMS and kind.terms):
            return True
        if self.bits & ROW_DEVICES and kind.may_claim_devices:
            return True
        names = view.namespace_labels
        return any(tally.matcher.matches(kind.namespace, kind.labels, names) for tally in self.tallies)


def _read(view: View) -> _Read:
    return _Read(view.reads, tuple(one for one in view.tallies_read if not isinstance(one, CarriedTerm)))


@dataclass(slots=True)
class _Filtering:
    plugin: Filter
    codes: Codes | None
    by_row: bool
    read: _Read


@dataclass(slots=True)
class _Scoring:
    scorer: Scorer
    weight: int
    weighed: IntColumn | None
    by_row: bool
    read: _Read


class DraftVerdicts:
    """For one class, under one profile, on one draft."""

    def __init__(self, profile: Profile, pod: PodClass, draft: Draft) -> None:
        self._profile = profile
        self._pod = pod
        self._draft = draft
        self._build()

    def best(self, among: Mask | None = None, without: dict[int, None] | None = None) -> tuple[int, int]:
        """The best row now and its score; (NOWHERE, 0) if the pod fits on none of these rows."""
        self.refresh()
        rank = self._rank
        if among is not None:
            rank = np.where(among, rank, -1)
        if without:
            rank = rank.copy()
            rank[list(without)] = -1
        row = first_best(rank)
        return (row, int(rank[row])) if row != NOWHERE else (NOWHERE, 0)

    def at(self, row: int) -> tuple[bool, int]:
        self.refresh()
        rank = int(self._rank[row])
        return rank >= 0, max(rank, 0)

    def copy(self, draft: Draft) -> DraftVerdicts:
        self.refresh()
        made = object.__new__(DraftVerdicts)
        made._profile, made._pod, made._draft = self._profile, self._pod, draft
        made._seen, made._far, made._stopped = self._seen, self._far, self._stopped
        made._filters = [replace(one, codes=_own(one.codes, one.by_row)) for one in self._filters]
        made._scorers = [replace(one, weighed=_own(one.weighed, one.by_row)) for one in self._scorers]
        made._feasible, made._rank = self._feasible.copy(), self._rank.copy()
        return made

    # -- from scratch --------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self._seen, self._far = len(self._draft.moves), self._draft.far_moves
        verdicts: list[Verdict] = []
        self._filters: list[_Filtering] = []
        for plugin in self._profile.filters:
            view = self._draft.view
            verdict = plugin.check(self._pod, view)
            verdicts.append(verdict)
            codes = verdict if isinstance(verdict, np.ndarray) else None
            by_row = codes is not None and _rows_alone(view) and isinstance(plugin, RowFilter)
            self._filters.append(_Filtering(plugin, _own(codes, by_row), by_row, _read(view)))
        filtered = combine(self._profile, verdicts, self._draft.view)
        self._stopped = filtered.turned_away is not None or filtered.failed is not None
        self._feasible = filtered.feasible
        self._score_all()

    def _score_all(self) -> None:
        self._scorers: list[_Scoring] = []
        if self._feasible.any():
            view = self._draft.view
            self._scorers = [self._ask(one.scorer, one.weight, view) for one in self._profile.scorers]
        self._rank_all()

    def _ask(self, scorer: Scorer, weight: int, draft: View) -> _Scoring:
        view = draft.scoring(self._feasible)
        scores = scorer.score(self._pod, view)
        by_row = scores is not None and _rows_alone(view) and isinstance(scorer, RowScorer)
        weighed = None if scores is None else np.multiply(scores, weight, dtype=np.int64)
        return _Scoring(scorer, weight, weighed, by_row, _read(view))

    def _rank_all(self) -> None:
        rank = np.zeros(len(self._feasible), np.int64)
        for one in self._scorers:
            if one.weighed is not None:
                rank += one.weighed
        rank[~self._feasible] = -1
        self._rank = rank

    # -- keeping up ----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        moves = self._draft.moves[self._seen :]
        if not moves:
            return
        self._seen = len(self._draft.moves)
        view = self._draft.view
        kinds = list(dict.fromkeys(kind for kind, _ in moves))
        far, self._far = self._draft.far_moves != self._far, self._draft.far_moves
        stale = [
            one
            for one in self._filters
            if (far and one.read.bits & ROW_DEVICES) or (not one.by_row and _moved(one.read, kinds, view))
        ]
        if self._stopped:
            if stale:
                self._build()
            return
        had_some = bool(self._scorers)
        flipped = False
        if stale:
            if not all(self._recheck(one) for one in stale):
                self._build()
                return
            flipped = self._all_rows()
        rows = list(dict.fromkeys(row for _, row in moves))
        for row in rows:
            flipped |= self._recheck_row(row)
        if flipped and (not had_some or not self._feasible.any()):
            self._score_all()
            return
        self._rescore(rows, kinds, view, flipped)

    def _recheck(self, one: _Filtering) -> bool:
        """Ask a filter again. False if it now turns the pod away as a whole."""
        view = self._draft.view
        verdict = one.plugin.check(self._pod, view)
        if verdict is not None and not isinstance(verdict, np.ndarray):
            return False
        one.codes, one.read = _own(verdict, one.by_row), _read(view)
        return True

    def _all_rows(self) -> bool:
        """Compute the feasible rows from all verdicts; whether they changed."""
        feasible = self._draft.view.present.copy()
        for one in self._filters:
            if one.codes is not None:
                feasible &= one.codes == FITS
        changed = not np.array_equal(feasible, self._feasible)
        self._feasible = feasible
        return changed

    def _recheck_row(self, row: int) -> bool:
        here = self._draft.load_at(row)
        for one in self._filters:
            if one.by_row and one.codes is not None:
                verdict = one.plugin.check(self._pod, here)
                if isinstance(verdict, NodeFailures):
                    verdict = verdict.codes
                one.codes[row] = verdict[0] if isinstance(verdict, np.ndarray) else FITS
        fits = bool(here.present[0]) and all(one.codes is None or one.codes[row] == FITS for one in self._filters)
        changed = fits != bool(self._feasible[row])
        self._feasible[row] = fits
        return changed

    def _rescore(self, rows: list[int], kinds: list[PodClass], view: View, flipped: bool) -> None:
        stale = [
            one
            for one in self._scorers
            if not one.by_row and ((flipped and one.read.bits & FEASIBLE) or _moved(one.read, kinds, view))
        ]
        for one in stale:
            again = self._ask(one.scorer, one.weight, view)
            one.weighed, one.read = again.weighed, again.read
        for row in rows:
            here = self._draft.load_at(row).scoring(ONE_ROW)
            for one in self._scorers:
                if one.by_row and one.weighed is not None:
                    scores = one.scorer.score(self._pod, here)
                    one.weighed[row] = 0 if scores is None else int(scores[0]) * one.weight
        if stale or flipped:
            self._rank_all()
        else:
            for row in rows:
                self._rank[row] = (
                    sum(int(one.weighed[row]) for one in self._scorers if one.weighed is not None)
                    if self._feasible[row]
                    else -1
                )


def _own(column: npt.NDArray[D] | None, by_row: bool) -> npt.NDArray[D] | None:
    """Columns that are written row by row are copied first."""
    return column.copy() if by_row and column is not None else column


def _rows_alone(view: View) -> bool:
    """Whether the plugin read of bound pods only the load of single rows."""
    reads = view.reads & ~(DEVICES | CLAIMS)
    return reads != 0 and not reads & ~(LOAD | ROW_DEVICES) and not view.tallies_read


def _moved(read: _Read, kinds: list[PodClass], view: View) -> bool:
    return any(read.moved_by(kind, view) for kind in kinds)
