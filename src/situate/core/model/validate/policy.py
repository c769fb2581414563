"""Disruption budgets, priority classes, and the selectors of controllers."""

from situate.core.model.policy import PodDisruptionBudget, PriorityClass
from situate.core.model.validate.problem import Problems, unsupported
from situate.core.model.validate.selectors import label_selector_problems
from situate.core.model.workloads import ReplicaSet, StatefulSet

PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


def priority_class_problems(priority_class: PriorityClass) -> Problems:
    if priority_class.preemption_policy not in PREEMPTION_POLICIES:
        yield unsupported("preemptionPolicy", priority_class.preemption_policy, PREEMPTION_POLICIES)


def selector_problems(obj: PodDisruptionBudget | ReplicaSet | StatefulSet) -> Problems:
    yield from label_selector_problems("spec.selector", obj.spec.selector)
