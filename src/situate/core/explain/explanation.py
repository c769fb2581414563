"""The explanation of one pod: a one-line reason, every verdict, the scores, the events that retry it, suggestions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

import numpy as np

from situate.core.contract import Wake
from situate.core.devices.template_claims import NO_TEMPLATES, Templates, with_template_claims
from situate.core.engine.decision import Decision, decide
from situate.core.engine.framework import Framework
from situate.core.explain.detail import NAMED, VerdictDetail
from situate.core.explain.details import details_of
from situate.core.explain.edits import without_gates
from situate.core.explain.provisioning import unmade_claims, waiting_claims
from situate.core.explain.search import SearchContext, make_claims_action, search_suggestions, ungate_action
from situate.core.explain.suggestions import Suggestion
from situate.core.explain.verdicts import PluginVerdict, Verdicts, verdicts
from situate.core.explain.whatif import WhatIf
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.place.scoring import Scored
from situate.core.plugins.scheduling_gates import SchedulingGates
from situate.core.plugins.support.claim_changes import ClaimChange, change_claim, released_devices
from situate.core.state.classes import PodClass
from situate.core.state.cluster import FINISHED_PHASES, Cluster
from situate.core.state.columns import Mask
from situate.core.state.view import View

MAX_SCORED_NODES: Final = 10
"""How many feasible nodes are listed with their scores."""


@unique
class SchedulingState(Enum):
    """The pod's scheduling state."""

    UNSCHEDULABLE = "unschedulable"
    SCHEDULABLE = "schedulable"
    """Pending, and a node fits."""
    BOUND = "bound"
    GATED = "gated"
    LEAVING = "leaving"
    FINISHED = "finished"


