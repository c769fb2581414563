"""Preemption against a plain twin: every node tried, every filter asked about the whole cluster at each step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from builders import node, pod, selector
from situate.core.engine.framework import default_framework
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.place.diagnosis import NodeRefusal, diagnose
from situate.core.place.filtering import run_filters
from situate.core.preempt import FitFailureFinder, NominatedPods, PostFilterResult, PreemptionOptions, preempt
from situate.core.preempt.lower_priority import LowerTables, freed
from situate.core.state.classes import CPU, PODS, PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

PROFILE = default_framework().profile
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

# -- clusters --------------------------------------------------------------------------------------------------------

APPS = st.sampled_from(("web", "db"))
PRIORITIES = st.sampled_from((0, 0, 5, 10, 200))


@st.composite
def constraints(draw: st.DrawFn, *, often: bool) -> dict[str, Any]:
    """Terms and spreading, so that evictions help and hurt beyond room."""
    fields: dict[str, Any] = {}
    kind = draw(st.sampled_from(("near", "apart", "spread", *(("",) if often else ("", "", "", "")))))
    key = draw(st.sampled_from((HOST, ZONE)))
    chosen = selector(app=draw(APPS))
    term = (PodAffinityTerm(label_selector=chosen, topology_key=key),)
    side = PodAffinity(required_during_scheduling_ignored_during_execution=term)
    if kind == "near":
        fields["affinity"] = Affinity(pod_affinity=side)
    elif kind == "apart":
        fields["affinity"] = Affinity(pod_anti_affinity=side)
    elif kind == "spread":
        spread = TopologySpreadConstraint(
            max_skew=1, topology_key=key, when_unsatisfiable="DoNotSchedule", label_selector=chosen
        )
        fields["topology_spread_constraints"] = (spread,)
    return fields


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    cluster = Cluster()
    nodes = draw(st.integers(1, 4))
    for at in range(nodes):
        labels = {HOST: f"n{at}", ZONE: f"z{at % 2}"} if draw(st.integers(0, 9)) else {}
        room = {"cpu": str(draw(st.integers(2, 4))), "pods": str(draw(st.integers(2, 9)))}
        cluster.add_node(node(f"n{at}", labels=labels, unschedulable=draw(st.integers(0, 9)) == 0, **room))
    for at in range(draw(st.integers(0, nodes * 4))):
        cluster.add_pod(
            pod(
                f"b{at}",
                node_name=f"n{draw(st.integers(0, nodes - 1))}",
                labels={"app": draw(APPS)},
                priority=draw(PRIORITIES),
                cpu=draw(st.sampled_from(("250m", "500m", "1", "2"))),
                start_time=draw(st.sampled_from((None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))),
                deletion_timestamp="2026-01-10T00:00:00Z" if draw(st.integers(0, 9)) == 0 else None,
                **draw(constraints(often=False)),
            )
        )
    for at in range(draw(st.integers(0, 2))):
        status = PodDisruptionBudgetStatus(
            disruptions_allowed=draw(st.integers(0, 2)), disrupted_pods={f"b{draw(st.integers(0, 9))}": None}
        )
        spec = PodDisruptionBudgetSpec(selector=selector(app=draw(APPS)))
        meta = ObjectMeta(name=f"budget{at}", namespace="default")
        cluster.put_object(PodDisruptionBudget(metadata=meta, spec=spec, status=status))
    return cluster


@st.composite
def preemptors(draw: st.DrawFn) -> Any:
    return pod(
        "waiting",
        labels={"app": draw(APPS)},
        priority=draw(st.sampled_from((8, 100))),
        cpu=draw(st.sampled_from(("500m", "1", "2", "3"))),
        **draw(constraints(often=True)),
    )


# -- the twin --------------------------------------------------------------------------------------------------------


@dataclass
class Found:
    row: int
    victims: list[BoundPod]
    violations: int


Beside = Mapping[int, Sequence[PodClass]]
"""Who was promised which row."""


def refusal(kind: PodClass, view: View, row: int, beside: Beside) -> NodeRefusal | None:
    """Why the node refuses the pod beside those who were promised it, or else without them; None if it fits."""
    nominated = [(other, row) for other in beside.get(row, ())]
    for overlay in (view.plus(nominated), view):
        filtered = run_filters(PROFILE, kind, overlay)
        if not filtered.feasible[row]:
            return diagnose(PROFILE, kind, overlay, filtered).refusals[row]
    return None


def start(pod_: BoundPod) -> float:
    return float("inf") if pod_.start_ms is None else pod_.start_ms


def protected(pods: Sequence[BoundPod], view: View) -> list[BoundPod]:
    allowed = [budget.status.disruptions_allowed for budget in view.budgets]
    found = []
    for each in pods:
        for at, budget in enumerate(view.budgets):
            chosen = budget.spec.selector
            if chosen is None or each.name in budget.status.disrupted_pods:
                continue
            if chosen.match_labels["app"] == each.kind.labels["app"]:
                allowed[at] -= 1
                if allowed[at] < 0 and each not in found:
                    found.append(each)
    return found


def tried(kind: PodClass, view: View, row: int, beside: Beside) -> Found | tuple[str, ...]:
    lower = [each for each in view.pods_on(row) if each.kind.priority < kind.priority]
    if not lower:
        return ("No preemption victims found for incoming pod",)
    refused = refusal(kind, view.without(lower), row, beside)
    if refused is not None:
        return refused.reasons
    arrived = {each.row: at for at, each in enumerate(lower)}
    for each in lower:
        arrived[each.row] *= -1 if each.start_ms is None else 1
    lower.sort(key=lambda each: (-each.kind.priority, start(each), arrived[each.row]))
    first = protected(lower, view)
    kept: list[BoundPod] = []
    victims: list[BoundPod] = []
    for each in (*first, *(other for other in lower if other not in first)):
        gone = [other for other in lower if other not in (*kept, each)]
        (kept if refusal(kind, view.without(gone), row, beside) is None else victims).append(each)
    return Found(row, victims, sum(each in first for each in victims))


def best(candidates: list[Found]) -> Found:
    """Kubernetes' steps one by one: each leaves the best of those before."""
    highest = {id(one): max(each.kind.priority for each in one.victims) for one in candidates}
    for worse in (
        lambda one: one.violations,
        lambda one: highest[id(one)],
        lambda one: sum(each.kind.priority + 2**31 for each in one.victims),
        lambda one: len(one.victims),
        lambda one: -min(start(each) for each in one.victims if each.kind.priority == highest[id(one)]),
    ):
        least = min(map(worse, candidates))
        candidates = [one for one in candidates if worse(one) == least]
    return candidates[0]


