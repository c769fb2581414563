"""Preemption with extenders: why a pod fits nowhere with what they refused, and all nodes where evictions make room.

Nothing is cached: what extenders say is true of one pod at one moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from situate.core.place.diagnosis import Diagnosis, Rejection
from situate.core.place.filtering import Filtered
from situate.core.place.profile import Profile
from situate.core.preempt.budgets import Budgets
from situate.core.preempt.eviction_effects import ask, filter_effects, with_nominations
from situate.core.preempt.fit_failure import FitFailure
from situate.core.preempt.lower_priority import LowerPods
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.post_filter import DYNAMIC_RESOURCES, NO_CLAIMS, post_filter
from situate.core.preempt.post_filter_result import refused
from situate.core.preempt.preemption import PreemptionInputs
from situate.core.preempt.ranking import Candidate, harm
from situate.core.preempt.trial import prepare
from situate.core.preempt.victims import victims_on
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View

EXTENDER: Final = "Extender"
"""Stands for all extenders among the plugins that refused a pod."""
MOST_TEXTS: Final = 16
"""How many distinct reasons of extenders a message may have."""
OTHER_REASONS: Final = "node(s) were refused by an extender for other reasons"
NO_CANDIDATE: Final = "preemption: no candidate node for preemption"


@dataclass(frozen=True, slots=True)
class ExtenderRejection:
    row: int
    text: str
    eviction_helps: bool


@dataclass(frozen=True, slots=True)
class PreemptionContext:
    profile: Profile
    pod: PodClass
    view: View
    options: PreemptionOptions
    known: PreemptionInputs
    nominated_node: str = ""


def with_extender_rejections(
    found: FitFailure, rejections: Sequence[ExtenderRejection], context: PreemptionContext
) -> FitFailure:
    """Why the pod fits nowhere, with what extenders refused, and which evictions help."""
    if found.filtered.failed is not None or not rejections:
        return found
    filtered, diagnosis = _as_a_filter(found.filtered, found.diagnosis, rejections)
    if filtered.feasible.any():
        return FitFailure(filtered, diagnosis, None, diagnosis.message())
    return _with_post_filter(filtered, diagnosis, context)


def restricted_to(found: FitFailure, only: Mask, context: PreemptionContext) -> FitFailure:
    """The same, with evictions at these rows only."""
    if found.post_filter is None or found.post_filter.node_row is None:
        return found
    if not only.any():
        diagnosis = found.diagnosis
        if EXTENDER not in diagnosis.plugins:
            diagnosis = replace(diagnosis, plugins=(*diagnosis.plugins, EXTENDER))
        message = f"{NO_CLAIMS}, {NO_CANDIDATE}" if DYNAMIC_RESOURCES in context.profile.post_filters else NO_CANDIDATE
        return FitFailure(found.filtered, diagnosis, refused(message), diagnosis.message(message))
    helps = found.diagnosis.eviction_helps & only
    return _with_post_filter(found.filtered, replace(found.diagnosis, eviction_helps=helps), context)


def _with_post_filter(filtered: Filtered, diagnosis: Diagnosis, context: PreemptionContext) -> FitFailure:
    result = post_filter(
        context.profile,
        context.pod,
        context.view,
        diagnosis,
        context.options,
        nominated_node=context.nominated_node,
        known=context.known,
    )
    return FitFailure(filtered, diagnosis, result, diagnosis.message(result.message))


def _as_a_filter(
    filtered: Filtered, diagnosis: Diagnosis, rejections: Sequence[ExtenderRejection]
) -> tuple[Filtered, Diagnosis]:
    """The verdicts as if the extenders were the last filter."""
    by_text: dict[str, Mask] = {}
    feasible, helps = filtered.feasible.copy(), diagnosis.eviction_helps.copy()
    for one in rejections:
        if filtered.feasible[one.row]:
            text = one.text if one.text in by_text or len(by_text) < MOST_TEXTS else OTHER_REASONS
            by_text.setdefault(text, np.zeros(len(feasible), np.bool_))[one.row] = True
            feasible[one.row] = False
            helps[one.row] = one.eviction_helps
    if not by_text:
        return filtered, diagnosis
    added = tuple(Rejection(EXTENDER, text, rows) for text, rows in by_text.items())
    return replace(filtered, feasible=feasible), replace(
        diagnosis,
        rejections=(*diagnosis.rejections, *added),
        eviction_helps=helps,
        plugins=(*diagnosis.plugins, EXTENDER),
    )


def candidates(diagnosis: Diagnosis, context: PreemptionContext) -> list[Candidate]:
    """All nodes where evictions make room, up to as many as are wanted; the least harmful first."""
    pod, view, nominated = context.pod, context.view, context.known.nominated
    lower, budgets = LowerPods(view, pod.priority), Budgets.of(view)
    asked = with_nominations(ask(context.profile, pod, view), pod, nominated)
    trial = prepare(filter_effects(asked, pod), pod, view, lower, nominated)
    rows = np.flatnonzero(diagnosis.eviction_helps)
    wanted = context.options.wanted_candidates(len(rows))
    found: list[Candidate] = []
    for row in rows[(lower.counts[rows] > 0) & ~trial.unresolvable[rows]].tolist():
        outcome = victims_on(trial, budgets, row)
        if not isinstance(outcome, Candidate) or not outcome.victims:
            continue
        if not outcome.violations or not context.options.never_break_budgets:
            found.append(outcome)
        if len(found) >= wanted and any(not one.violations for one in found):
            break
    return sorted(found, key=harm)
