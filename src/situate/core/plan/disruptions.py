"""What disruption budgets allow: an eviction uses one disruption until the pod runs again elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from situate.core.model.labels import selector_or_nothing
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.model.policy import PodDisruptionBudget
from situate.core.reconcile.disruption import SEVERAL_BUDGETS, WOULD_VIOLATE


class Allowances:
    """All budgets, counted along a plan. An empty selector covers the whole namespace."""

    __slots__ = ("_budgets", "_left")

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets = [(budget, selector_or_nothing(budget.spec.selector)) for budget in budgets]
        self._left = [budget.status.disruptions_allowed for budget, _ in self._budgets]

    def _of(self, pod: Pod) -> list[int]:
        return [
            at
            for at, (budget, selector) in enumerate(self._budgets)
            if budget.metadata.namespace == pod.metadata.namespace and selector.matches(pod.metadata.labels)
        ]

    def refusal(self, pod: Pod) -> str:
        """Why the eviction API would refuse the pod now; empty if it would not."""
        found = self._of(pod)
        if len(found) > 1:
            return SEVERAL_BUDGETS
        if not found or self._left[found[0]] > 0:
            return ""
        budget = self._budgets[found[0]][0]
        if pod.metadata.name in budget.status.disrupted_pods:
            return ""
        return f"{WOULD_VIOLATE} ({key_of(budget.metadata)} allows 0 disruptions)"

    def use(self, pod: Pod) -> None:
        for at in self._of(pod):
            self._left[at] -= 1

    def give_back(self, pod: Pod) -> None:
        for at in self._of(pod):
            self._left[at] += 1
