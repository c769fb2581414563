"""PodDisruptionBudgets over time: an eviction uses one disruption, and the victim's replacement gives it back.

The initial value is the one in the budget's status.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from situate.core.changes import Change, ObjectSeen
from situate.core.model.labels import Selector, SelectorError, parse_selector
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.model.policy import PodDisruptionBudget

Keys = tuple[str, ...]


class BudgetTracker:
    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets: dict[str, tuple[PodDisruptionBudget, Selector]] = {}
        for budget in budgets:
            try:
                selector = parse_selector(budget.spec.selector)
            except SelectorError:
                continue
            if selector.requirements:  # as in preemption: an empty selector matches no pod
                self._budgets[key_of(budget.metadata)] = (budget, selector)

    def take(self, victim: Pod, changes: list[Change]) -> Keys:
        """Take a disruption for an evicted pod; return the budgets that match it."""
        if not self._budgets:
            return ()
        keys = tuple(key for key, (one, selector) in self._budgets.items() if _matches(one, selector, victim))
        self._move(keys, -1, changes)
        return keys

    def give_back(self, keys: Keys, changes: list[Change]) -> None:
        """A victim's replacement has a node."""
        self._move(keys, 1, changes)

    def _move(self, keys: Keys, by: int, changes: list[Change]) -> None:
        """The count may be negative: a budget violated twice must be repaid twice."""
        for key in keys:
            budget, selector = self._budgets[key]
            allowed = budget.status.disruptions_allowed + by
            moved = replace(budget, status=replace(budget.status, disruptions_allowed=allowed))
            self._budgets[key] = (moved, selector)
            changes.append(ObjectSeen(moved))


def _matches(budget: PodDisruptionBudget, selector: Selector, pod: Pod) -> bool:
    meta = pod.metadata
    if budget.metadata.namespace != meta.namespace or meta.name in budget.status.disrupted_pods:
        return False
    return bool(meta.labels) and selector.matches(meta.labels)
