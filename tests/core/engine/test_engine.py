"""The engine as a function of changes: what it takes in, what it forgets, and what wakes whom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from builders import node, pod
from gang_world import member
from situate.core.changes import (
    Change,
    ExtenderSaid,
    Leading,
    NodeSeen,
    ObjectGone,
    ObjectSeen,
    Paused,
    PodGone,
    PodRef,
    PodSeen,
)
from situate.core.config.decode import decode
from situate.core.config.defaults import default_configuration, with_defaults
from situate.core.effects import AskExtender, Bind, Effect, SetCondition
from situate.core.engine.engine import REFUSALS, Engine
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.pod import PodSchedulingGate
from situate.core.model.policy import PriorityClass
from situate.core.queue.queue import UNSCHEDULABLE_LIMIT_MS
from situate.core.queue.queued_pod import QueueState

SECOND = 1_000
WEB = PodRef("default", "web", "web")


def engine(*changes: Change, batch: int = 1_024) -> Engine:
    made = Engine(default_configuration(), batch=batch)
    made.step(0, changes)
    return made


def nodes(*names: str, cpu: str = "4", **fields: Any) -> list[Change]:
    return [NodeSeen(node(name, cpu=cpu, memory="8Gi", pods="110", **fields)) for name in names]


def web(**fields: Any) -> PodSeen:
    return PodSeen(pod("web", **{"uid": "web", "cpu": "1", **fields}))


def bound(effects: Iterable[Effect]) -> list[tuple[str, str]]:
    return [(effect.pod.name, effect.node) for effect in effects if isinstance(effect, Bind)]


def told(effects: Iterable[Effect]) -> list[tuple[str, str]]:
    return [(one.pod.name, one.message) for one in effects if isinstance(one, SetCondition)]


def asks(effects: Iterable[Effect]) -> list[AskExtender]:
    return [effect for effect in effects if isinstance(effect, AskExtender)]


def state_of(world: Engine, name: str) -> QueueState | None:
    entry = world.queue.get(f"default/{name}")
    return None if entry is None else entry.state


# -- pods ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"phase": "Failed"}, id="has failed"),
        pytest.param({"phase": "Succeeded"}, id="has succeeded"),
        pytest.param({"scheduler_name": "other"}, id="is another scheduler's"),
    ],
)
def test_a_waiting_pod_waits_no_longer_if_it(fields: dict[str, str]) -> None:
    world = engine(web())
    assert state_of(world, "web") is QueueState.UNSCHEDULABLE
    world.step(1, [web(**fields)])
    assert state_of(world, "web") is None
    assert bound(world.step(5 * SECOND, nodes("n1"))) == []


def test_a_pod_that_has_finished_does_not_count_in_its_gang_nor_demands_anything_for_it() -> None:
    world = engine(*nodes("n1"), PodSeen(member("t0", 3, node_name="n1")))
    world.step(1, [PodSeen(member("t0", 3, node_name="n1", phase="Succeeded"))])
    effects = world.step(2, [PodSeen(member("t1", 2))])
    assert told(effects) == [("t1", "waiting for 1 more pod of gang default/train: 1 of 2 are here")]


def test_a_pod_that_gets_gates_is_held_whatever_comes_and_active_at_once_when_they_are_gone() -> None:
    world = engine(web())
    assert state_of(world, "web") is QueueState.UNSCHEDULABLE
    gates = (PodSchedulingGate(name="g"),)
    world.step(1, [web(scheduling_gates=gates)])
    assert bound(world.step(2, [*nodes("n1"), web(scheduling_gates=gates, labels={"a": "b"})])) == []
    assert state_of(world, "web") is QueueState.GATED
    world.step(3, [Paused(True), web()])
    assert state_of(world, "web") is QueueState.ACTIVE, "without the rest of its backoff"
    assert bound(world.step(4, [Paused(False)])) == [("web", "n1")]


def test_room_of_a_pod_that_has_finished_is_free() -> None:
    world = engine(*nodes("n1"), web(node_name="n1", cpu="4"))
    assert bound(world.step(1, [web(node_name="n1", cpu="4", phase="Succeeded"), PodSeen(pod("x", cpu="4"))])) != []


def test_a_pod_of_the_same_name_takes_the_place_of_one_that_was_not_seen_to_leave() -> None:
    world = engine(*nodes("n1"), web(node_name="n1", cpu="4"))
    assert bound(world.step(1, [web(uid="younger", cpu="4")])) == [("web", "n1")]
    world.step(2, [PodGone(WEB)])
    assert world.cluster.uid_of(WEB.key) == "younger"


def test_pods_are_decided_in_the_order_of_their_arrival_and_no_more_than_a_batch_in_a_step() -> None:
    world = Engine(default_configuration(), batch=2)
    pods = [PodSeen(pod(f"p{at}", uid=f"p{at}", cpu="1")) for at in range(3)]
    assert [name for name, _ in bound(world.step(0, [*nodes("n1"), *pods]))] == ["p0", "p1"]
    assert world.next_due_ms(0) == 0
    assert [name for name, _ in bound(world.step(1, []))] == ["p2"]


def asking() -> tuple[Engine, AskExtender]:
    """An extender is being asked about a pod."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    extender = {"urlPrefix": "http://a", "filterVerb": "filter"}
    world = Engine(with_defaults(decode({**head, "extenders": [extender]})))
    (ask,) = asks(world.step(0, [*nodes("n1"), web()]))
    return world, ask


