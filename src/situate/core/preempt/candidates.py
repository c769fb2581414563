"""The nodes where room can be made: from all where evictions may help, as many as are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from situate.core.place.diagnosis import Diagnosis
from situate.core.preempt.budgets import Budgets
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.ranking import Candidate
from situate.core.preempt.trial import Texts, Trial, why_hopeless
from situate.core.preempt.victims import victims_on

NO_VICTIMS: Final = ("No preemption victims found for incoming pod",)
BUDGETS_FORBID: Final = ("Preemption would violate a PodDisruptionBudget",)


@dataclass(slots=True)
class Search:
    """What became of the nodes that were looked at."""

    keeping_budgets: list[Candidate] = field(default_factory=list)
    breaking_budgets: list[Candidate] = field(default_factory=list)
    refused: dict[int, Texts] = field(default_factory=dict)
    hopeless: list[int] = field(default_factory=list)
    contradictory: list[int] = field(default_factory=list)
    """Rows where every pod could stay, and yet the pod did not fit."""

    @property
    def candidates(self) -> list[Candidate]:
        return self.keeping_budgets + self.breaking_budgets

    def enough(self, wanted: int) -> bool:
        """At least one candidate must keep the budgets."""
        return bool(self.keeping_budgets) and len(self.keeping_budgets) + len(self.breaking_budgets) >= wanted


def nodes_to_try(diagnosis: Diagnosis) -> list[int]:
    """The rows of the nodes that were refused for a reason that evictions could remove, in node order."""
    rows: list[int] = np.flatnonzero(diagnosis.eviction_helps).tolist()
    return rows


def search(trial: Trial, rows: Sequence[int], options: PreemptionOptions, offset: int) -> Search:
    """Try the nodes in order, starting somewhere, until there are enough candidates."""
    found = Search()
    wanted = options.wanted_candidates(len(rows))
    budgets = Budgets(trial.view.budgets)
    start = offset % len(rows) if rows else 0
    for row in (*rows[start:], *rows[:start]):
        if not trial.lower_count(row):
            found.refused[row] = NO_VICTIMS
        elif trial.hopeless[row]:
            found.hopeless.append(row)
        else:
            _try(trial, budgets, row, found, wanted, options)
            if found.enough(wanted):
                break
    return found


def _try(trial: Trial, budgets: Budgets, row: int, found: Search, wanted: int, options: PreemptionOptions) -> None:
    outcome = victims_on(trial, budgets, row)
    if not isinstance(outcome, Candidate):
        found.refused[row] = outcome
    elif not outcome.victims:
        found.contradictory.append(row)
    elif not outcome.violations:
        found.keeping_budgets.append(outcome)
    elif options.never_break_budgets:
        found.refused[row] = BUDGETS_FORBID
    elif len(found.breaking_budgets) < wanted:
        found.breaking_budgets.append(outcome)


def reasons(trial: Trial, found: Search) -> dict[int, Texts]:
    """Why each node that was looked at is no candidate."""
    return {**found.refused, **why_hopeless(trial, found.hopeless)}