def twin(
    kind: PodClass, view: View, refusals: Mapping[int, NodeRefusal], beside: Beside
) -> tuple[int | None, list[str], str]:
    told: dict[str, int] = {}
    candidates = []
    for row in range(view.size):
        reasons: tuple[str, ...] = ("Preemption is not helpful for scheduling",)
        if refusals[row].code == "Unschedulable":
            outcome = tried(kind, view, row, beside)
            if isinstance(outcome, Found):
                candidates.append(outcome)
                continue
            reasons = outcome
        for reason in reasons:
            told[reason] = told.get(reason, 0) + 1
    if candidates:
        chosen = best(candidates)
        return chosen.row, sorted(each.key for each in chosen.victims if not each.leaving), ""
    counted = ", ".join(sorted(f"{count} {reason}" for reason, count in told.items()))
    return None, [], f"preemption: 0/{view.size} nodes are available: {counted}."


# -- they agree ------------------------------------------------------------------------------------------------------


@settings(max_examples=250)
@given(clusters(), preemptors())
def test_preemption_and_its_plain_twin_agree(cluster: Cluster, waiting: Any) -> None:
    kind, view = cluster.class_of(waiting), View(cluster)
    filtered = run_filters(PROFILE, kind, view)
    assume(not filtered.feasible.any())
    diagnosis = diagnose(PROFILE, kind, view, filtered)
    result = preempt(PROFILE, kind, view, diagnosis, PreemptionOptions())
    assert shown(result) == twin(kind, view, diagnosis.refusals, {})


def shown(result: PostFilterResult) -> tuple[int | None, list[str], str]:
    return result.node_row, [each.key for each in result.victims], result.message


@settings(max_examples=250)
@given(clusters(), preemptors(), st.lists(st.tuples(preemptors(), st.integers(0, 3)), min_size=1, max_size=4))
def test_beside_pods_that_were_promised_nodes_they_agree_too(
    cluster: Cluster, waiting: Any, nominees: list[tuple[Any, int]]
) -> None:
    """Each node is looked at with those who were promised it, and with nobody who was promised another."""
    view = View(cluster)
    kind = cluster.class_of(waiting)
    nominated, beside = NominatedPods(view.size), dict[int, list[PodClass]]()
    for nominee, where in nominees:
        other = cluster.class_of(nominee)
        nominated.add(other, where % view.size)
        beside.setdefault(where % view.size, []).append(other)
    found = [refusal(kind, view, row, beside) for row in range(view.size)]
    refusals = {row: one for row, one in enumerate(found) if one is not None}
    profile = replace(PROFILE, post_filters=("DefaultPreemption",))
    answer = FitFailureFinder(cluster, profile, PreemptionOptions(), LowerTables(cluster)).find(kind, nominated)
    assert answer.filtered.feasible.tolist() == [row not in refusals for row in range(view.size)]
    assert answer.diagnosis.refusals == refusals
    if len(refusals) == view.size:
        assert answer.post_filter is not None
        assert shown(answer.post_filter) == twin(kind, view, refusals, beside)
    else:
        assert answer.post_filter is None


@settings(max_examples=50)
@given(clusters(), st.integers(-1, 201), st.lists(st.integers(0, 15), max_size=3))
def test_what_is_freed_is_what_the_pods_of_lower_priority_take(
    cluster: Cluster, priority: int, gone: list[int]
) -> None:
    names = {f"b{at}" for at in gone}
    base = View(cluster)
    every = [each for row in range(base.size) for each in base.pods_on(row)]
    view = base.without([each for each in every if each.name in names])
    expected = {CPU: np.zeros(view.size, np.int64), PODS: np.zeros(view.size, np.int64)}
    for row in range(view.size):
        for each in view.pods_on(row):
            if each.kind.priority < priority:
                expected[CPU][row] += each.kind.requests.milli_cpu
                expected[PODS][row] += 1
    found = freed(view, priority, (CPU, PODS))
    assert {column: amounts.tolist() for column, amounts in found.items()} == {
        column: amounts.tolist() for column, amounts in expected.items()
    }
