"""The victims on many nodes at once, where only room and budgets decide which pods may stay.

The same as `victims`, one step for all nodes instead of one node after another, with the same order as `ranking`. The
tests compare them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from situate.core.preempt.budgets import Budgets
from situate.core.preempt.lower_priority import LowerPods
from situate.core.preempt.ranking import ABOVE_ALL_NEGATIVE
from situate.core.state.columns import IdColumn, IntColumn, Mask

LOWEST: Final = -(1 << 62)
LATEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Reprieved:
    """The victims on some nodes. Tables have a column per node, with the pods in the order of reprieve."""

    rows: IdColumn
    victims: Mask
    violations: IntColumn
    """How many victims a budget protects, by index among the rows."""
    _priorities: IntColumn
    _started: IntColumn

    @property
    def vain(self) -> Mask:
        """Nodes where every pod could stay: they were not refused for lack of room."""
        return np.logical_not(self.victims.any(axis=0))

    def least_harmful(self, among: IdColumn | None = None) -> int:
        """The row that comes first by `ranking.harm`, among these indices if given."""
        at = np.arange(len(self.rows)) if among is None else among
        for harm in self._harms():
            here = harm[at]
            at = at[here == here.min()]
            if len(at) == 1:
                break
        return int(self.rows[at].min())

    def _harms(self) -> Iterator[IntColumn]:
        """The criteria, first to last, each computed only if it is needed."""
        victims, priorities = self.victims, self._priorities
        yield self.violations
        highest: IntColumn = np.where(victims, priorities, LOWEST).max(axis=0)
        yield highest
        counts: IntColumn = victims.sum(axis=0)
        yield (priorities * victims).sum(axis=0) + counts * ABOVE_ALL_NEGATIVE
        yield counts
        important = victims & (priorities == highest)
        earliest: IntColumn = np.where(important, self._started, LATEST).min(axis=0)
        yield -earliest


def reprieved(lower: LowerPods, budgets: Budgets, rows: IdColumn, room: Mapping[int, IntColumn]) -> Reprieved:
    """The victims on each of these nodes. `room`: by resource column, what is left if all pods of lower priority go and
    the preemptor comes."""
    kinds, started, protected = lower.ranked(rows, budgets)
    victims = _not_reprieved(lower, kinds, room)
    violations: IntColumn = np.zeros(len(rows), np.int64)
    if protected.any():
        places = np.arange(len(kinds)).reshape(-1, 1)
        violations = (victims & (places < protected)).sum(axis=0)
    return Reprieved(rows, victims, violations, lower.ranks.priorities()[kinds], started)


def _not_reprieved(lower: LowerPods, kinds: IdColumn, room: Mapping[int, IntColumn]) -> Mask:
    """Each pod stays if there is room for it beside those before it that stay."""
    columns = list(room)
    left = np.array([room[column] for column in columns], np.int64).reshape(len(columns), kinds.shape[1])
    amounts = np.array([lower.ranks.amounts(column) for column in columns], np.int64).reshape(len(columns), -1)
    victims = np.zeros(kinds.shape, np.bool_)
    for place, here in enumerate(kinds):
        asked = amounts.take(here, axis=1)
        stays = (asked <= left).all(axis=0)
        np.logical_not(stays, out=victims[place])
        left -= asked * stays
    return victims
