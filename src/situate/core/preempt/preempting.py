"""Preemption: evict pods of lower priority from one node, so that the pod fits there.

Nothing is evicted here; who carries the remedy out does that. Kubernetes' words throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.core.place.diagnosis import Diagnosis
from situate.core.place.profile import Profile
from situate.core.preempt.candidates import nodes_to_try, reasons, search
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.ranking import Candidate, least_harmful
from situate.core.preempt.remedy import ERROR, SUCCESS, Remedy, refused
from situate.core.preempt.trial import Texts, prepare
from situate.core.state.classes import PodClass
from situate.core.state.view import View

NEVER: Final = "Never"
POLICY_FORBIDS: Final = "not eligible due to preemptionPolicy=Never."
VICTIMS_ARE_LEAVING: Final = "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


def preempt(
    profile: Profile,
    pod: PodClass,
    view: View,
    diagnosis: Diagnosis,
    options: PreemptionOptions,
    *,
    nominated_node: str = "",
    offset: int = 0,
) -> Remedy:
    """Whom to evict for a pod that fits nowhere, and from which node.

    `nominated_node` is where an earlier preemption was to make room for the pod. `offset` is where among the nodes
    the search begins: Kubernetes rolls a die.
    """
    if (reason := _not_eligible(pod, view, diagnosis, nominated_node)) is not None:
        return _told(reason)
    rows = nodes_to_try(diagnosis)
    if not rows:
        return _told(_nowhere(view, {}))
    trial = prepare(profile, pod, view)
    found = search(trial, rows, options, offset)
    if found.candidates:
        return _chosen(view, least_harmful(found.candidates))
    if found.contradictory:
        names = (view.names[row] for row in found.contradictory)
        return _told(_joined([f'expected at least one victim pod on node "{name}"' for name in names]), ERROR)
    return _told(_nowhere(view, reasons(trial, found)))


def _not_eligible(pod: PodClass, view: View, diagnosis: Diagnosis, nominated_node: str) -> str | None:
    """Why the pod may not preempt: it does not want to, or its victims are still on their way out."""
    if pod.spec.preemption_policy == NEVER:
        return POLICY_FORBIDS
    row = view.find(nominated_node) if nominated_node else -1
    if row < 0 or not diagnosis.eviction_may_help(row):
        return None
    if any(victim.preempted and victim.kind.priority < pod.priority for victim in view.pods_on(row)):
        return VICTIMS_ARE_LEAVING
    return None


def _chosen(view: View, best: Candidate) -> Remedy:
    """Who is being deleted already is not evicted again."""
    by_name = sorted(best.victims, key=lambda victim: victim.key)
    victims = (view.cluster.pods.bound(victim.row) for victim in by_name)
    return Remedy(best.row, tuple(victim for victim in victims if not victim.leaving), SUCCESS, "")


def _nowhere(view: View, told: Mapping[int, Texts]) -> str:
    counts: dict[str, int] = {}
    for texts in told.values():
        for text in texts:
            counts[text] = counts.get(text, 0) + 1
    if len(told) < view.node_count:
        counts[NOT_HELPFUL] = counts.get(NOT_HELPFUL, 0) + view.node_count - len(told)
    histogram = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    return f"0/{view.node_count} nodes are available: {histogram}."


def _joined(errors: list[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _told(text: str, code: str | None = None) -> Remedy:
    message = f"preemption: {text}"
    return refused(message) if code is None else refused(message, code)
