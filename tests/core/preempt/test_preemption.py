"""Whom to evict for a pod that fits nowhere, and from which node; or why that would not help."""

from collections.abc import Sequence
from typing import Any

import pytest

from builders import container, node, pod, selector
from situate.core.engine.framework import default_framework
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import (
    Affinity,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    TopologySpreadConstraint,
)
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import run_filters
from situate.core.preempt import PostFilterResult, PreemptionOptions, preempt
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

PROFILE = default_framework().profile
DEFAULTS = PreemptionOptions()
HOST = "kubernetes.io/hostname"


def cluster_of(nodes: int, *pods: Pod, **room: str) -> Cluster:
    """Nodes n0, n1, … of 4 cpus, and what is bound to them."""
    cluster = Cluster()
    for at in range(nodes):
        fields: dict[str, Any] = {"cpu": "4", "memory": "64Gi", "pods": "110", **room}
        cluster.add_node(node(f"n{at}", labels={HOST: f"n{at}"}, **fields))
    for each in pods:
        cluster.add_pod(each)
    return cluster


def bound(name: str, where: int = 0, cpu: str = "2", priority: int = 0, **fields: Any) -> Pod:
    fields.setdefault("start_time", "2026-01-01T00:00:00Z")
    return pod(name, node_name=f"n{where}", cpu=cpu, priority=priority, **fields)


def budget(allowed: int, **labels: str) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="budget", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=selector(**labels)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def ask(
    cluster: Cluster, waiting: Pod, options: PreemptionOptions = DEFAULTS, view: View | None = None, **how: Any
) -> PostFilterResult:
    view = view or View(cluster)
    kind = cluster.class_of(waiting)
    filtered = run_filters(PROFILE, kind, view)
    assert not filtered.feasible.any(), "a pod that fits needs no remedy"
    return preempt(PROFILE, kind, view, diagnose(PROFILE, kind, view, filtered), options, **how)


def waiting(cpu: str = "2", priority: int | None = 100, **fields: Any) -> Pod:
    return pod("waiting", cpu=cpu, priority=priority, **fields)


def chosen(result: PostFilterResult) -> tuple[int | None, list[str]]:
    assert (result.code, result.message) == ("Success", "") or result.node_row is None
    return result.node_row, [victim.name for victim in result.victims]


# -- victims ---------------------------------------------------------------------------------------------------------


def test_the_least_important_go_until_the_pod_fits() -> None:
    cluster = cluster_of(1, bound("low", priority=1), bound("high", priority=2))
    assert chosen(ask(cluster, waiting("2"))) == (0, ["low"])


def test_a_small_pod_is_reprieved_after_a_large_one_was_not() -> None:
    cluster = cluster_of(1, bound("large", cpu="3", priority=9), bound("small", cpu="1", priority=1))
    assert chosen(ask(cluster, waiting("2"))) == (0, ["large"])


def test_pods_of_the_same_priority_are_not_evicted() -> None:
    result = ask(cluster_of(1, bound("equal", cpu="4", priority=100)), waiting("2"))
    assert result.message == "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."


def test_the_number_of_pods_is_room_too() -> None:
    cluster = cluster_of(1, bound("a", cpu="1"), bound("b", cpu="1", priority=5), pods="2")
    assert chosen(ask(cluster, waiting("1"))) == (0, ["a"])


def test_a_resource_that_nobody_of_lower_priority_takes_is_not_freed() -> None:
    result = ask(
        cluster_of(2, bound("cpu", 0, cpu="4"), bound("other", 1, cpu="4", priority=200)), waiting("4", memory="1Gi")
    )
    assert chosen(result) == (0, ["cpu"])


def test_victims_are_told_by_name() -> None:
    cluster = cluster_of(1, bound("b", cpu="2", priority=5), bound("a", cpu="2", priority=1))
    assert chosen(ask(cluster, waiting("4"))) == (0, ["a", "b"])


