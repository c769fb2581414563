"""Cluster policy: priority classes, disruption budgets, namespaces."""

from collections.abc import Mapping

from situate.core.model.base import EMPTY, Int32, Model
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta


class Namespace(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class PriorityClass(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


class PodDisruptionBudgetSpec(Model, frozen=True, kw_only=True):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Model, frozen=True, kw_only=True):
    """`disrupted_pods`: names of pods whose eviction is under way (already counted), with the time."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: Mapping[str, str | None] = EMPTY


class PodDisruptionBudget(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