WAITING_STATES: Final = (SchedulingState.UNSCHEDULABLE, SchedulingState.GATED, SchedulingState.SCHEDULABLE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One reason of one plugin on some nodes, with details."""

    plugin: str
    text: str
    count: int
    first: int
    """On how many of them this plugin is the first to refuse, as kube-scheduler counts."""
    eviction_helps: int
    """On how many of them preemption could help."""
    nodes: tuple[str, ...]
    details: tuple[VerdictDetail, ...]
    of_pod: bool


@dataclass(frozen=True, slots=True)
class NodeScores:
    """A feasible node: its weighted scores by plugin, and their sum."""

    node: str
    total: int
    plugins: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """One node in full: the verdict of every plugin that refuses it, or its scores."""

    node: str
    verdicts: tuple[Verdict, ...]
    silent: tuple[str, ...]
    """The filters that accept the node."""
    scores: NodeScores | None


@dataclass(frozen=True, slots=True)
class Preemption:
    """The preemption that the scheduler would carry out."""

    node: str
    victims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    pod: Pod
    state: SchedulingState
    profile: str
    """The scheduler name of the profile used."""
    message: str
    """One line; for an unschedulable pod, the text of kube-scheduler's FailedScheduling event."""
    node_count: int
    feasible: int
    node: str
    """The pod's node, or the node that would be chosen now; empty if none."""
    rank: int
    """The rank of its node among the feasible ones, from 1; 0 if it is unbound or would not fit there today."""
    verdicts: tuple[Verdict, ...]
    scores: tuple[NodeScores, ...]
    """The best nodes, best first."""
    preemption: Preemption | None
    wakes: tuple[tuple[str, tuple[str, ...]], ...]
    """The kinds of events that would retry the pod, and the plugins that wait for each."""
    suggestions: tuple[Suggestion, ...]
    one: NodeExplanation | None = None
    waiting_claims: tuple[str, ...] = ()
    """Claims of a pending pod that somebody has to provide volumes for, and who."""


def explain(
    cluster: Cluster,
    framework: Framework,
    pod: Pod,
    *,
    node: str = "",
    suggestions: bool = True,
    templates: Templates = NO_TEMPLATES,
) -> Explanation:
    """Explain a pod of this cluster. `node`: a node to report in full. Without `suggestions`, nothing is tried.

    `templates` are those of claims, as far as they are known.
    """
    key = key_of(pod.metadata)
    bound = cluster.node_of(key)
    released: list[ClaimChange] = []
    if bound:
        cluster.remove_pod(key)  # or it would conflict with itself
        released = released_devices(cluster, pod)
        for change in released:
            change_claim(cluster, change)
    try:
        return _account(cluster, framework, pod, bound, node, suggestions, templates)
    finally:
        for before, after in reversed(released):
            change_claim(cluster, (after, before))
        if bound:
            cluster.add_pod(pod)


def _account(
    cluster: Cluster,
    framework: Framework,
    pod: Pod,
    bound: str,
    node: str,
    suggestions: bool,
    templates: Templates,
) -> Explanation:
    asked = without_gates(pod)
    kind = cluster.class_of(asked)
    view = View(cluster)
    decision = decide(framework, kind, view, nominated_node=pod.status.nominated_node_name)
    collected = verdicts(framework.profile, kind, view)
    state = _state(pod, bound, decision)
    best = _best(decision, view)
    searched = suggestions and state in (SchedulingState.UNSCHEDULABLE, SchedulingState.GATED) and view.node_count > 0
    return Explanation(
        pod=pod,
        state=state,
        profile=framework.profile.scheduler_name,
        message=_message(pod, state, bound, decision, view, best),
        node_count=view.node_count,
        feasible=int(np.count_nonzero(decision.filtered.feasible)),
        node=bound or ("" if decision.chosen is None else view.names[decision.chosen]),
        rank=_rank(decision, view, bound),
        verdicts=tuple(_verdicts(framework, kind, view, collected)),
        scores=best,
        preemption=_preempts(decision, view),
        wakes=_wakes(framework, decision) if state is SchedulingState.UNSCHEDULABLE else (),
        suggestions=_suggestions(SearchContext(framework.profile, view, asked, kind, collected), pod, templates)
        if searched
        else (),
        one=_explain_node(framework, kind, view, collected, decision, node) if node else None,
        waiting_claims=(*waiting_claims(kind, view.storage), *unmade_claims(pod, templates))
        if state in WAITING_STATES
        else (),
    )


def _state(pod: Pod, bound: str, decision: Decision) -> SchedulingState:
    if pod.status.phase in FINISHED_PHASES:
        return SchedulingState.FINISHED
    if bound or pod.spec.node_name:
        return SchedulingState.BOUND
    if pod.metadata.deletion_timestamp is not None:
        return SchedulingState.LEAVING
    if pod.spec.scheduling_gates:
        return SchedulingState.GATED
    return SchedulingState.UNSCHEDULABLE if decision.chosen is None else SchedulingState.SCHEDULABLE


# -- in one line -----------------------------------------------------------------------------------------------------


def _message(
    pod: Pod, state: SchedulingState, bound: str, decision: Decision, view: View, best: tuple[NodeScores, ...]
) -> str:
    match state:
        case SchedulingState.GATED:
            gated = SchedulingGates().admit(pod.spec)
            return "" if gated is None else gated.text
        case SchedulingState.LEAVING:
            return f"skip schedule deleting pod: {key_of(pod.metadata)}"
        case SchedulingState.FINISHED:
            return f"finished ({pod.status.phase}), and uses no resources"
        case SchedulingState.BOUND:
            return _why_there(pod, bound, decision, view, best)
        case SchedulingState.SCHEDULABLE:
            count = int(np.count_nonzero(decision.filtered.feasible))
            return f"{count}/{view.node_count} nodes are available: {best[0].node} is best"
        case SchedulingState.UNSCHEDULABLE:
            return decision.message


def _why_there(pod: Pod, bound: str, decision: Decision, view: View, best: tuple[NodeScores, ...]) -> str:
    if not bound:
        return f"bound to {pod.spec.node_name}, which does not exist"
    feasible = int(np.count_nonzero(decision.filtered.feasible))
    rank = _rank(decision, view, bound)
    text = f"bound to {bound}, "
    if not rank:
        return text + f"which would refuse it now; {feasible} of {view.node_count} nodes would accept it"
    if feasible == 1:
        return text + f"the only one of {view.node_count} nodes that fits"
    text += f"rank {rank} of the {feasible} nodes of {view.node_count} that fit now"
    if best and best[0].node != bound and rank > 1:
        return text + f"; the best is {best[0].node}"
    return text


def _rank(decision: Decision, view: View, bound: str) -> int:
    """Nodes with the same score share a rank."""
    row = view.find(bound) if bound else -1
    if row < 0 or decision.scored is None or not decision.filtered.feasible[row]:
        return 0
    total = decision.scored.total
    return 1 + int(np.count_nonzero(total[decision.filtered.feasible] > total[row]))


def _best(decision: Decision, view: View) -> tuple[NodeScores, ...]:
    if decision.scored is None:
        return ()
    rows = np.flatnonzero(decision.filtered.feasible)
    order = rows[np.argsort(-decision.scored.total[rows], kind="stable")][:MAX_SCORED_NODES]
    return tuple(_scores(decision.scored, view, int(row)) for row in order.tolist())


def _scores(scored: Scored, view: View, row: int) -> NodeScores:
    plugins = {name: int(column[row]) for name, column in scored.by_plugin.items()}
    return NodeScores(view.names[row], int(scored.total[row]), plugins)


# -- every verdict ---------------------------------------------------------------------------------------------------


def _verdicts(framework: Framework, kind: PodClass, view: View, found: Verdicts) -> list[Verdict]:
    reported = []
    left = view.present.copy()
    for plugin, refused in found.refused_by.items():
        for verdict in found.verdicts:
            if verdict.plugin == plugin:
                first = int(np.count_nonzero(verdict.rows & left))
                reported.append(_verdict(framework, kind, view, verdict, verdict.rows, first))
        left &= ~refused
    return reported


def _verdict(
    framework: Framework, kind: PodClass, view: View, verdict: PluginVerdict, where: Mask, first: int
) -> Verdict:
    """The verdict on some of its rows. One that rejects the whole pod has details only for a single node."""
    rows = np.flatnonzero(where)
    detailed = not verdict.of_pod or verdict.plugin == "NodeAffinity" or where is not verdict.rows
    return Verdict(
        plugin=verdict.plugin,
        text=verdict.text,
        count=len(rows),
        first=first,
        eviction_helps=int(np.count_nonzero(verdict.helps & where)),
        nodes=tuple(view.names[row] for row in rows[:NAMED].tolist()),
        details=details_of(framework.profile, kind, view, verdict, where) if detailed else (),
        of_pod=verdict.of_pod,
    )


def _explain_node(
    framework: Framework, kind: PodClass, view: View, found: Verdicts, decision: Decision, node: str
) -> NodeExplanation | None:
    row = view.find(node)
    if row < 0:
        return None
    only = np.zeros(view.size, np.bool_)
    only[row] = True
    reported = [_verdict(framework, kind, view, verdict, only, 0) for verdict in found.at(row)]
    refusing = {one.plugin: None for one in reported}
    silent = tuple(plugin.name for plugin in framework.profile.filters if plugin.name not in refusing)
    fits = decision.scored is not None and bool(decision.filtered.feasible[row])
    scores = _scores(decision.scored, view, row) if decision.scored is not None and fits else None
    return NodeExplanation(node, tuple(reported), silent, scores)


# -- what would change it --------------------------------------------------------------------------------------------


def _preempts(decision: Decision, view: View) -> Preemption | None:
    remedy = decision.post_filter
    if remedy is None or remedy.node_row is None:
        return None
    return Preemption(view.names[remedy.node_row], tuple(sorted(victim.key for victim in remedy.victims)))


def _wakes(framework: Framework, decision: Decision) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The events that the refusing filters wait for, as in the queue."""
    waiting: dict[Wake, list[str]] = {}
    for plugin in framework.profile.filters:
        if plugin.name in decision.diagnosis.plugins:
            for wake in sorted(plugin.wakes_on, key=lambda one: one.value):
                waiting.setdefault(wake, []).append(plugin.name)
    return tuple((wake.value, tuple(names)) for wake, names in waiting.items())


def _suggestions(context: SearchContext, pod: Pod, templates: Templates) -> tuple[Suggestion, ...]:
    """What is needed in any case, and what else. Claims that are not made yet are there while others are tried."""
    cluster = context.view.cluster
    required = [ungate_action(pod)] if pod.spec.scheduling_gates else []
    asked, made = with_template_claims(context.pod, templates, cluster.objects.devices.claims)
    if made:
        required.append(make_claims_action(pod, [claim.metadata.name for claim in made]))
    if not required:
        return search_suggestions(context)
    new = tuple((None, claim) for claim in made)
    enough = WhatIf(cluster, context.profile).checked(Suggestion(tuple(required), asked, claims=new))
    if enough is not None:
        return (enough,)
    for change in new:
        change_claim(cluster, change)
    try:
        kind, view = cluster.class_of(asked), View(cluster)
        found = verdicts(context.profile, kind, view)
        return search_suggestions(SearchContext(context.profile, view, asked, kind, found, tuple(required), new))
    finally:
        for before, after in new:
            change_claim(cluster, (after, before))