def test_a_pod_that_is_being_deleted_is_a_victim_that_need_not_be_evicted() -> None:
    leaving = bound("leaving", cpu="4", deletion_timestamp="2026-01-10T00:00:00Z")
    result = ask(cluster_of(1, leaving), waiting())
    assert (result.node_row, result.victims, result.code) == (0, (), "Success")


def test_the_pod_that_keeps_others_away_is_evicted_and_no_other() -> None:
    apart = Affinity(
        pod_anti_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=(
                PodAffinityTerm(label_selector=selector(app="web"), topology_key=HOST),
            )
        )
    )
    cluster = cluster_of(1, bound("first", cpu="1", priority=1), bound("jealous", cpu="1", priority=9, affinity=apart))
    assert chosen(ask(cluster, waiting("1", labels={"app": "web"}))) == (0, ["jealous"])


def test_a_pod_that_the_preemptor_wants_near_is_not_evicted_for_it() -> None:
    near = Affinity(
        pod_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=(
                PodAffinityTerm(label_selector=selector(app="db"), topology_key=HOST),
            )
        )
    )
    cluster = cluster_of(1, bound("db", cpu="4", labels={"app": "db"}))
    result = ask(cluster, waiting("2", affinity=near))
    assert result.message == "preemption: 0/1 nodes are available: 1 node(s) didn't match pod affinity rules."


def test_pods_that_tip_the_balance_are_evicted() -> None:
    balanced = TopologySpreadConstraint(
        max_skew=1, topology_key=HOST, when_unsatisfiable="DoNotSchedule", label_selector=selector(app="web")
    )
    web = {"app": "web"}
    cluster = cluster_of(
        2,
        bound("one", 0, cpu="1", priority=5, labels=web),
        bound("another", 0, cpu="1", labels=web),
        bound("filler", 1, cpu="4", priority=200, labels=web),
    )
    asked = waiting("1", labels=web, topology_spread_constraints=(balanced,))
    assert chosen(ask(cluster, asked)) == (0, ["another"])


# -- host ports ------------------------------------------------------------------------------------------------------


def listening(name: str, priority: int, *ports: int) -> Pod:
    wanted = tuple(ContainerPort(host_port=port, container_port=port) for port in ports)
    return bound(name, priority=priority, containers=(container(cpu="1", ports=wanted),))


def asking_for(port: int) -> Pod:
    return pod("waiting", priority=100, containers=(container(ports=(ContainerPort(host_port=port),)),))


def test_the_holder_of_a_port_is_evicted_and_no_other() -> None:
    cluster = cluster_of(1, listening("web", 50, 80), listening("dns", 1, 53))
    assert chosen(ask(cluster, asking_for(80))) == (0, ["web"])


def test_a_port_held_twice_is_free_when_one_of_its_holders_goes_as_in_kubernetes() -> None:
    cluster = cluster_of(1, listening("above", 200, 80), listening("below", 1, 80))
    assert chosen(ask(cluster, asking_for(80))) == (0, ["below"])


def test_of_two_holders_of_lower_priority_both_go() -> None:
    cluster = cluster_of(1, listening("one", 2, 80), listening("other", 1, 80), listening("third", 1, 53))
    assert chosen(ask(cluster, asking_for(80))) == (0, ["one", "other"])


