"""What is tried for a pod that fits nowhere, one plugin after another: Kubernetes' PostFilter."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from situate.core.model.devices import ResourceClaim
from situate.core.place.diagnosis import Diagnosis
from situate.core.place.profile import Profile
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.plugins.support.device_demand import NOT_AVAILABLE, Demand, RowJudge, deallocatable, demand_of
from situate.core.plugins.support.single_stage import PreFilterOnly
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.post_filter_result import ERROR, NOTHING_TO_TRY, UNSCHEDULABLE, PostFilterResult, refused
from situate.core.preempt.preemption import NO_INPUTS, PreemptionInputs, preempt
from situate.core.state.classes import PodClass
from situate.core.state.view import View
from situate.core.versions import DeviceRules

DYNAMIC_RESOURCES: Final = "DynamicResources"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"

NO_CLAIMS: Final = "no new claims to deallocate"
NOT_FOUND: Final = "not found"
DEALLOCATED: Final = "deallocation of ResourceClaim completed"
DELETED: Final = "deletion of ResourceClaim completed"
STILL_NOT: Final = "still not schedulable"


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
    released: ResourceClaim | None = None
    for name in profile.post_filters:
        if name == DYNAMIC_RESOURCES:
            result = _deallocate(profile, pod, view, diagnosis, options.rules.devices)
            released = result.released
        elif name == DEFAULT_PREEMPTION:
            result = preempt(
                profile, pod, view, diagnosis, options, nominated_node=nominated_node, offset=offset, known=known
            )
        else:
            continue
        if result.code != UNSCHEDULABLE:
            return result if released is None else replace(result, released=released)
        results.append(result)
    if not results:
        return NOTHING_TO_TRY
    message = ", ".join(result.message for result in results if result.message)
    return replace(refused(message, withdraws=any(result.withdraws for result in results)), released=released)


def _deallocate(
    profile: Profile, pod: PodClass, view: View, diagnosis: Diagnosis, rules: DeviceRules
) -> PostFilterResult:
    """Give back the devices of a claim that keeps the pod from nodes, if no other pod uses it.

    Kubernetes' plugin fails if its PreFilter did not run because another plugin turned the pod away first.
    """
    order = profile.before_nodes or tuple(plugin.name for plugin in profile.filters)
    asked = order
    turned_away = diagnosis.turned_away
    if turned_away is not None and turned_away.last_asked in order:
        asked = order[: order.index(turned_away.last_asked) + 1]
    if DYNAMIC_RESOURCES not in asked:
        return refused(NOT_FOUND, ERROR)
    filters = [one.plugin if isinstance(one, PreFilterOnly) else one for one in profile.filters]
    plugin = next((one for one in filters if isinstance(one, DynamicResources)), None)
    demand = None if plugin is None else demand_of(pod, view)
    if plugin is None or not isinstance(demand, Demand):
        return refused(NO_CLAIMS if rules.reports_fruitless_deallocation else "")
    if (claim := _in_the_way(plugin, demand, pod, view, diagnosis)) is not None:
        return replace(refused(DEALLOCATED), released=claim)
    if demand.left_over is not None:
        return replace(refused(DELETED), released=demand.left_over)
    return refused(STILL_NOT if rules.reports_fruitless_deallocation else "")


def _in_the_way(
    plugin: DynamicResources, demand: Demand, pod: PodClass, view: View, diagnosis: Diagnosis
) -> ResourceClaim | None:
    rows = [
        view.absolute(row)
        for one in diagnosis.rejections
        if one.plugin == DYNAMIC_RESOURCES and one.text == NOT_AVAILABLE
        for row in np.flatnonzero(one.rows).tolist()
    ]
    if not rows:
        return None
    return deallocatable(RowJudge(plugin.searching, demand, view), rows, pod.pod.metadata.uid)
