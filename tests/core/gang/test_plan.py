"""Plans on drafts: each pod on what those before it left, and the answers kept on a draft equal fresh ones."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, selector, taint, toleration
from situate.core.engine.framework import default_framework
from situate.core.gang.draft import Draft
from situate.core.gang.draft_verdicts import DraftVerdicts
from situate.core.gang.plan import Member, Plan, Planner, plan
from situate.core.gang.topology import domains, plan_in_one, taken
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from situate.core.model.workloads import Service, ServiceSpec
from situate.core.place.filtering import run_filters
from situate.core.place.scoring import totals
from situate.core.place.selecting import NOWHERE
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

DEFAULT = default_framework().profile
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def cluster_of(*cpus: str, **labels: Any) -> Cluster:
    cluster = Cluster()
    for at, cpu in enumerate(cpus):
        extra = {key: values[at] for key, values in labels.items() if values[at]}
        cluster.add_node(node(f"n{at}", cpu=cpu, memory="64Gi", pods="50", labels={HOST: f"n{at}", **extra}))
    return cluster


def members(cluster: Cluster, *pods: Pod) -> list[Member]:
    return [Member(f"default/{one.metadata.name}", cluster.class_of(one)) for one in pods]


def alike(count: int, **fields: Any) -> list[Pod]:
    return [pod(f"p{at}", **fields) for at in range(count)]


def near(app: str, key: str) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=selector(app=app), topology_key=key)


def required(term: PodAffinityTerm, *, anti: bool = False) -> Affinity:
    side = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return Affinity(pod_anti_affinity=side) if anti else Affinity(pod_affinity=side)


# -- plans ---------------------------------------------------------------------------------------------------------


def test_each_pod_sees_those_planned_before_it() -> None:
    cluster = cluster_of("4", "4")
    found = plan(Planner(DEFAULT, cluster), members(cluster, *alike(5, cpu="2")))
    assert sorted(found.rows) == [NOWHERE, 0, 0, 1, 1]
    assert found.count == 4


def test_planning_counts_nobody_in_the_cluster() -> None:
    cluster = cluster_of("4", "4")
    plan(Planner(DEFAULT, cluster), members(cluster, *alike(4, cpu="2")))
    assert cluster.nodes.requested[0, :2].tolist() == [0, 0]
    assert audit(cluster) == []


def test_a_pod_that_wants_to_be_near_a_later_one_is_tried_again() -> None:
    cluster = cluster_of("4", "4")
    pods = [
        pod("worker", cpu="1", labels={"app": "worker"}, affinity=required(near("leader", HOST))),
        pod("leader", cpu="1", labels={"app": "leader"}),
    ]
    rows = plan(Planner(DEFAULT, cluster), members(cluster, *pods)).rows
    assert rows[0] == rows[1] != NOWHERE


def test_pods_that_keep_apart_keep_apart_in_the_plan() -> None:
    cluster = cluster_of("4", "4", "4")
    pods = alike(4, cpu="1", labels={"app": "a"}, affinity=required(near("a", HOST), anti=True))
    assert sorted(plan(Planner(DEFAULT, cluster), members(cluster, *pods)).rows) == [NOWHERE, 0, 1, 2]


def test_the_promised_node_goes_before_a_better_one() -> None:
    cluster = cluster_of("16", "4")
    kind = cluster.class_of(pod("p", cpu="1"))
    assert plan(Planner(DEFAULT, cluster), [Member("default/p", kind)]).rows == (0,)
    assert plan(Planner(DEFAULT, cluster), [Member("default/p", kind, nominated=1)]).rows == (1,)


def test_a_promised_node_that_does_not_fit_is_passed_over() -> None:
    cluster = cluster_of("16", "1")
    kind = cluster.class_of(pod("p", cpu="2"))
    assert plan(Planner(DEFAULT, cluster), [Member("default/p", kind, nominated=1)]).rows == (0,)


def test_pods_that_were_promised_a_node_take_their_room() -> None:
    cluster = cluster_of("4", "4")
    other = cluster.class_of(pod("other", cpu="4"))
    found = plan(Planner(DEFAULT, cluster, [(other, 0)]), members(cluster, *alike(3, cpu="2")))
    assert sorted(found.rows) == [NOWHERE, 1, 1]


def test_nobody_relies_on_a_pod_that_was_only_promised_a_node() -> None:
    cluster = cluster_of("4", "4")
    leader = cluster.class_of(pod("leader", labels={"app": "leader"}))
    worker = pod("worker", cpu="1", affinity=required(near("leader", HOST)))
    assert plan(Planner(DEFAULT, cluster, [(leader, 0)]), members(cluster, worker)).rows == (NOWHERE,)


# -- topology ------------------------------------------------------------------------------------------------------


def in_racks(cluster: Cluster, pods: list[Pod], needed: int) -> Plan | None:
    planner = Planner(DEFAULT, cluster)
    return plan_in_one(planner, members(cluster, *pods), needed, domains(View(cluster), "rack"))


def test_a_gang_keeps_to_one_domain() -> None:
    cluster = cluster_of("4", "4", "4", "4", rack=["a", "b", "b", "a"])
    found = in_racks(cluster, alike(4, cpu="2"), 4)
    assert found is not None
    assert (found.domain, sorted(found.rows)) == ("a", [0, 0, 3, 3])


def test_the_domain_with_the_better_scores_wins() -> None:
    cluster = cluster_of("4", "16", rack=["a", "b"])
    found = in_racks(cluster, alike(2, cpu="1"), 2)
    assert found is not None
    assert found.domain == "b"


def test_the_domain_that_takes_more_pods_wins_over_better_scores() -> None:
    cluster = cluster_of("3", "2", "2", "2", rack=["a", "b", "b", "b"])
    found = in_racks(cluster, alike(6, cpu="1"), 3)
    assert found is not None
    assert (found.domain, found.count) == ("b", 6)


def test_no_domain_is_large_enough_though_the_cluster_is() -> None:
    cluster = cluster_of("4", "4", rack=["a", "b"])
    assert in_racks(cluster, alike(3, cpu="2"), 3) is None


def test_nodes_without_the_label_are_in_no_domain() -> None:
    cluster = cluster_of("4", "4", "4", rack=["b", "", "a"])
    assert [domain.value for domain in domains(View(cluster), "rack")] == ["a", "b"]
    assert in_racks(cluster, alike(4, cpu="2"), 4) is None


def test_a_domain_whose_nodes_left_is_gone() -> None:
    cluster = cluster_of("4", "4", rack=["a", "b"])
    domains(View(cluster), "rack")
    cluster.remove_node("n0")
    assert [domain.value for domain in domains(View(cluster), "rack")] == ["b"]


def test_the_domains_that_nodes_are_in_are_named_once() -> None:
    cluster = cluster_of("4", "4", "4", rack=["a", "a", ""])
    assert taken(View(cluster), "rack", ["n0", "n1"]) == ["a"]
    assert taken(View(cluster), "rack", ["n0", "n2", "elsewhere"]) == ["a", ""]


# -- answers on drafts ---------------------------------------------------------------------------------------------


def random_cluster(dice: random.Random) -> Cluster:
    cluster = Cluster()
    for at in range(dice.randint(1, 8)):
        taints = (
            (taint("batch", effect=dice.choice(["NoSchedule", "PreferNoSchedule"])),) if dice.random() < 0.3 else ()
        )
        labels = {HOST: f"n{at}", ZONE: dice.choice("ab")}
        cpu = dice.choice(["1", "2", "4"])
        cluster.add_node(node(f"n{at}", labels=labels, taints=taints, cpu=cpu, memory="8Gi", pods="6"))
    cluster.put_object(
        Service(metadata=ObjectMeta(name="s", namespace="default"), spec=ServiceSpec(selector={"app": "a"}))
    )
    for at in range(dice.randint(0, 8)):
        name = dice.choice(cluster.nodes.names[: cluster.nodes.size])
        bound = random_pod(f"b{at}", dice)
        cluster.put(bound, cluster.class_of(bound), cluster.nodes.rows[name])
    return cluster


def random_pod(name: str, dice: random.Random) -> Pod:
    fields: dict[str, Any] = {"labels": {"app": dice.choice("abc")}}
    if dice.random() < 0.8:
        fields["cpu"] = dice.choice(["100m", "500m", "1"])
    if dice.random() < 0.3:
        fields["tolerations"] = (toleration("batch", "Exists"),)
    roll = dice.random()
    term = near(dice.choice("abc"), dice.choice([HOST, ZONE]))
    if roll < 0.2:
        fields["affinity"] = required(term, anti=dice.random() < 0.7)
    elif roll < 0.3:
        weighted = (WeightedPodAffinityTerm(weight=50, pod_affinity_term=term),)
        fields["affinity"] = Affinity(
            pod_affinity=PodAffinity(preferred_during_scheduling_ignored_during_execution=weighted)
        )
    elif roll < 0.5:
        fields["topology_spread_constraints"] = (
            TopologySpreadConstraint(
                max_skew=1,
                topology_key=dice.choice([HOST, ZONE]),
                when_unsatisfiable=dice.choice(["DoNotSchedule", "ScheduleAnyway"]),
                label_selector=selector(app=dice.choice("abc")),
            ),
        )
    return pod(name, **fields)


@given(st.integers(0, 10_000))
@settings(max_examples=120, deadline=None)
def test_kept_answers_equal_fresh_ones(seed: int) -> None:
    dice = random.Random(seed)
    cluster = random_cluster(dice)
    kinds = [cluster.class_of(random_pod(f"w{at}", dice)) for at in range(3)]
    draft = Draft(cluster)
    kept = [DraftVerdicts(DEFAULT, kind, draft) for kind in kinds]
    for _ in range(8):
        if dice.random() < 0.3 and len(cluster.pods):
            draft.take_off([cluster.pods.bound(dice.choice(list(cluster.pods.rows.values())))])
        else:
            draft.put(dice.choice(kinds), dice.randrange(cluster.nodes.size))
        if dice.random() < 0.2:
            draft = draft.copy()
            kept = [answers.copy(draft) for answers in kept]
        for kind, answers in zip(kinds, kept, strict=True):
            if dice.random() < 0.7:
                fresh = run_filters(DEFAULT, kind, draft.view)
                rank = (
                    totals(DEFAULT, kind, draft.view, fresh.feasible)
                    if fresh.feasible.any()
                    else np.zeros(draft.view.size)
                )
                expected = [int(rank[row]) if fits else -1 for row, fits in enumerate(fresh.feasible)]
                assert [answers.at(row)[1] if answers.at(row)[0] else -1 for row in range(len(expected))] == expected


@pytest.mark.parametrize("count", [40])
def test_one_by_one_on_the_cluster_is_the_same_as_planned_on_a_draft(count: int) -> None:
    """A plan of pods that all fit goes where the pods would go if each were placed for real."""
    dice = random.Random(5)
    cluster = random_cluster(dice)
    pods = [random_pod(f"w{at}", dice) for at in range(count)]
    rows = plan(Planner(DEFAULT, cluster), members(cluster, *pods)).rows
    first_round = []
    for one, row in zip(pods, rows, strict=True):
        kind = cluster.class_of(one)
        fresh = run_filters(DEFAULT, kind, View(cluster))
        rank = totals(DEFAULT, kind, View(cluster), fresh.feasible)
        rank[~fresh.feasible] = -1
        best = int(rank.argmax()) if fresh.feasible.any() else NOWHERE
        first_round.append(best)
        if best == NOWHERE:
            break
        assert best == row
        cluster.put(one, kind, best)
    assert len(first_round) > 1