def test_a_port_held_by_somebody_more_important_stays_taken() -> None:
    cluster = cluster_of(1, listening("above", 200, 80), listening("below", 1, 53))
    assert ask(cluster, asking_for(80)).message == (
        "preemption: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )


# -- which node ------------------------------------------------------------------------------------------------------


def test_the_node_with_the_least_important_victims_is_chosen() -> None:
    cluster = cluster_of(
        3, *(bound(f"b{at}", at, cpu="4", priority=priority) for at, priority in enumerate((30, 10, 20)))
    )
    assert chosen(ask(cluster, waiting())) == (1, ["b1"])


def test_a_node_where_no_budget_breaks_is_chosen_before_one_with_less_important_victims() -> None:
    cluster = cluster_of(2, bound("guarded", 0, cpu="4", labels={"app": "db"}), bound("free", 1, cpu="4", priority=50))
    cluster.put_object(budget(0, app="db"))
    assert chosen(ask(cluster, waiting())) == (1, ["free"])


def test_who_is_protected_by_a_budget_is_reprieved_before_the_more_important() -> None:
    cluster = cluster_of(1, bound("important", priority=50), bound("guarded", priority=1, labels={"app": "db"}))
    cluster.put_object(budget(0, app="db"))
    assert chosen(ask(cluster, waiting("2"))) == (0, ["important"])


def test_a_budget_is_broken_if_there_is_no_other_way() -> None:
    cluster = cluster_of(1, bound("guarded", cpu="4", labels={"app": "db"}))
    cluster.put_object(budget(0, app="db"))
    assert chosen(ask(cluster, waiting())) == (0, ["guarded"])


def test_a_budget_is_never_broken_if_that_is_configured() -> None:
    guarded = bound("guarded", 0, cpu="4", labels={"app": "db"})
    careful = PreemptionOptions(never_break_budgets=True)
    cluster = cluster_of(2, guarded, bound("above", 1, cpu="4", priority=200))
    cluster.put_object(budget(0, app="db"))
    assert ask(cluster, waiting(), careful).message == (
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption would violate a PodDisruptionBudget."
    )
    cluster.put_object(budget(1, app="db"))
    assert chosen(ask(cluster, waiting(), careful)) == (0, ["guarded"])


@pytest.mark.parametrize("offset,row", [(0, 0), (1, 1), (2, 2), (3, 0), (7, 1)])
def test_the_search_starts_at_the_offset_and_stops_when_it_has_enough(offset: int, row: int) -> None:
    cluster = cluster_of(3, *(bound(f"b{at}", at, cpu="4") for at in range(3)))
    first_will_do = PreemptionOptions(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1)
    assert chosen(ask(cluster, waiting(), first_will_do, offset=offset)) == (row, [f"b{row}"])


def test_the_search_goes_on_until_one_candidate_keeps_the_budgets() -> None:
    guarded = [bound(f"b{at}", at, cpu="4", labels={"app": "db"}) for at in range(2)]
    cluster = cluster_of(3, *guarded, bound("free", 2, cpu="4", priority=50))
    cluster.put_object(budget(0, app="db"))
    first_will_do = PreemptionOptions(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=1)
    assert chosen(ask(cluster, waiting(), first_will_do)) == (2, ["free"])


def test_nodes_that_evictions_cannot_help_are_left_alone() -> None:
    cluster = cluster_of(1, bound("b", 0, cpu="4"))
    cluster.add_node(node("tainted", cpu="4", pods="10", unschedulable=True))
    cluster.add_node(node("small", cpu="1", pods="10"))
    assert chosen(ask(cluster, waiting())) == (0, ["b"])
    assert ask(cluster, waiting(priority=0)).message == (
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )


def test_a_filter_that_would_refuse_the_node_after_all_is_told() -> None:
    """Room can be made, but the node lacks a label, which is only noticed once there is room."""
    cluster = cluster_of(2, bound("a", 0, cpu="4"), bound("b", 1, cpu="4", priority=200))
    cluster.add_node(node("n0", cpu="4", pods="110", memory="64Gi", labels={}))
    spread = TopologySpreadConstraint(
        max_skew=1, topology_key=HOST, when_unsatisfiable="DoNotSchedule", label_selector=selector(app="web")
    )
    result = ask(cluster, waiting(topology_spread_constraints=(spread,)))
    assert result.message == (
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 node(s) didn't match pod topology spread constraints (missing required label)."
    )


def test_a_filter_that_evictions_would_satisfy_is_not_told_where_a_later_one_stays_in_the_way() -> None:
    apart = Affinity(
        pod_anti_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=(
                PodAffinityTerm(label_selector=selector(app="web"), topology_key=HOST),
            )
        )
    )
    cluster = cluster_of(1, bound("jealous", cpu="1", affinity=apart))
    # It needs a feature that no node declares, but it is first refused for who is there.
    result = ask(cluster, waiting("1", labels={"app": "web"}, host_network=True, host_users=False))
    assert result.message == "preemption: 0/1 nodes are available: 1 node(s) didn't match Pod's required features."


