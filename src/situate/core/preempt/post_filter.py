"""What is tried for a pod that fits nowhere, one plugin after another: Kubernetes' PostFilter."""

from __future__ import annotations

from typing import Final

from situate.core.place.diagnosis import Diagnosis
from situate.core.place.profile import Profile
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.post_filter_result import ERROR, NOTHING_TO_TRY, UNSCHEDULABLE, PostFilterResult, refused
from situate.core.preempt.preemption import NO_INPUTS, PreemptionInputs, preempt
from situate.core.state.classes import PodClass
from situate.core.state.view import View

DYNAMIC_RESOURCES: Final = "DynamicResources"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"

NO_CLAIMS: Final = "no new claims to deallocate"
NOT_FOUND: Final = "not found"


def post_filter(
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
    """The result of the first plugin that helps or fails; if none does, the messages of all of them."""
    results: list[PostFilterResult] = []
    for name in profile.post_filters:
        if name == DYNAMIC_RESOURCES:
            result = _deallocate(profile, diagnosis)
        elif name == DEFAULT_PREEMPTION:
            result = preempt(
                profile, pod, view, diagnosis, options, nominated_node=nominated_node, offset=offset, known=known
            )
        else:
            continue
        if result.code != UNSCHEDULABLE:
            return result
        results.append(result)
    if not results:
        return NOTHING_TO_TRY
    return refused(
        ", ".join(result.message for result in results), withdraws=any(result.withdraws for result in results)
    )


def _deallocate(profile: Profile, diagnosis: Diagnosis) -> PostFilterResult:
    """Resource claims are not supported yet, so there is none to deallocate.

    Kubernetes' plugin fails if its PreFilter did not run because another plugin turned the pod away first.
    """
    order = profile.before_nodes or tuple(plugin.name for plugin in profile.filters)
    asked = order
    if diagnosis.turned_away is not None and diagnosis.turned_away.last_asked in order:
        asked = order[: order.index(diagnosis.turned_away.last_asked) + 1]
    return refused(NO_CLAIMS) if DYNAMIC_RESOURCES in asked else refused(NOT_FOUND, ERROR)
