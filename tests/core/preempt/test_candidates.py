"""The search for room, where many nodes are looked at in one go, against one that tries node after node."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from builders import node, pod, selector
from situate.core.engine.framework import default_framework
from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import run_filters
from situate.core.preempt import PreemptionOptions
from situate.core.preempt.budgets import Budgets
from situate.core.preempt.candidates import Search, search
from situate.core.preempt.eviction_effects import ask, filter_effects
from situate.core.preempt.lower_priority import LowerPods
from situate.core.preempt.ranking import Candidate, least_harmful
from situate.core.preempt.reprieve import reprieved
from situate.core.preempt.trial import Trial, prepare
from situate.core.preempt.victims import victims_on
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

PROFILE = default_framework().profile
STARTS = (None, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-02T00:00:00Z")


def bound(draw: st.DrawFn, name: str, where: int, milli_cpu: int) -> Any:
    return pod(
        name,
        node_name=f"n{where}",
        labels={"app": draw(st.sampled_from(("web", "web", "db")))},
        priority=draw(st.sampled_from((-5, 0, 0, 5, 200))),
        cpu=f"{milli_cpu}m",
        memory=draw(st.sampled_from(("64Mi", "1Gi"))),
        start_time=draw(st.sampled_from(STARTS)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Full nodes with few and with many pods, some of them equally important; now and then a budget."""
    cluster = Cluster()
    for at in range(draw(st.integers(1, 8))):
        cluster.add_node(node(f"n{at}", cpu="4", memory="4Gi", pods="30"))
        left = 4_000
        for which in range(draw(st.sampled_from((0, 1, 3, 6, 16)))):
            cpu = draw(st.sampled_from((100, 250, 1_000)))
            left -= cpu
            cluster.add_pod(bound(draw, f"b{at}-{which}", at, cpu))
        cluster.add_pod(bound(draw, f"b{at}", at, max(left, 0)))
    if draw(st.integers(0, 2)) == 0:
        status = PodDisruptionBudgetStatus(disruptions_allowed=draw(st.integers(0, 1)))
        spec = PodDisruptionBudgetSpec(selector=selector(app="db"))
        meta = ObjectMeta(name="budget", namespace="default")
        cluster.put_object(PodDisruptionBudget(metadata=meta, spec=spec, status=status))
    return cluster


OPTIONS = st.builds(PreemptionOptions, st.sampled_from((0, 50, 100)), st.integers(0, 4), st.booleans())
WAITING = st.builds(
    pod,
    st.just("waiting"),
    priority=st.sampled_from((3, 100)),
    cpu=st.sampled_from(("500m", "2", "3")),
    memory=st.sampled_from(("1Gi", "3Gi")),
)


def trial_of(cluster: Cluster, waiting: Any) -> tuple[Trial, Any]:
    view, kind = View(cluster), cluster.class_of(waiting)
    filtered = run_filters(PROFILE, kind, view)
    assume(not filtered.feasible.any())
    asked = filter_effects(ask(PROFILE, kind, view), kind)
    trial = prepare(asked, kind, view, LowerPods(view, kind.priority))
    return trial, diagnose(PROFILE, kind, view, filtered)


def one_by_one(trial: Trial, rows: list[int], options: PreemptionOptions, offset: int) -> Candidate | None:
    """Kubernetes' way: in order, from the offset on, until there are enough candidates and one keeps the budgets."""
    wanted = options.wanted_candidates(len(rows))
    keeping: list[Candidate] = []
    breaking: list[Candidate] = []
    for at in range(len(rows)):
        row = rows[(offset + at) % len(rows)]
        if trial.unresolvable[row] or not trial.lower.counts[row]:
            continue
        outcome = victims_on(trial, Budgets(trial.view.budgets), row)
        if not isinstance(outcome, Candidate):
            continue
        if not outcome.violations:
            keeping.append(outcome)
        elif not options.never_break_budgets and len(breaking) < wanted:
            breaking.append(outcome)
        if keeping and len(keeping) + len(breaking) >= wanted:
            break
    return least_harmful(keeping + breaking) if keeping or breaking else None


@settings(max_examples=150)
@given(clusters(), WAITING, OPTIONS, st.integers(0, 9))
def test_looking_at_many_nodes_in_one_go_finds_what_trying_them_one_by_one_finds(
    cluster: Cluster, waiting: Any, options: PreemptionOptions, offset: int
) -> None:
    trial, diagnosis = trial_of(cluster, waiting)
    rows = np.flatnonzero(diagnosis.eviction_helps).tolist()
    assume(rows)
    found = search(trial, diagnosis, Budgets(trial.view.budgets), options, offset)
    assert found.best == one_by_one(trial, rows, options, offset)


@settings(max_examples=100)
@given(clusters(), WAITING)
def test_on_any_node_the_victims_are_the_same_and_the_least_harmful_is_found(cluster: Cluster, waiting: Any) -> None:
    trial, diagnosis = trial_of(cluster, waiting)
    budgets = Budgets(trial.view.budgets)
    rows = np.flatnonzero(diagnosis.eviction_helps & ~trial.unresolvable & (trial.lower.counts > 0))
    assume(len(rows))
    each = [victims_on(trial, budgets, row) for row in rows.tolist()]
    candidates = [one for one in each if isinstance(one, Candidate)]
    assert len(candidates) == len(each), "nothing but room and budgets matters here"
    found = reprieved(trial.lower, budgets, rows, trial.room_on(rows))
    assert found.violations.tolist() == [one.violations for one in candidates]
    for at, one in enumerate(candidates):
        protected, others = budgets.split(trial.lower.on(one.row))
        places = np.flatnonzero(found.victims[:, at]).tolist()
        assert sorted([*protected, *others][place] for place in places) == sorted(one.victims)
    assert found.least_harmful() == least_harmful(candidates).row


def searched(cluster: Cluster, waiting: Any, refused: list[int]) -> Search:
    """A search on nodes that somebody says he would take the pod on, once others are gone."""
    view, kind = View(cluster), cluster.class_of(waiting)
    filtered = run_filters(PROFILE, kind, view)
    diagnosis = diagnose(PROFILE, kind, view, filtered)
    diagnosis.eviction_helps[refused] = True
    trial = prepare(filter_effects(ask(PROFILE, kind, view), kind), kind, view, LowerPods(view, kind.priority))
    return search(trial, diagnosis, Budgets(()), PreemptionOptions(), 0)


@pytest.mark.parametrize(
    "full,best", [pytest.param(True, 1, id="another node is full"), pytest.param(False, None, id="no node is")]
)
def test_a_node_where_everybody_could_stay_is_no_candidate(full: bool, best: int | None) -> None:
    cluster = Cluster()
    for at, cpu in enumerate(("1", "4" if full else "1")):
        cluster.add_node(node(f"n{at}", cpu="4", pods="10"))
        cluster.add_pod(pod(f"b{at}", node_name=f"n{at}", cpu=cpu, priority=0))
    found = searched(cluster, pod("waiting", cpu="2", priority=10), [0] if full else [0, 1])
    assert (None if found.best is None else found.best.row) == best
    assert found.contradictory == ([0] if full else [0, 1])
