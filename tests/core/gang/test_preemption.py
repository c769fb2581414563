"""Room for gangs: whose eviction it takes, within budgets, and tables that are kept right as victims go."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, selector
from situate.core.engine.framework import default_framework
from situate.core.gang.draft import Draft
from situate.core.gang.plan import Member, Plan, Planner
from situate.core.gang.preemption import BUDGETS_FORBID, LowerOnDraft, make_room, make_room_somewhere
from situate.core.gang.topology import domains
from situate.core.model.meta import ObjectMeta
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.preempt import PreemptionOptions
from situate.core.preempt.lower_priority import LowerPods
from situate.core.state.cluster import Cluster
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

DEFAULT = default_framework().profile
OPTIONS = PreemptionOptions()


def cluster_of(nodes: int, victims: Sequence[tuple[int, int]], **labels: Sequence[str]) -> Cluster:
    """Nodes of 4 cpu; victims of 2 cpu each by (node, priority)."""
    cluster = Cluster()
    for at in range(nodes):
        own = {key: values[at] for key, values in labels.items()}
        cluster.add_node(node(f"n{at}", cpu="4", memory="64Gi", pods="20", labels=own))
    for at, (row, priority) in enumerate(victims):
        fields: dict[str, Any] = {"labels": {"app": "v"}, "cpu": "2", "priority": priority, "node_name": f"n{row}"}
        cluster.add_pod(pod(f"v{at}", uid=f"v{at}", start_time="2026-01-01T00:00:00Z", **fields))
    return cluster


def gang(cluster: Cluster, count: int, priority: int = 10) -> list[Member]:
    kind = cluster.class_of(pod("g", cpu="2", priority=priority))
    return [Member(f"default/g{at}", kind) for at in range(count)]


def alone(victim: BoundPod, _: int) -> Sequence[BoundPod] | None:
    return (victim,)


def names(found: Plan | str) -> list[str]:
    assert isinstance(found, Plan)
    return [victim.name for victim in found.victims]


def test_the_least_important_pods_go() -> None:
    cluster = cluster_of(2, [(0, 5), (0, 1), (1, 5), (1, 1)])
    found = make_room(Planner(DEFAULT, cluster), gang(cluster, 2), 2, OPTIONS, alone)
    assert names(found) == ["v1", "v3"]


def test_pods_of_equal_priority_stay() -> None:
    cluster = cluster_of(1, [(0, 10), (0, 10)])
    found = make_room(Planner(DEFAULT, cluster), gang(cluster, 1), 1, OPTIONS, alone)
    assert isinstance(found, str)
    assert "No preemption victims found" in found


def test_free_room_is_used_before_anybody_is_evicted() -> None:
    cluster = cluster_of(2, [(0, 1), (0, 1), (1, 1)])
    found = make_room(Planner(DEFAULT, cluster), gang(cluster, 2), 2, OPTIONS, alone)
    assert len(names(found)) == 1


def test_all_who_go_with_a_victim_are_victims() -> None:
    cluster = cluster_of(2, [(0, 1), (0, 5), (1, 5), (1, 5)])

    def two_go_together(victim: BoundPod, _: int) -> Sequence[BoundPod] | None:
        return [cluster.pods.bound(cluster.pods.rows[f"default/{name}"]) for name in ("v0", "v3")]

    found = make_room(Planner(DEFAULT, cluster), gang(cluster, 2), 2, OPTIONS, two_go_together)
    assert names(found) == ["v0", "v3"]


def test_a_victim_that_must_not_go_is_not_evicted() -> None:
    cluster = cluster_of(1, [(0, 1), (0, 1)])
    assert make_room(Planner(DEFAULT, cluster), gang(cluster, 1), 1, OPTIONS, lambda *_: None) == ""


def test_budgets_are_kept_by_all_victims_together_if_they_must_be() -> None:
    cluster = cluster_of(2, [(0, 1), (0, 1), (1, 1), (1, 1)])
    meta = ObjectMeta(name="b", namespace="default")
    spec, status = PodDisruptionBudgetSpec(selector=selector(app="v")), PodDisruptionBudgetStatus(disruptions_allowed=2)
    cluster.put_object(PodDisruptionBudget(metadata=meta, spec=spec, status=status))
    strict = PreemptionOptions(never_break_budgets=True)
    assert len(names(make_room(Planner(DEFAULT, cluster), gang(cluster, 2), 2, strict, alone))) == 2
    assert make_room(Planner(DEFAULT, cluster), gang(cluster, 3), 3, strict, alone) == BUDGETS_FORBID
    assert len(names(make_room(Planner(DEFAULT, cluster), gang(cluster, 3), 3, OPTIONS, alone))) == 3


def test_of_two_domains_the_one_whose_victims_matter_less_is_taken() -> None:
    cluster = cluster_of(2, [(0, 5), (0, 5), (1, 1), (1, 1)], rack=("a", "b"))
    within = domains(View(cluster), "rack")
    found = make_room_somewhere(Planner(DEFAULT, cluster), gang(cluster, 2), 2, OPTIONS, alone, within)
    assert names(found) == ["v2", "v3"]


def test_no_domain_is_large_enough_even_with_evictions() -> None:
    cluster = cluster_of(2, [(0, 5), (0, 5), (1, 1), (1, 1)], rack=("a", "b"))
    within = domains(View(cluster), "rack")
    found = make_room_somewhere(Planner(DEFAULT, cluster), gang(cluster, 3), 3, OPTIONS, alone, within)
    assert isinstance(found, str)


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_tables_that_lose_pods_equal_fresh_ones(seed: int) -> None:
    dice = random.Random(seed)
    cluster = cluster_of(3, [(dice.randrange(3), dice.choice([0, 1, 20])) for _ in range(dice.randint(1, 8))])
    draft = Draft(cluster)
    kept = LowerOnDraft(draft.view, 10)
    kept.taken((0, 1))
    for _ in range(3):
        pods = [cluster.pods.bound(dice.choice(list(cluster.pods.rows.values()))) for _ in range(2)]
        if dice.random() < 0.7:
            kept.on(dice.randrange(3))
        kept.gone(draft.take_off(pods), draft.view)
        fresh = LowerPods(draft.view, 10)
        assert kept.counts.tolist() == fresh.counts.tolist()
        columns = (0, 1, 3)
        assert {at: one.tolist() for at, one in kept.taken(columns).items()} == {
            at: one.tolist() for at, one in fresh.taken(columns).items()
        }
        assert [kept.on(row) for row in range(3)] == [fresh.on(row) for row in range(3)]