def test_what_a_node_would_still_be_short_of_is_told_for_every_resource() -> None:
    cluster = cluster_of(1, bound("above", cpu="3", priority=200, memory="62Gi"), bound("below", cpu="1"))
    assert ask(cluster, waiting("2", memory="4Gi")).message == (
        "preemption: 0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."
    )


# -- who may preempt -------------------------------------------------------------------------------------------------


def test_a_pod_may_decline_to_preempt() -> None:
    result = ask(cluster_of(1, bound("b", cpu="4")), waiting(preemption_policy="Never"))
    assert (result.code, result.message) == (
        "Unschedulable",
        "preemption: not eligible due to preemptionPolicy=Never.",
    )


LEAVING = "2026-01-10T00:00:00Z"
PREEMPTED = (PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler"),)
STILL_WAITING = "preemption: not eligible due to a terminating pod on the nominated node."

TERMINATING: Sequence[Any] = [
    pytest.param(
        {"deletion_timestamp": LEAVING, "conditions": PREEMPTED}, STILL_WAITING, id="preempted, on its way out"
    ),
    pytest.param({"deletion_timestamp": LEAVING}, "", id="leaving for another reason"),
    pytest.param({"conditions": PREEMPTED}, "", id="preempted but not leaving yet"),
    pytest.param(
        {"deletion_timestamp": LEAVING, "conditions": PREEMPTED, "priority": 100},
        "",
        id="as important as the pod itself",
    ),
]


@pytest.mark.parametrize("fields,message", TERMINATING)
def test_a_pod_waits_for_the_victims_of_its_last_preemption(fields: dict[str, Any], message: str) -> None:
    cluster = cluster_of(2, bound("victim", 0, **fields), bound("a", 0, cpu="2"), bound("b", 1, cpu="4"))
    assert ask(cluster, waiting("2"), nominated_node="n0").message == message


def test_it_does_not_wait_where_the_nominated_node_has_become_impossible() -> None:
    victim = bound("victim", 0, cpu="4", deletion_timestamp=LEAVING, conditions=PREEMPTED)
    cluster = cluster_of(2, victim, bound("b", 1, cpu="4"))
    cluster.add_node(node("n0", cpu="4", pods="110", unschedulable=True))
    assert chosen(ask(cluster, waiting(), nominated_node="n0")) == (1, ["b"])
    assert chosen(ask(cluster, waiting(), nominated_node="gone")) == (1, ["b"])


# -- on overlays -----------------------------------------------------------------------------------------------------

STILL_SHORT = "preemption: 0/1 nodes are available: 1 Insufficient cpu."


def test_pods_that_an_overlay_took_away_are_neither_victims_nor_room_twice() -> None:
    cluster = cluster_of(
        1, bound("gone", cpu="2"), bound("here", cpu="2"), bound("above", cpu="1", priority=200), cpu="5"
    )
    view = View(cluster)
    overlay = view.without([each for each in view.pods_on(0) if each.name == "gone"])
    assert chosen(ask(cluster, waiting("4"), view=overlay)) == (0, ["here"])
    assert (
        ask(cluster, waiting("5"), view=overlay).message == "preemption: 0/1 nodes are available: 1 Insufficient cpu."
    )


def test_pods_that_an_overlay_adds_take_room_and_stay() -> None:
    cluster = cluster_of(1, bound("here", cpu="2"))
    overlay = View(cluster).plus([(cluster.class_of(pod("new", cpu="2", priority=1)), 0)])
    assert chosen(ask(cluster, waiting("2"), view=overlay)) == (0, ["here"])
    assert (
        ask(cluster, waiting("3"), view=overlay).message == "preemption: 0/1 nodes are available: 1 Insufficient cpu."
    )
