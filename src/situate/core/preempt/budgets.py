"""Disruption budgets: whose eviction would break one.

They are read as the disruption controller left them in their status; nothing is counted again here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from situate.core.model.labels import selector_or_nothing
from situate.core.model.policy import PodDisruptionBudget
from situate.core.preempt.evictable import Evictable
from situate.core.state.classes import PodClass
from situate.core.state.view import View

CLASSES: Final = 1 << 16
"""For how many classes the matching budgets are remembered."""


class Budgets:
    """`stops_at_first`: once a pod breaks a budget, those after it are not charged for the pod."""

    __slots__ = ("_budgets", "_by_class", "_stops_at_first")

    def __init__(self, budgets: Sequence[PodDisruptionBudget], *, stops_at_first: bool = False) -> None:
        self._stops_at_first = stops_at_first
        chosen = [(budget, selector_or_nothing(budget.spec.selector)) for budget in budgets]
        # As in kube-scheduler, an empty selector matches nothing here.
        self._budgets = [(budget, selector) for budget, selector in chosen if selector.requirements]
        self._by_class: dict[int, tuple[int, ...]] = {}

    def split(self, pods: Sequence[Evictable]) -> tuple[list[Evictable], list[Evictable]]:
        """The pods whose eviction would break a budget if all before them went too, and the others, both in order."""
        if not self._budgets:
            return [], list(pods)
        left = [budget.status.disruptions_allowed for budget, _ in self._budgets]
        breaking: list[Evictable] = []
        harmless: list[Evictable] = []
        for pod in pods:
            breaks = False
            for at in self._of(pod.kind):
                if pod.key.partition("/")[2] in self._budgets[at][0].status.disrupted_pods:
                    continue  # its eviction is under way and counted already
                left[at] -= 1
                breaks |= left[at] < 0
                if breaks and self._stops_at_first:
                    break
            (breaking if breaks else harmless).append(pod)
        return breaking, harmless

    @classmethod
    def of(cls, view: View) -> Budgets:
        """The budgets of a view, by the rules of its cluster."""
        return cls(view.budgets, stops_at_first=view.cluster.rules.budgets_stop_at_first)

    def _of(self, kind: PodClass) -> tuple[int, ...]:
        """The indices of the budgets that match pods of a class."""
        found = self._by_class.get(kind.id)
        if found is None:
            if len(self._by_class) >= CLASSES:
                self._by_class.clear()
            found = self._by_class[kind.id] = tuple(
                at
                for at, (budget, selector) in enumerate(self._budgets)
                if budget.metadata.namespace == kind.namespace and kind.labels and selector.matches(kind.labels)
            )
        return found
