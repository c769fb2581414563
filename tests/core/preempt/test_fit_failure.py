"""What is remembered between pods that fit nowhere is what would be found afresh."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, selector
from situate.core.engine.framework import default_framework
from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.place.filtering import run_filters
from situate.core.preempt import FitFailureFinder, NominatedPods, PostFilterResult, PreemptionOptions, fit_failure
from situate.core.preempt.fit_failure import FitFailure
from situate.core.preempt.lower_priority import LowerTables
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

PROFILE = default_framework().profile


def made(cluster: Cluster, options: PreemptionOptions | None = None) -> FitFailureFinder:
    return FitFailureFinder(cluster, PROFILE, options or PreemptionOptions(), LowerTables(cluster))


def cluster_of(nodes: int, *pods: Any) -> Cluster:
    cluster = Cluster()
    for at in range(nodes):
        cluster.add_node(node(f"n{at}", cpu="4", memory="64Gi", pods="110"))
    for each in pods:
        cluster.add_pod(each)
    return cluster


def budget(allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="budget", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=selector(app="db")),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def told(found: FitFailure) -> tuple[Any, ...]:
    return (
        found.message,
        found.post_filter,
        found.filtered.feasible.tolist(),
        found.diagnosis.plugins,
        found.diagnosis.refusals,
        found.diagnosis.eviction_helps.tolist(),
    )


MOVES = st.lists(
    st.tuples(
        st.sampled_from(("add", "add", "remove", "node", "budget", "ask", "ask", "ask", "promise", "keep")),
        st.integers(0, 5),
        st.integers(0, 3),
        st.sampled_from((0, 5, 10)),
        st.sampled_from(("1", "2", "4")),
    ),
    max_size=25,
)


@settings(max_examples=80)
@given(MOVES, st.booleans())
def test_the_answer_is_the_same_as_one_found_afresh(moves: list[tuple[str, int, int, int, str]], never: bool) -> None:
    cluster = cluster_of(3)
    options = PreemptionOptions(never_break_budgets=never)
    kept = made(cluster, options)
    promises: list[tuple[int, str]] = []
    version = 0
    for what, which, where, priority, cpu in moves:
        match what:
            case "add":
                labels = {"app": "db" if which % 2 else "web"}
                each = pod(f"p{which}", node_name=f"n{where}", cpu=cpu, priority=priority, labels=labels)
                cluster.add_pod(each)
            case "remove":
                cluster.remove_pod(f"default/p{which}")
            case "node":
                cluster.add_node(node(f"n{where}", cpu=cpu, memory="64Gi", pods="110"))
            case "budget":
                cluster.put_object(budget(which % 2))
            case "promise":
                promises.append((where % 3, cpu))
                version += 1
            case "keep":
                promises = promises[:-1]
                version += 1
            case _:
                kind = cluster.class_of(pod("waiting", cpu=cpu, priority=priority))
                nominated = NominatedPods(cluster.nodes.size)
                for row, size in promises:
                    nominated.add(cluster.class_of(pod("nominee", cpu=size, priority=10)), row)
                nominated.version = version
                assert told(kept.find(kind, nominated)) == told(made(cluster, options).find(kind, nominated))


def test_pods_of_one_class_are_told_the_same_while_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of(2)
    finder = made(cluster)
    kind = cluster.class_of(pod("waiting", cpu="9"))
    first = finder.find(kind)
    assert finder.find(kind) is first
    cluster.add_pod(pod("b", node_name="n0", cpu="1"))
    assert finder.find(kind) is not first
    monkeypatch.setattr(fit_failure, "CACHED", 1)
    second = finder.find(kind)
    finder.find(cluster.class_of(pod("waiting", cpu="8")))
    assert finder.find(kind) is not second, "only so much is remembered"


def test_a_pod_that_was_promised_a_node_is_told_that_its_victims_are_leaving() -> None:
    cluster = cluster_of(1, pod("v", uid="v", node_name="n0", cpu="4", priority=0))
    kind = cluster.class_of(pod("waiting", cpu="2", priority=10))
    waits = made(cluster).find(kind, nominated_node="n0", evicting={"v": None}).post_filter
    assert waits is not None
    assert waits.message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")
    assert not waits.withdraws
    asks = made(cluster).find(kind, nominated_node="n0").post_filter
    assert asks is not None
    assert asks.node_row == 0


@pytest.mark.parametrize(
    "bound,waiting,withdraws",
    [
        pytest.param(0, {"priority": 10, "cpu": "9"}, True, id="no eviction helps"),
        pytest.param(20, {"priority": 10, "cpu": "2"}, True, id="nobody of lower priority is there"),
        pytest.param(0, {"priority": 10, "cpu": "2", "preemption_policy": "Never"}, False, id="it does not preempt"),
    ],
)
def test_a_promise_is_withdrawn_where_preemption_was_tried_in_vain(
    bound: int, waiting: dict[str, Any], withdraws: bool
) -> None:
    cluster = cluster_of(1, pod("v", node_name="n0", cpu="4", priority=bound))
    found = made(cluster).find(cluster.class_of(pod("waiting", **waiting)), nominated_node="n0")
    assert isinstance(found.post_filter, PostFilterResult)
    assert found.post_filter.withdraws is withdraws


def test_a_pod_that_fits_needs_no_remedy() -> None:
    cluster = cluster_of(1)
    found = made(cluster).find(kind := cluster.class_of(pod("waiting", cpu="1")))
    assert found.post_filter is None
    assert found.filtered.feasible.tolist() == run_filters(PROFILE, kind, View(cluster)).feasible.tolist()
