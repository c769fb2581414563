"""One attempt at placing a gang: whose nominations count, whose victims it waits for, and where volumes lead it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import node, pod
from gang_world import RACK, World, bound, member, nodes, of, team
from situate.core.changes import NodeSeen, ObjectSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import BindVolumes, Evict, Nominate, SetCondition
from situate.core.engine import gang_attempt
from situate.core.engine.engine import Engine
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodCondition, PodSchedulingGate, PodStatus
from situate.core.queue.queued_pod import QueueState
from situate.core.versions import V1_37
from storage_builders import claimed, reached_from, storage_class, volume, waiting

TOPOLOGY = {"situate.dev/gang-topology": RACK}
LEAVING = "2026-01-01T00:00:00Z"
WAITS_FOR_VICTIMS = "pod group is waiting for preemption to complete"


def machine(name: str, cpu: str = "4", **labels: str) -> Node:
    return node(name, cpu=cpu, memory="64Gi", pods="20", labels=labels)


def running(name: str, on: str, cpu: str = "4", priority: int = 0, **fields: Any) -> Pod:
    return pod(name, uid=f"uid-{name}", node_name=on, cpu=cpu, priority=priority, **fields)


def preempted(name: str, on: str, priority: int = 0) -> Pod:
    """A victim of a scheduler, on its way out."""
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    return running(name, on, priority=priority, deletion_timestamp=LEAVING, conditions=(condition,))


def nominated(effects: list[Any]) -> list[tuple[str, str]]:
    return [(one.pod.name, one.node) for one in of(Nominate, effects)]


def holding(*machines: Node) -> World:
    """With the rules of 1.37, in which a node is held for a pod that is gated."""
    return World(*machines, engine=Engine(default_configuration(V1_37)))


def holder(priority: int, node_name: str = "n0") -> Pod:
    """A node is nominated for it, and it must not be scheduled yet."""
    gates = (PodSchedulingGate(name="g"),)
    return pod("holder", uid="h", cpu="4", priority=priority, nominated_node_name=node_name, scheduling_gates=gates)


# -- nominations of others -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority, fits", [(4, True), (5, False), (6, False)])
def test_a_gang_leaves_a_node_that_is_nominated_for_a_pod_that_it_does_not_outrank(priority: int, fits: bool) -> None:
    world = holding(machine("n0"), machine("n1", cpu="0"))
    world.arrive(holder(priority))
    assert bound(world.arrive(*team(2, priority=5))) == (["t0", "t1"] if fits else [])


def test_the_least_important_pod_of_a_gang_decides_which_nominations_count() -> None:
    world = holding(machine("n0"))
    world.arrive(holder(5))
    assert bound(world.arrive(member("t0", 2, priority=9), member("t1", 2, priority=5))) == []


def test_nominations_of_a_gang_do_not_count_against_itself() -> None:
    world = World(machine("n0"))
    assert bound(world.arrive(*team(2, nominated_node_name="n0"))) == ["t0", "t1"]


def test_a_nomination_of_a_node_that_nobody_knows_holds_nothing() -> None:
    world = holding(machine("n0"))
    world.arrive(holder(9, "ghost"))
    assert bound(world.arrive(*team(2))) == ["t0", "t1"]


def test_a_gang_that_is_refused_waits_for_what_its_filters_wait_for() -> None:
    world = World(machine("n0", "1"))
    world.arrive(*team(2))
    assert of(SetCondition, world.step(NodeSeen(machine("n0", "1", disk="ssd")), after_ms=5_000)) == []


def test_a_gang_that_is_refused_while_nodes_are_nominated_for_others_waits_for_any_change() -> None:
    world = holding(machine("n0"))
    world.arrive(holder(9))
    world.arrive(*team(2))
    told = of(SetCondition, world.step(NodeSeen(machine("n0", disk="ssd")), after_ms=5_000))
    assert [one.pod.name for one in told] == ["t0", "t1"]


def test_a_gang_that_cannot_be_helped_gives_back_the_nodes_that_were_nominated_for_it() -> None:
    world = World(machine("n0", cpu="1"))
    effects = world.arrive(*team(2, nominated_node_name="n0"))
    assert nominated(effects) == [("t0", ""), ("t1", "")]


# -- domains -------------------------------------------------------------------------------------------------------


def test_a_gang_whose_bound_pods_are_in_two_domains_is_refused() -> None:
    world = World(machine("n0", rack="a"), machine("n1", rack="b"))
    bound_pods = [member(f"t{at}", 3, labels=TOPOLOGY, node_name=f"n{at}") for at in range(2)]
    effects = world.arrive(*bound_pods, member("t2", 3, labels=TOPOLOGY))
    assert (bound(effects), world.place("t2")) == ([], QueueState.UNSCHEDULABLE)
    assert "a" in world.message("t2")


# -- victims -------------------------------------------------------------------------------------------------------


def test_every_victim_is_evicted_for_the_pod_that_gets_its_node() -> None:
    world = World(*nodes(2))
    world.arrive(running("v0", "n0"), running("v1", "n1"))
    effects = world.arrive(*team(2, cpu="4", priority=10))
    held = {where: name for name, where in nominated(effects)}
    assert sorted(held) == ["n0", "n1"]
    assert {one.node: one.preemptor.name for one in of(Evict, effects)} == held


def test_a_gang_whose_victims_are_asked_to_leave_asks_nobody_else() -> None:
    world = World(*nodes(2))
    world.arrive(running("v0", "n0"), running("v1", "n1"))
    assert len(of(Evict, world.arrive(*team(2, cpu="4", priority=10)))) == 2
    tried = world.engine.metrics.preemptions
    effects = world.step(NodeSeen(machine("n2", cpu="4")), NodeSeen(machine("n3", cpu="1")), after_ms=5_000)
    assert [one.message.endswith(WAITS_FOR_VICTIMS) for one in of(SetCondition, effects)] == [True, True]
    assert (of(Evict, effects), nominated(effects), world.engine.metrics.preemptions) == ([], [], tried)


def test_victims_of_others_are_no_reason_to_wait() -> None:
    world = World(*nodes(2))
    world.arrive(running("v0", "n0"), running("v1", "n1", priority=1))
    assert [one.victim.name for one in of(Evict, world.arrive(pod("boss", uid="boss", cpu="4", priority=20)))] == ["v0"]
    effects = world.arrive(*team(2, priority=10))
    assert [one.victim.name for one in of(Evict, effects)] == ["v1"]


@pytest.mark.parametrize(
    "victim, on, waits",
    [
        pytest.param(0, "n0", True, id="a victim leaves the nominated node"),
        pytest.param(10, "n0", False, id="who leaves is no less important than the gang"),
        pytest.param(0, "n1", False, id="a victim leaves another node"),
    ],
)
def test_after_a_restart_a_gang_waits_for_victims_that_leave_its_nodes(victim: int, on: str, waits: bool) -> None:
    world = World(*nodes(2))
    world.arrive(preempted("v", on, priority=victim), running("other", "n1" if on == "n0" else "n0", priority=50))
    effects = world.arrive(*team(2, priority=10, nominated_node_name="n0"))
    assert (nominated(effects) == []) is waits
    assert of(Evict, effects) == []


def test_after_a_restart_pods_that_leave_by_themselves_are_no_victims() -> None:
    world = World(*nodes(1))
    world.arrive(running("v", "n0", deletion_timestamp=LEAVING))
    assert nominated(world.arrive(*team(2, priority=10, nominated_node_name="n0"))) != []


def test_a_pod_that_room_is_not_made_for_gives_back_its_nomination() -> None:
    world = World(machine("n0"), machine("n1", cpu="0"))
    world.arrive(running("v", "n0"))
    pods = [member("t0", 1, cpu="4", priority=10), member("t1", 1, cpu="4", priority=10, nominated_node_name="n1")]
    effects = world.arrive(*pods)
    assert sorted(nominated(effects)) == [("t0", "n0"), ("t1", "")]


# -- volumes -------------------------------------------------------------------------------------------------------


def with_volumes(reached: dict[str, str]) -> World:
    """Two nodes, volumes that are each reached from one of them, and as many claims."""
    world = World(*nodes(2, cpu="8", host=["a", "b"]))
    objects: list[NamedObject] = [storage_class("late", provisioner="kubernetes.io/no-provisioner")]
    objects += [volume(name, class_name="late", terms=(reached_from("host", host),)) for name, host in reached.items()]
    objects += [waiting(f"t{at}-data", "late") for at in range(len(reached))]
    world.step(*map(ObjectSeen, objects))
    return world


def writers(count: int) -> list[Pod]:
    return [member(f"t{at}", count, volumes=claimed(f"t{at}-data")) for at in range(count)]


@pytest.mark.parametrize("replans, placed", [(0, False), (1, True)])
def test_a_gang_is_planned_again_for_its_volumes_a_limited_number_of_times(
    replans: int, placed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gang_attempt, "REPLANS", replans)
    world = with_volumes({"v1": "a", "v2": "b", "v3": "b"})
    effects = world.arrive(*writers(3))
    assert len(of(BindVolumes, effects)) == (3 if placed else 0)


def test_a_pod_that_goes_elsewhere_for_its_volume_leaves_the_others_their_plan() -> None:
    world = with_volumes({"v1": "a", "v2": "b", "v3": "b"})
    first, second, third = writers(3)
    pods = [replace(one, status=PodStatus(nominated_node_name="n0")) for one in (first, second)]
    effects = of(BindVolumes, world.arrive(*pods, third))
    assert {one.pod.name: one.node for one in effects} == {"t0": "n0", "t1": "n1", "t2": "n1"}
