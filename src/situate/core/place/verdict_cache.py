"""The verdict cache: the verdicts of all filters and scorers on one class of pods, kept up to date with the cluster.

A bind changes one row and perhaps a few counts. So only this is computed again:
- the touched rows, for plugins that can judge a single row;
- the rows of the domains whose verdict changed, for filters that can judge by domain;
- all rows of a plugin, if something it read changed: a count, the carried terms, storage, services, or, for a plugin
  that reads the load and cannot judge a single row, any row;
- everything, when a node changed, or a filter fails on a touched row.
The result is the same, bit for bit, as asking every plugin from scratch; a state machine in the tests compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from situate.core.contract import (
    FAILED,
    FITS,
    Codes,
    DomainChecker,
    DomainFilter,
    Filter,
    NodeFailures,
    RowFilter,
    RowScorer,
    Scorer,
    Scores,
    Verdict,
)
from situate.core.place.filtering import combine
from situate.core.place.profile import Profile
from situate.core.place.row_reads import ANYTHING, BESIDE_ROWS, Position, reads_its_row_only
from situate.core.place.scoring import weighed
from situate.core.place.selecting import NOWHERE, first_best
from situate.core.place.stopwatch import FILTER, NO_STOPWATCH, SCORE, Stopwatch
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import IdColumn, IntColumn, Mask
from situate.core.state.terms import CarriedTerm
from situate.core.state.topology import TopologyTally
from situate.core.state.view import FEASIBLE, View

FEW_ROWS: Final = 16
"""Up to this many changed rows are updated one by one; beyond, the whole column is summed again."""

FEW_DOMAINS: Final = 4
"""Up to this many changed domains have their rows looked up; beyond, the whole column is written again."""

Versions = tuple[tuple[TopologyTally | CarriedTerm, int], ...]


@dataclass(slots=True)
class _Filtering:
    """The verdicts of one filter, and what it read."""

    plugin: Filter
    codes: Codes | None
    reads: int
    versions: Versions
    check_at: Callable[[int], int] | None
    by_domain: DomainChecker | None
    domain_codes: Codes | None
    """Its codes, by domain."""


@dataclass(slots=True)
class _Scoring:
    """The scores of one scorer, and what it read."""

    scorer: Scorer
    weight: int
    scores: Scores | None
    reads: int
    versions: Versions
    score_at: Callable[[int], int] | None


class _Changed(NamedTuple):
    rows: IdColumn | None
    """Where; None: possibly anywhere."""
    refused: bool
    """Whether it refuses all of these rows now."""


ANYWHERE: Final = _Changed(None, refused=False)


class VerdictCache:
    def __init__(self, cluster: Cluster, profile: Profile, pod: PodClass, stopwatch: Stopwatch = NO_STOPWATCH) -> None:
        self._cluster = cluster
        self._stopwatch = stopwatch
        self._profile = profile
        self.pod = pod
        self._build()

    # -- asking --------------------------------------------------------------------------------------------------

    def choose(self, excluded: Collection[int] = ()) -> int:
        """The row of the best node now without the excluded rows, or NOWHERE."""
        self.refresh()
        if self._stopped:
            self._stopwatch.lap(FILTER, False)
            return NOWHERE
        rank = self._rank
        if excluded:
            rank = rank.copy()
            rank[list(excluded)] = -1
        best = first_best(rank)
        if best == NOWHERE:
            self._stopwatch.lap(FILTER, False)
        else:
            self._stopwatch.lap(SCORE)
        return best

    @property
    def feasible(self) -> Mask:
        """Read-only. The next question changes it."""
        return np.zeros_like(self._feasible) if self._stopped else self._feasible

    @property
    def total(self) -> IntColumn:
        return self._base_total + self._load_total

    @property
    def rank(self) -> IntColumn:
        """The same, with -1 where the pod does not fit. Read-only. The next question changes it."""
        return self._rank

    def load_parts(self, row: int) -> dict[str, int]:
        """What the scorers that judge by row add to the sum at a feasible row."""
        if not self._by_row_scorers:
            return {}
        *others, last = self._by_row_scorers
        parts = {one.scorer.name: one.weight * one.score_at(row) for one in others}  # type: ignore[misc]
        # The sum of all is known, so the last need not be asked.
        parts[last.scorer.name] = self._load_total_cells[row] - sum(parts.values())
        return parts

    def base_parts(self, row: int) -> dict[str, int]:
        """What the other scorers add there."""
        return {
            one.scorer.name: one.weight * int(one.scores[row])
            for one in self._scorers
            if one.score_at is None and one.scores is not None
        }

    @property
    def base_scores(self) -> tuple[Scores | None, ...]:
        """The scores of plugins that do not judge by row. While these are the same, only touched rows change."""
        return tuple([one.scores for one in self._scorers if one.score_at is None])

    @property
    def codes(self) -> tuple[Codes | None, ...]:
        return tuple([filtering.codes for filtering in self._filters])

    @property
    def nbytes(self) -> int:
        """At most about this much memory, whatever the verdicts."""
        columns = 3 * self._rank.nbytes + 3 * self._feasible.nbytes
        answers = len(self._filters) * self._feasible.nbytes + len(self._scorers) * self._rank.nbytes
        return columns + answers

    # -- from scratch --------------------------------------------------------------------------------------------

    def _build(self) -> None:
        cluster, profile, pod = self._cluster, self._profile, self.pod
        self._epoch = cluster.epoch
        self._position = Position(cluster)
        self._row_failed = False
        self._view = base = View(cluster)
        verdicts: list[Verdict] = []
        self._filters: list[_Filtering] = []
        for plugin in profile.filters:
            view = View(cluster)
            verdict = plugin.check(pod, view)
            verdicts.append(verdict)
            codes = verdict.copy() if isinstance(verdict, np.ndarray) else None
            if isinstance(verdict, NodeFailures):
                codes, view.reads = verdict.codes, view.reads | ANYTHING
            by_row = codes is not None and reads_its_row_only(view) and isinstance(plugin, RowFilter)
            check_at = plugin.checker_at(pod, base) if by_row and isinstance(plugin, RowFilter) else None
            counts_alone = codes is not None and not view.reads and bool(view.tallies_read)
            by_domain = plugin.domain_checker(pod, base) if counts_alone and isinstance(plugin, DomainFilter) else None
            domain_codes = None if by_domain is None else by_domain.check(base)
            self._filters.append(
                _Filtering(plugin, codes, view.reads, _versions(view), check_at, by_domain, domain_codes)
            )
        filtered = combine(profile, verdicts, base)
        self._stopped = filtered.turned_away is not None or filtered.failed is not None
        self._by_row_filters = [f for f in self._filters if f.check_at is not None]
        self._also_read = 0
        for answer in self._by_row_filters:
            self._also_read |= answer.reads & BESIDE_ROWS
        self._base_filters = [f for f in self._filters if f.check_at is None]
        self._watched_filters = [f for f in self._filters if f.check_at is None and (f.reads or f.versions)]
        self._base_ok = self._all_fit(self._base_filters, base.present.copy())
        self._load_ok = self._all_fit(self._by_row_filters, np.ones(base.size, np.bool_))
        self._feasible = self._base_ok & self._load_ok
        self._unscored = self._stopped or not self._feasible.any()
        if not self._unscored:
            self._stopwatch.lap(FILTER)
        self._scorers = [self._ask_scorer(weighted.scorer, weighted.weight) for weighted in profile.scorers]
        self._by_row_scorers = [s for s in self._scorers if s.score_at is not None]
        self._watched_scorers = [s for s in self._scorers if s.score_at is None and (s.reads or s.versions)]
        self._sum_scores()
        if not self._unscored:
            self._stopwatch.lap(SCORE)

    def _ask_scorer(self, scorer: Scorer, weight: int) -> _Scoring:
        if self._unscored:
            return _Scoring(scorer, weight, None, 0, (), None)
        view = View(self._cluster, feasible=self._feasible)
        scores = scorer.score(self.pod, view)
        by_row = scores is not None and reads_its_row_only(view) and isinstance(scorer, RowScorer)
        if by_row:
            self._also_read |= view.reads & BESIDE_ROWS
        score_at = scorer.scorer_at(self.pod, self._view) if by_row and isinstance(scorer, RowScorer) else None
        return _Scoring(scorer, weight, scores, view.reads, _versions(view), score_at)

    def _all_fit(self, answers: Sequence[_Filtering], fit: Mask) -> Mask:
        for answer in answers:
            if answer.codes is not None:
                fit &= answer.codes == FITS
        return fit

    def _sum_scores(self) -> None:
        self._base_total = self._weighed([s for s in self._scorers if s.score_at is None])
        self._load_total = self._weighed(self._by_row_scorers)
        for scoring in self._by_row_scorers:
            scoring.scores = None  # from here on it is in the sum only
        self._rank_all()

    def _weighed(self, answers: Sequence[_Scoring]) -> IntColumn:
        total = np.zeros(len(self._feasible), np.int64)
        for answer in answers:
            if answer.scores is not None:
                total += weighed(answer.scores, answer.weight) if answer.weight != 1 else answer.scores
        return total

    def _rank_all(self) -> None:
        rank = self._base_total + self._load_total
        rank[~self._feasible] = -1
        self._rank = rank
        self._rank_cells = rank.data
        self._base_ok_cells = self._base_ok.data
        self._load_ok_cells = self._load_ok.data
        self._feasible_cells = self._feasible.data
        self._base_total_cells = self._base_total.data
        self._load_total_cells = self._load_total.data

    # -- keeping up ----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        cluster = self._cluster
        if self._epoch != cluster.epoch or self._position.touched < cluster.touched_base:
            self._build()
            return
        rows = cluster.touched[self._position.touched - cluster.touched_base :]
        moved = self._position.moved(cluster, bool(rows))
        if moved & self._also_read:
            self._build()
        elif self._stopped:
            # What turned the pod away may be gone; then everything is needed.
            if any(_is_stale(answer, moved) for answer in self._watched_filters):
                self._build()
        elif rows or moved or self._watched_filters or self._watched_scorers:
            self._catch_up(rows, moved)

    def _catch_up(self, rows: Sequence[int], moved: int) -> None:
        self._position.note(self._cluster)
        flipped = False
        stale = [answer for answer in self._watched_filters if _is_stale(answer, moved)]
        if stale:
            changed: list[_Changed] = []
            if not all(self._recheck(answer, changed) for answer in stale):
                self._build()
                return
            flipped = self._base_changed(changed)
        for row in dict.fromkeys(rows) if len(rows) > 1 else rows:
            flipped |= self._refresh_row(row)
        if self._row_failed:
            self._build()  # a failure on one node fails the pod on all of them
            return
        if flipped:
            moved |= FEASIBLE
            if not self._scorable():
                return
        if not self._unscored:
            self._stopwatch.lap(FILTER)
            for scoring in self._watched_scorers:
                if _is_stale(scoring, moved):
                    self._rescore(scoring)

    def _scorable(self) -> bool:
        """Whether scores are kept up to date. They are not while no node is feasible; afterwards all are computed
        again."""
        if not np.count_nonzero(self._feasible):
            self._unscored = True
        elif self._unscored:
            self._build()
            return False
        return not self._unscored

    def _recheck(self, answer: _Filtering, changed: list[_Changed]) -> bool:
        """Ask a filter again, and note the rows where its verdict changed.

        False if the filter now turns the pod away as a whole.
        """
        view = View(self._cluster)
        before = answer.codes
        if answer.by_domain is not None and before is not None:
            answer.codes = self._recheck_domains(answer, answer.by_domain, before, view, changed)
            answer.versions = _versions(view)
            return True
        verdict = answer.plugin.check(self.pod, view)
        if verdict is not None and not isinstance(verdict, np.ndarray):
            return False
        answer.codes = verdict
        answer.reads, answer.versions = view.reads, _versions(view)
        if before is None or verdict is None:
            if before is not verdict:
                changed.append(ANYWHERE)
        elif len(rows := np.flatnonzero(before != verdict)):
            changed.append(_Changed(rows, refused=np.count_nonzero(verdict[rows]) == len(rows)))
        else:
            answer.codes = before  # the same object, so that readers see that nothing changed
        return True

    def _recheck_domains(
        self, answer: _Filtering, by_domain: DomainChecker, codes: Codes, view: View, changed: list[_Changed]
    ) -> Codes:
        """Ask by domain. Returns the codes by row, in a new column if some changed."""
        before, found = answer.domain_codes, by_domain.check(view)
        answer.domain_codes = found
        domains = (before != found).nonzero()[0].tolist()  # type: ignore[union-attr]
        if not domains:
            return codes
        if len(domains) > FEW_DOMAINS:
            changed.append(ANYWHERE)
            return found.take(view.label(by_domain.topology_key)[0])
        codes = codes.copy()
        for domain in domains:
            rows, code = view.rows_in(by_domain.topology_key, domain), found[domain]
            codes[rows] = code
            changed.append(_Changed(rows, refused=code != FITS))
        return codes

    def _base_changed(self, changed: Sequence[_Changed]) -> bool:
        """Filters that do not judge by row changed their verdict. Returns whether any node's feasibility changed."""
        flipped = False
        few: list[int] = []
        for rows, refused in changed:
            if rows is not None and len(few) + len(rows) <= FEW_ROWS:
                few += rows.tolist()
            elif rows is not None and refused:
                # Refused rows need not be checked any further.
                self._base_ok[rows] = False
                self._feasible[rows] = False
                self._rank[rows] = -1
                flipped = True
            else:
                self._base_ok = self._all_fit(self._base_filters, self._view.present.copy())
                self._feasible = self._base_ok & self._load_ok
                self._rank_all()
                return True
        for row in dict.fromkeys(few):
            # Rows without a node are not read: their codes may be anything.
            fits = bool(self._view.present[row]) and all(
                f.codes is None or f.codes[row] == FITS for f in self._base_filters
            )
            self._base_ok_cells[row] = fits
            flipped |= self._rank_row(row)
        return flipped

    def _refresh_row(self, row: int) -> bool:
        """A pod came to or left this row. Returns whether the row's feasibility changed."""
        fits = True
        for answer in self._by_row_filters:
            code = answer.check_at(row)  # type: ignore[misc]
            answer.codes[row] = code  # type: ignore[index]
            if code:
                fits = False
                self._row_failed |= code == FAILED
        self._load_ok_cells[row] = fits
        if fits:
            # Where the load does not fit, the sum is not read until the row is touched again.
            total = 0
            for scoring in self._by_row_scorers:
                total += scoring.weight * scoring.score_at(row)  # type: ignore[misc]
            self._load_total_cells[row] = total
        return self._rank_row(row)

    def _rank_row(self, row: int) -> bool:
        feasible = self._load_ok_cells[row] and self._base_ok_cells[row]
        rank = self._base_total_cells[row] + self._load_total_cells[row] if feasible else -1
        flipped: bool = feasible != self._feasible_cells[row]
        self._rank_cells[row] = rank
        self._feasible_cells[row] = feasible
        return flipped

    def _rescore(self, scoring: _Scoring) -> None:
        """Ask a scorer again, and add the difference to the sum."""
        before = scoring.scores
        view = View(self._cluster, feasible=self._feasible)
        after = scoring.scorer.score(self.pod, view)
        scoring.scores, scoring.reads, scoring.versions = after, view.reads, _versions(view)
        if before is None and after is None:
            return
        if before is None or after is None:
            self._base_total = self._weighed([s for s in self._scorers if s.score_at is None])
            self._rank_all()
            return
        changed = after != before
        count = np.count_nonzero(changed)
        if not count:
            scoring.scores = before  # as with codes
            return
        if count > FEW_ROWS:
            difference = after - before
            self._base_total += difference if scoring.weight == 1 else weighed(difference, scoring.weight)
            np.add(self._base_total, self._load_total, out=self._rank)
            if np.count_nonzero(self._feasible) < self._feasible.size:
                self._rank[~self._feasible] = -1
            return
        for row in changed.nonzero()[0].tolist():
            self._base_total_cells[row] += int(after[row] - before[row]) * scoring.weight
            self._rank_row(row)


def _versions(view: View) -> Versions:
    return tuple(zip(view.tallies_read, view.versions_read, strict=True))


def _is_stale(answer: _Filtering | _Scoring, moved: int) -> bool:
    if answer.reads & moved:
        return True
    # A loop, not any(...): it runs for every pod, and a generator costs more than the comparisons.
    for tally, version in answer.versions:  # noqa: SIM110
        if tally.version != version:
            return True
    return False
