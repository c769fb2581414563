"""DynamicResources: refuse nodes whose devices cannot satisfy a pod's claims, and prefer early alternatives.

Which devices a node can give is searched in `core/devices`, as kube-scheduler searches. `decide` returns the choice on
one node for the caller to carry out. Nothing here reserves or writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import FAILED, FITS, Failure, NodeFailures, Reason, Refusal, Scores, Verdict, Wake, WakeEvent
from situate.core.devices.budget import WORK_PER_SECOND
from situate.core.model.duration import MINUTE, SECOND, Duration, format_duration
from situate.core.model.field_errors import child, invalid
from situate.core.plugins.support.arguments import PluginArgs
from situate.core.plugins.support.device_demand import (
    NO_DEVICES,
    TEXTS,
    Demand,
    DeviceDecision,
    RowJudge,
    Searching,
    demand_of,
    may_score,
)
from situate.core.plugins.support.device_hints import device_hint
from situate.core.plugins.support.device_selectors import selector_compiler
from situate.core.plugins.support.normalize import constant, normalized
from situate.core.state.classes import PodClass
from situate.core.state.view import View
from situate.core.versions import DEFAULT, DeviceRules, KubernetesRules

FILTER_TIMEOUT: Final = 10 * SECOND
BINDING_TIMEOUT: Final = 10 * MINUTE


class DynamicResourcesArgs(PluginArgs, frozen=True, kw_only=True):
    """`filter_timeout` limits the work of an attempt on all nodes, not its time on one: see WORK_PER_SECOND."""

    filter_timeout: Duration = FILTER_TIMEOUT
    binding_timeout: Duration = BINDING_TIMEOUT

    def validate(self, path: str) -> list[str]:
        problems = []
        if self.filter_timeout < 0:
            shown = format_duration(self.filter_timeout)
            problems.append(invalid(child(path, "filterTimeout"), shown, "must be zero or positive"))
        if self.binding_timeout < SECOND:
            shown = format_duration(self.binding_timeout)
            problems.append(invalid(child(path, "bindingTimeout"), shown, "must be at least 1 second"))
        return problems


@dataclass(frozen=True, slots=True)
class DynamicResources:
    """Kubernetes' plugin scores every pod; without alternatives the score is 0."""

    work: int = FILTER_TIMEOUT * WORK_PER_SECOND // SECOND
    """How much work the searches of one attempt may be, beside a share for each node; 0: any amount."""
    rules: DeviceRules = DEFAULT.devices
    filters: bool = True
    """Whether it searches devices before it scores. Where filter is disabled, every node scores 0."""

    name: ClassVar[str] = "DynamicResources"
    reasons: ClassVar[tuple[Reason, ...]] = tuple(Reason(text, eviction_helps=False) for text in TEXTS)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {
            Wake.NODE_ADDED,
            Wake.NODE_LABEL,
            Wake.NODE_ALLOCATABLE,
            Wake.RESOURCE_CLAIM_ADDED,
            Wake.RESOURCE_CLAIM_UPDATED,
            Wake.RESOURCE_CLAIM_DELETED,
            Wake.DEVICE_CLASS_ADDED,
            Wake.DEVICE_CLASS_UPDATED,
            Wake.DEVICE_CLASS_DELETED,
            Wake.RESOURCE_SLICE_ADDED,
            Wake.RESOURCE_SLICE_UPDATED,
            Wake.RESOURCE_SLICE_DELETED,
            Wake.POD_RESOURCE_CLAIMS,
        }
    )

    @classmethod
    def from_args(cls, args: DynamicResourcesArgs, points: frozenset[str]) -> DynamicResources:
        return cls(args.filter_timeout * WORK_PER_SECOND // SECOND, filters="filter" in points)

    def with_rules(self, rules: KubernetesRules) -> DynamicResources:
        return replace(self, rules=rules.devices)

    @property
    def searching(self) -> Searching:
        return Searching(selector_compiler(self.rules), self.rules, self.work)

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return device_hint(pod, event, self.rules)

    def check(self, pod: PodClass, view: View) -> Verdict:
        demand = demand_of(pod, view)
        if not isinstance(demand, Demand):
            return demand
        judge = RowJudge(self.searching, demand, view)
        codes = np.zeros(view.size, np.uint8)
        failures: dict[int, str] = {}
        for at in np.flatnonzero(view.present).tolist():
            row = view.absolute(at)
            codes[at] = code = judge.code(row)
            if code == FAILED:
                failures[at] = judge.answer(row).problem
        return NodeFailures(codes, failures) if failures else codes

    def checker_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        """The scalar twin of `check`."""
        demand = demand_of(pod, view)
        if not isinstance(demand, Demand):
            return lambda _: FITS
        return RowJudge(self.searching, demand, view).code

    def score(self, pod: PodClass, view: View) -> Scores:
        demand = demand_of(pod, view)
        if not self.filters or not isinstance(demand, Demand) or not may_score(demand):
            return constant(0, view)
        judge = RowJudge(self.searching, demand, view)
        feasible = view.feasible
        raw = np.zeros(view.size, np.int64)
        for at in np.flatnonzero(feasible).tolist():
            raw[at] = judge.score(view.absolute(at))
        return normalized(raw, feasible)


def decide(plugin: DynamicResources, pod: PodClass, view: View, row: int) -> DeviceDecision | None:
    """The devices for a pod on the node at a row; None if it cannot have them there."""
    demand = demand_of(pod, view)
    if demand is None:
        return NO_DEVICES
    if isinstance(demand, (Refusal, Failure)):
        return None
    judge = RowJudge(plugin.searching, demand, view)
    answer = judge.answer(row)
    if answer.code != FITS:
        return None
    allocations = tuple(zip(answer.claims, judge.allocations(row, answer), strict=True))
    bound = tuple(claim for claim in demand.claims if claim.status.allocation is not None)
    return DeviceDecision(allocations, bound, answer.extended)
