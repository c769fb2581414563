"""What disruption budgets allow: an eviction uses one disruption until the pod runs again elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from situate.core.model.labels import selector_or_nothing
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
        if found and self._left[found[0]] <= 0 and pod.metadata.name not in self._disrupted(found[0]):
            return f"{WOULD_VIOLATE} ({self.name(found[0])} allows 0 disruptions)"
        return ""

    def budgets(self, pod: Pod) -> list[str]:
        """The budgets that cover a pod, by namespace/name."""
        return [self.name(at) for at in self._of(pod)]

    def name(self, at: int) -> str:
        meta = self._budgets[at][0].metadata
        return f"{meta.namespace}/{meta.name}"

    def use(self, pod: Pod) -> None:
        for at in self._of(pod):
            self._left[at] -= 1

    def give_back(self, pod: Pod) -> None:
        for at in self._of(pod):
            self._left[at] += 1

    def _disrupted(self, at: int) -> Iterable[str]:
        return self._budgets[at][0].status.disrupted_pods
