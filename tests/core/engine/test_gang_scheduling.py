"""Gangs over time: what wakes them, what they are told and when, and what becomes of those that are bound in part."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import node, pod
from gang_world import RACK, World, bound, member, nodes, of, team
from situate.core.changes import (
    BindDone,
    BindFailed,
    NodeSeen,
    ObjectSeen,
    Paused,
    PodGone,
    PodSeen,
)
from situate.core.effects import Bind, BindVolumes, Evict, SetCondition, SetGroupCondition
from situate.core.engine.gang_scheduling import GANG_BIND_LIMIT_MS, HOLD_REPORT_MS
from situate.core.model.group import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupCondition,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupStatus,
)
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodSchedulingGroup
from situate.core.queue.queued_pod import QueueState
from storage_builders import claimed, storage_class, waiting

TOPOLOGY = {"situate.dev/gang-topology": RACK}


def machine(name: str, cpu: str, **labels: str) -> Node:
    return node(name, cpu=cpu, memory="64Gi", pods="20", labels=labels)


def told(effects: list[Any]) -> list[tuple[str, str]]:
    return [(one.pod.name, one.message) for one in of(SetCondition, effects)]


def grouped(name: str, **fields: Any) -> Pod:
    fields.setdefault("cpu", "2")
    return pod(name, uid=f"uid-{name}", scheduling_group=PodSchedulingGroup(pod_group_name="train"), **fields)


def group(size: int, status: str = "") -> PodGroup:
    """`size` 0: its pods are scheduled one by one."""
    gang = GangSchedulingPolicy(min_count=size) if size else None
    condition = PodGroupCondition(type="PodGroupScheduled", status=status)
    return PodGroup(
        metadata=ObjectMeta(name="train", namespace="default"),
        spec=PodGroupSpec(scheduling_policy=PodGroupSchedulingPolicy(gang=gang)),
        status=PodGroupStatus(conditions=(condition,) if status else ()),
    )


def seen_on(world: World, name: str, where: str) -> PodSeen:
    known = world.pods[name]
    return PodSeen(replace(known, spec=replace(known.spec, node_name=where)))


# -- labels of nodes -----------------------------------------------------------------------------------------------


def test_a_gang_that_no_filter_keeps_from_a_node_waits_for_the_label_of_its_domain() -> None:
    world = World(machine("n0", "2", rack="a"), machine("n1", "8"))
    world.arrive(*team(2, labels=TOPOLOGY))
    assert world.place("t0") is QueueState.UNSCHEDULABLE
    effects = world.step(NodeSeen(machine("n1", "8", rack="a")), after_ms=5_000)
    assert bound(effects) == ["t0", "t1"]


@pytest.mark.parametrize(
    "labels, after",
    [
        pytest.param(TOPOLOGY, {"rack": "a", "disk": "ssd"}, id="another label than that of its domain"),
        pytest.param({}, {"rack": "b"}, id="a label, where it may be anywhere"),
    ],
)
def test_other_labels_do_not_wake_a_gang(labels: dict[str, str], after: dict[str, str]) -> None:
    world = World(machine("n0", "2", rack="a"))
    world.arrive(*team(2, labels=labels))
    assert told(world.step(NodeSeen(machine("n0", "2", **after)), after_ms=5_000)) == []
    assert world.place("t0") is QueueState.UNSCHEDULABLE


def test_a_node_whose_labels_are_the_same_does_not_wake_a_gang() -> None:
    world = World(machine("n0", "2", rack="a"))
    world.arrive(*team(2, labels=TOPOLOGY))
    cordoned = machine("n0", "2", rack="a")
    cordoned = replace(cordoned, spec=replace(cordoned.spec, unschedulable=True))
    assert told(world.step(NodeSeen(cordoned), after_ms=5_000)) == []


# -- what held pods are told ---------------------------------------------------------------------------------------


def test_reasons_are_reported_at_intervals_not_just_the_first_time() -> None:
    world = World(*nodes(1))
    world.arrive(member("t0", 9))
    for at in (1, 2):
        assert [name for name, _ in told(world.arrive(member(f"t{at}", 9)))] == [f"t{at}"]
        later = world.step(after_ms=HOLD_REPORT_MS)
        assert told(later)[0] == ("t0", f"waiting for {8 - at} more pods of gang default/train: {1 + at} of 9 are here")
        assert told(world.step(after_ms=HOLD_REPORT_MS)) == []


def test_a_pod_that_is_held_for_the_same_reason_as_before_it_was_tried_is_told_again() -> None:
    world = World(*nodes(1, cpu="1"))
    reason = "waiting for 1 more pod of gang default/train: 1 of 2 are here"
    assert told(world.arrive(member("t0", 2))) == [("t0", reason)]
    world.arrive(member("t1", 2))
    assert world.place("t0") is QueueState.UNSCHEDULABLE
    assert told(world.delete("t1")) == [("t0", reason)]
    assert (world.place("t0"), world.message("t0")) == (QueueState.GATED, reason)


# -- what the gang demands -----------------------------------------------------------------------------------------


def test_a_gang_that_demands_less_does_not_lose_the_rest_of_its_backoff() -> None:
    world = World(*nodes(1))
    world.step(ObjectSeen(group(3)))
    world.arrive(*(grouped(f"t{at}") for at in range(3)))
    assert world.place("t0") is QueueState.UNSCHEDULABLE
    world.step(Paused(True), ObjectSeen(group(2)), after_ms=1)
    assert [world.place(f"t{at}") for at in range(3)] == [QueueState.BACKOFF] * 3


def test_a_gang_that_demands_less_is_tried_again_once() -> None:
    world = World(*nodes(1))
    world.step(ObjectSeen(group(3)))
    pods = [grouped(f"t{at}") for at in range(3)]
    world.arrive(*pods)
    effects = world.step(ObjectSeen(group(0)), after_ms=5_000)
    assert bound(effects) == ["t0", "t1"]
    assert [name for name, _ in told(effects)] == ["t2"]
    assert told(world.step(PodSeen(replace(pods[2], spec=pods[2].spec)), after_ms=5_000)) == []
    assert world.place("t2") is QueueState.UNSCHEDULABLE


def test_pods_beyond_those_needed_are_not_tried_again_because_the_gang_had_been_refused() -> None:
    world = World(*nodes(1, cpu="2"))
    world.arrive(*team(3, size=2))
    assert world.place("t0") is QueueState.UNSCHEDULABLE
    effects = world.step(NodeSeen(machine("n1", "2")), after_ms=5_000)
    assert sorted(bound(effects)) == ["t0", "t1"]
    assert world.place("t2") is QueueState.UNSCHEDULABLE
    binds = of(Bind, effects)
    assert told(world.step(*(BindDone(bind.pod, bind.attempt) for bind in binds), after_ms=20_000)) == []
    assert world.place("t2") is QueueState.UNSCHEDULABLE


# -- bound in part -------------------------------------------------------------------------------------------------


def test_a_gang_is_whole_when_its_binds_are_done_though_no_pod_was_seen_bound() -> None:
    world = World(*nodes(1))
    world.step(ObjectSeen(group(2)))
    first, second = of(Bind, world.arrive(grouped("t0"), grouped("t1")))
    assert of(SetGroupCondition, world.step(BindDone(first.pod, first.attempt))) == []
    (condition,) = of(SetGroupCondition, world.step(BindDone(second.pod, second.attempt)))
    assert (condition.status, condition.reason) == ("True", "Scheduled")


def test_the_limit_runs_from_the_failure_though_nothing_else_happens() -> None:
    world = World(*nodes(2))
    first, second, third = of(Bind, world.arrive(*team(3)))
    world.step(*(BindDone(one.pod, one.attempt) for one in (first, second)))
    world.step(*(seen_on(world, one.pod.name, one.node) for one in (first, second)))
    world.step(Paused(True))
    world.step(BindFailed(third.pod, third.attempt, "no", final=True))
    assert of(Evict, world.step(after_ms=GANG_BIND_LIMIT_MS - 1)) == []
    effects = world.step(after_ms=1)
    assert sorted(one.victim.name for one in of(Evict, effects)) == sorted([first.pod.name, second.pod.name])


def in_part() -> tuple[World, Any, Any]:
    """Of three pods, one was bound, one is gone, and the bind of one is not answered: the first and the last bind."""
    world = World(*nodes(2))
    done, gone, silent = of(Bind, world.arrive(*team(3)))
    world.step(BindDone(done.pod, done.attempt), seen_on(world, done.pod.name, done.node), PodGone(gone.pod))
    return world, done, silent


def test_what_is_released_of_a_gang_that_is_given_up_is_held_in_the_same_step() -> None:
    world, done, silent = in_part()
    evicted = of(Evict, world.step(after_ms=GANG_BIND_LIMIT_MS))
    assert [one.victim.name for one in evicted] == [done.pod.name]
    assert world.place(silent.pod.name) is QueueState.GATED
    assert world.message(silent.pod.name) == (
        "waiting for the bound pods of gang default/train to leave: it could not be bound whole in time"
    )


def test_a_bind_that_fails_after_its_gang_was_given_up_is_not_retried() -> None:
    world, done, silent = in_part()
    begun = world.now
    world.step(BindFailed(silent.pod, silent.attempt, "no"), after_ms=GANG_BIND_LIMIT_MS - 5_000)
    (again,) = of(Bind, world.step())
    evicted = of(Evict, world.step(after_ms=begun + GANG_BIND_LIMIT_MS - world.now))
    assert [one.victim.name for one in evicted] == [done.pod.name]
    assert world.place(again.pod.name) is QueueState.RESERVED
    world.step(BindFailed(again.pod, again.attempt, "no"))
    assert world.place(again.pod.name) is QueueState.GATED


def test_a_gang_that_was_gone_and_is_bound_in_part_again_has_the_whole_time_again() -> None:
    world = World(*nodes(2))
    first, *others = of(Bind, world.arrive(*team(3)))
    world.step(BindDone(first.pod, first.attempt), seen_on(world, first.pod.name, first.node))
    world.step(Paused(True), *(BindFailed(one.pod, one.attempt, "no", final=True) for one in others))
    world.step(PodGone(first.pod), after_ms=GANG_BIND_LIMIT_MS - 1_000)
    binds = of(Bind, world.step(Paused(False), PodSeen(member(first.pod.name))))
    assert len(binds) == 3
    one, *others = binds
    world.step(BindDone(one.pod, one.attempt), seen_on(world, one.pod.name, one.node))
    world.step(Paused(True), *(BindFailed(each.pod, each.attempt, "no", final=True) for each in others))
    assert of(Evict, world.step(after_ms=GANG_BIND_LIMIT_MS - 1)) == []
    assert [each.victim.name for each in of(Evict, world.step(after_ms=1))] == [one.pod.name]


def test_a_gang_all_of_which_is_reserved_is_not_given_up_however_long_its_volumes_take() -> None:
    world = World(*nodes(1))
    world.step(ObjectSeen(storage_class("late")), *(ObjectSeen(waiting(f"d{at}", "late")) for at in range(2)))
    pods = [member(f"t{at}", 2, volumes=claimed(f"d{at}")) for at in range(2)]
    assert len(of(BindVolumes, world.arrive(*pods))) == 2
    world.arrive(*pods)
    world.step(after_ms=GANG_BIND_LIMIT_MS)
    world.arrive(*pods)
    assert [world.place(f"t{at}") for at in range(2)] == [QueueState.RESERVED] * 2


@pytest.mark.parametrize("status, evicted", [("True", []), ("", ["t0"])])
def test_after_a_restart_a_gang_that_was_whole_once_is_left_alone_though_we_bind_the_rest(
    status: str, evicted: list[str]
) -> None:
    world = World(*nodes(2))
    world.step(ObjectSeen(group(3, status=status)))
    binds = of(Bind, world.arrive(grouped("t0", node_name="n0"), grouped("t1"), grouped("t2")))
    assert len(binds) == 2
    world.step(Paused(True), *(BindFailed(one.pod, one.attempt, "no", final=True) for one in binds))
    effects = world.step(after_ms=GANG_BIND_LIMIT_MS)
    assert [one.victim.name for one in of(Evict, effects)] == evicted


@pytest.mark.parametrize(
    "scheduler, evicted",
    [
        pytest.param("default-scheduler", ["t0", "t1"], id="ours"),
        pytest.param("other", [], id="one of them another scheduler's"),
    ],
)
def test_after_a_restart_the_bound_pods_of_a_gang_are_given_up_if_all_are_ours(
    scheduler: str, evicted: list[str]
) -> None:
    world = World(*nodes(1))
    world.step(ObjectSeen(group(3)))
    world.arrive(grouped("t0", node_name="n0"), grouped("t1", node_name="n0", scheduler_name=scheduler), grouped("t2"))
    effects = world.step(after_ms=GANG_BIND_LIMIT_MS)
    assert [one.victim.name for one in of(Evict, effects)] == evicted
