"""Preemption: evict pods of lower priority from one node, so that the pod fits there. Kubernetes' words throughout."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final

from situate.core.contract import Unjudged
from situate.core.place.diagnosis import Diagnosis
from situate.core.place.profile import Profile
from situate.core.preempt.budgets import Budgets
from situate.core.preempt.candidates import reasons, search
from situate.core.preempt.eviction_effects import FilterRun, ask, filter_effects, with_nominations
from situate.core.preempt.lower_priority import LowerPods
from situate.core.preempt.nominated import NO_NOMINATED_PODS, NominatedPods
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.post_filter_result import ERROR, SUCCESS, PostFilterResult, refused
from situate.core.preempt.ranking import Candidate
from situate.core.preempt.trial import prepare
from situate.core.preempt.unresolvable import ReasonCounts
from situate.core.state.classes import PodClass
from situate.core.state.view import View
from situate.core.versions import KubernetesRules

NEVER: Final = "Never"
POLICY_FORBIDS: Final = "not eligible due to preemptionPolicy=Never."
VICTIMS_ARE_LEAVING: Final = "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


@dataclass(frozen=True, slots=True)
class PreemptionInputs:
    """What the caller knows beside the view: nominations, evictions that are under way, and what was computed
    before."""

    nominated: NominatedPods = NO_NOMINATED_PODS
    """The nominated pods that count for the pod."""
    evicting: Container[str] = ()
    """The uids of pods that are being evicted, whether or not they are seen leaving yet."""
    lower: LowerPods | None = None
    budgets: Budgets | None = None
    asked: Sequence[FilterRun] | None = None
    """The verdicts of the filters, with the rows where nominations may change them."""


NO_INPUTS: Final = PreemptionInputs()


def preempt(
    profile: Profile,
    pod: PodClass,
    view: View,
    diagnosis: Diagnosis,
    options: PreemptionOptions,
    *,
    nominated_node: str = "",
    offset: int = 0,
    known: PreemptionInputs = NO_INPUTS,
) -> PostFilterResult:
    """Which pods to evict for a pod that fits nowhere, and from which node.

    `nominated_node` is the pod's earlier nomination. `offset` is where the search begins among the nodes: Kubernetes
    draws it at random.
    """
    if (reason := _not_eligible(pod, view, diagnosis, nominated_node, known.evicting)) is not None:
        return _told(reason)
    if not diagnosis.eviction_helps.any():
        return _nowhere(view, ReasonCounts(), 0)
    asked = known.asked if known.asked is not None else with_nominations(ask(profile, pod, view), pod, known.nominated)
    lower = known.lower or LowerPods(view, pod.priority)
    trial = prepare(filter_effects(asked, pod), pod, view, lower, known.nominated)
    found = search(trial, diagnosis, known.budgets or Budgets.of(view), options, offset)
    if found.best is not None:
        return _chosen(view, found.best, options.rules)
    counts = reasons(found)
    if found.contradictory or any(isinstance(text, Unjudged) for text in counts):
        names = (view.names[row] for row in found.contradictory)
        contradictions = [f'expected at least one victim pod on node "{name}"' for name in names]
        return _told(_joined(contradictions + [text.error for text in counts if isinstance(text, Unjudged)]), ERROR)
    return _nowhere(view, counts, found.tried)


def _not_eligible(
    pod: PodClass, view: View, diagnosis: Diagnosis, nominated_node: str, evicting: Container[str]
) -> str | None:
    """Why the pod may not preempt: its policy forbids it, or its victims are still leaving."""
    if pod.spec.preemption_policy == NEVER:
        return POLICY_FORBIDS
    row = view.find(nominated_node) if nominated_node else -1
    if row < 0 or not diagnosis.eviction_may_help(row):
        return None
    for victim in view.pods_on(row):
        if victim.kind.priority < pod.priority and (victim.preempted or victim.uid in evicting):
            return VICTIMS_ARE_LEAVING
    return None


def _chosen(view: View, best: Candidate, rules: KubernetesRules) -> PostFilterResult:
    """Pods that are being deleted already are not evicted again, but the message counts them."""
    by_name = sorted(best.victims, key=lambda victim: victim.key)
    victims = (view.cluster.pods.bound(victim.row) for victim in by_name)
    message = ""
    if rules.reports_preemption:
        where = f"found a potential placement for pod on node {view.cluster.nodes.names[best.row]}"
        message = f"preemption: {where}, preempting {len(best.victims)} victims"
    return PostFilterResult(best.row, tuple(victim for victim in victims if not victim.leaving), SUCCESS, message)


def _nowhere(view: View, counts: ReasonCounts, counted: int) -> PostFilterResult:
    """Reasons were counted for this many nodes. An earlier nomination is of no use any more."""
    counts.count(NOT_HELPFUL, view.node_count - counted)
    histogram = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    message = f"preemption: 0/{view.node_count} nodes are available: {histogram}."
    return refused(message, withdraws=True)


def _joined(errors: list[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _told(text: str, code: str | None = None) -> PostFilterResult:
    message = f"preemption: {text}"
    return refused(message) if code is None else refused(message, code)