def test_a_pod_that_changes_while_an_extender_refuses_it_is_decided_again() -> None:
    world, ask = asking()
    owned = web(owner_references=(OwnerReference(kind="ReplicaSet", name="r", uid="r", controller=True),))
    assert len(asks(world.step(1, [owned, ExtenderSaid(ask.ask, nodes=())]))) == 1


def test_a_pod_of_which_only_the_status_changes_is_not_asked_about_again() -> None:
    world, ask = asking()
    assert asks(world.step(1, [web(phase="Pending"), ExtenderSaid(ask.ask, nodes=())])) == []
    assert asks(world.step(5 * SECOND, [web(nominated_node_name="")])) == []
    assert len(asks(world.step(6 * SECOND, [web(annotations={"a": "b"})]))) == 1


# -- other objects ---------------------------------------------------------------------------------------------------


def test_priority_classes_change_nothing() -> None:
    item = PriorityClass(metadata=ObjectMeta(name="high"), value=10)
    world = engine(web())
    assert world.step(5 * SECOND, [ObjectSeen(item)]) == []
    assert world.step(6 * SECOND, [ObjectGone(item)]) == []


# -- waking ----------------------------------------------------------------------------------------------------------


def test_a_standby_keeps_no_events_and_misses_none() -> None:
    world = engine(web())
    assert state_of(world, "web") is QueueState.UNSCHEDULABLE
    world.step(5 * SECOND, [Leading(False), *nodes("n1")])
    assert (world.state.events, state_of(world, "web")) == ([], QueueState.ACTIVE)
    assert bound(world.step(6 * SECOND, [Leading(True)])) == [("web", "n1")]


@pytest.mark.parametrize(
    "change, rescued",
    [
        pytest.param(nodes("n2"), 0, id="an event that it waited for came before its turn"),
        pytest.param(nodes("n1", cpu="1", labels={"a": "b"}), 1, id="no such event came"),
    ],
)
def test_a_pod_that_the_flush_put_back_was_rescued_only_if(change: list[Change], rescued: int) -> None:
    world = engine(*nodes("n1", cpu="1"), web(cpu="2"))
    assert state_of(world, "web") is QueueState.UNSCHEDULABLE
    world.step(UNSCHEDULABLE_LIMIT_MS, [Paused(True)])
    assert (state_of(world, "web"), world.queue.flushed) == (QueueState.ACTIVE, 1)
    world.step(UNSCHEDULABLE_LIMIT_MS + 1, change)
    # Its room comes in a way that no event tells of.
    world.cluster.add_node(node("n3", cpu="4", memory="8Gi", pods="110"))
    assert len(bound(world.step(UNSCHEDULABLE_LIMIT_MS + 2, [Paused(False)]))) == 1
    assert world.queue.rescued == rescued


def test_what_a_decision_frees_wakes_pods_in_the_same_step() -> None:
    """A nomination that is not needed any more is room for others at once."""
    world = engine(*nodes("n1", "n2"), PodSeen(pod("v", uid="v", cpu="4", node_name="n1")))
    world.step(1, [PodSeen(pod("w", uid="w", cpu="4", node_name="n2"))])
    world.step(2, [PodSeen(pod("boss", uid="boss", cpu="4", priority=10))])
    world.step(3, [PodSeen(pod("small", uid="small", cpu="4", priority=1))])
    effects = world.step(20 * SECOND, [*nodes("n3"), PodGone(PodRef("default", "v", "v"))])
    assert sorted(name for name, _ in bound(effects)) == ["boss", "small"]


def test_a_step_refuses_a_limited_number_of_pods_and_the_next_one_goes_on_at_once() -> None:
    pods = [PodSeen(pod(f"big-{n:02}", uid=f"big-{n}", cpu="64")) for n in range(REFUSALS + 3)]
    made = Engine(default_configuration())
    first = made.step(0, [*nodes("a"), *pods])
    assert len(told(first)) == REFUSALS
    assert made.next_due_ms(0) == 0
    assert len(told(made.step(0, []))) == 3
    assert made.next_due_ms(0) != 0
