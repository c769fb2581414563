"""The nodes where evictions can make room: as many as are wanted, of all where evictions may help.

Where only room and disruption budgets decide which pods may stay, the victims are found on many nodes at once. Other
nodes are tried one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from situate.core.place.diagnosis import Diagnosis
from situate.core.preempt.budgets import Budgets
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.ranking import Candidate, least_harmful
from situate.core.preempt.reprieve import Reprieved, reprieved
from situate.core.preempt.trial import Texts, Trial
from situate.core.preempt.unresolvable import ReasonCounts, count_unresolvable
from situate.core.preempt.victims import victims_on
from situate.core.state.columns import IdColumn, Mask

NO_VICTIMS: Final = "No preemption victims found for incoming pod"
BUDGETS_FORBID: Final = "Preemption would violate a PodDisruptionBudget"


@dataclass(slots=True)
class Search:
    trial: Trial
    budgets: Budgets
    options: PreemptionOptions
    tried: int
    """How many nodes there were to try."""
    wanted: int
    """How many candidates are enough, if one of them keeps the budgets."""
    keeping: int = 0
    """How many candidates keep the budgets."""
    breaking: int = 0
    candidates: list[Candidate] = field(default_factory=list)
    """At least the best of them."""
    refused: dict[int, Texts] = field(default_factory=dict)
    unresolvable: IdColumn = field(default_factory=lambda: np.empty(0, np.intp))
    contradictory: list[int] = field(default_factory=list)
    """Rows where every pod could stay, and yet the pod did not fit."""
    empty: int = 0
    """How many nodes have no pod to evict."""

    @property
    def best(self) -> Candidate | None:
        return least_harmful(self.candidates) if self.candidates else None

    def enough(self) -> bool:
        return self.keeping > 0 and self.keeping + self.breaking >= self.wanted

    def take(self, row: int, victims: int, violations: int) -> bool:
        """Count a node with this many victims, this many of them against a budget; whether it is a candidate."""
        if not victims:
            self.contradictory.append(row)
        elif not violations:
            self.keeping += 1
            return True
        elif self.options.never_break_budgets:
            self.refused[row] = (BUDGETS_FORBID,)
        elif self.breaking < self.wanted:
            self.breaking += 1
            return True
        return False


def nodes_to_try(diagnosis: Diagnosis) -> IdColumn:
    """The rows that were refused for a reason that evictions could remove, in node order."""
    return np.flatnonzero(diagnosis.eviction_helps)


def search(trial: Trial, diagnosis: Diagnosis, budgets: Budgets, options: PreemptionOptions, offset: int) -> Search:
    """Try the nodes that were refused for a reason that evictions could remove, in order from an offset, until there
    are enough candidates."""
    helps = diagnosis.eviction_helps
    tried = int(np.count_nonzero(helps))
    found = Search(trial, budgets, options, tried, options.wanted_candidates(tried))
    populated = helps & (trial.lower.counts > 0)
    unresolvable = populated & trial.unresolvable
    found.empty = tried - int(np.count_nonzero(populated))
    found.unresolvable = np.flatnonzero(unresolvable)
    rows = np.flatnonzero(populated & ~unresolvable)
    if len(rows):
        start = int(np.searchsorted(rows, nodes_to_try(diagnosis)[offset % tried])) if offset else 0
        _try_all(found, np.concatenate((rows[start:], rows[:start])) if start else rows)
    return found


def _try_all(found: Search, rows: IdColumn) -> None:
    """Find candidates among rows that are not unresolvable, as many at a time as are wanted."""
    unknown = found.trial.unknown()
    step = max(found.wanted, 1)
    for begin in range(0, len(rows), step):
        some = rows[begin : begin + step]
        one_by_one = np.zeros(len(some), np.bool_) if unknown is None else unknown[some]
        known = some[~one_by_one]
        outcome = reprieved(found.trial.lower, found.budgets, known, found.trial.room_on(known))
        if len(known) < len(some) or outcome.violations.any() or outcome.vain.any():
            _take_each(found, some, one_by_one, outcome)
        else:
            _take_all(found, outcome)
        if found.enough():
            return


def _take_all(found: Search, outcome: Reprieved) -> None:
    """These nodes are all candidates and keep the budgets: take the first that are still wanted."""
    missing = max(found.wanted - found.keeping - found.breaking, 0 if found.keeping else 1)
    count = min(missing, len(outcome.rows))
    found.keeping += count
    _add(found, outcome.least_harmful(np.arange(count)))


def _take_each(found: Search, rows: IdColumn, one_by_one: Mask, known: Reprieved) -> None:
    """One node after another: those to be tried one by one, and those whose victims are known."""
    victims, violations = known.victims.sum(axis=0).tolist(), known.violations.tolist()
    taken = []
    place = 0
    for row, must_try in zip(rows.tolist(), one_by_one.tolist(), strict=True):
        if must_try:
            _try(found, row)
        else:
            if found.take(row, victims[place], violations[place]):
                taken.append(place)
            place += 1
        if found.enough():
            break
    if taken:
        _add(found, known.least_harmful(np.array(taken)))


def _try(found: Search, row: int) -> None:
    outcome = victims_on(found.trial, found.budgets, row)
    if not isinstance(outcome, Candidate):
        found.refused[row] = outcome
    elif found.take(row, len(outcome.victims), outcome.violations):
        found.candidates.append(outcome)


def _add(found: Search, row: int) -> None:
    outcome = victims_on(found.trial, found.budgets, row)
    if isinstance(outcome, Candidate):
        found.candidates.append(outcome)


def reasons(found: Search) -> ReasonCounts:
    counts = ReasonCounts()
    counts.count(NO_VICTIMS, found.empty)
    for texts in found.refused.values():
        counts.count_all(texts)
    if len(found.unresolvable):
        count_unresolvable(found.trial, found.unresolvable, counts)
    return counts
