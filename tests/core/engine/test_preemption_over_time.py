"""Preemption over time: evictions take a while, and until the victims are gone others look for room too."""

from collections.abc import Sequence
from typing import Any

import pytest

from builders import node, pod
from situate.core.changes import Change, EvictDone, NodeGone, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Effect, Evict, Nominate, SetCondition
from situate.core.engine.engine import Engine
from situate.core.model.pod import Pod, PodCondition

SECOND = 1_000
LEAVING = "2026-01-10T00:00:00Z"


class World:
    """An engine, and the pods that it was shown. Evictions are carried out when the test says so."""

    def __init__(self, nodes: int, *bound: Pod, cpu: str = "4") -> None:
        self.engine = Engine(default_configuration())
        self.now = 0
        self.pods = {each.metadata.name: each for each in bound}
        self.evicted: list[str] = []
        self.nominated: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self.step(*(NodeSeen(node(f"n{at}", cpu=cpu, memory="64Gi", pods="110")) for at in range(nodes)))
        self.step(*(PodSeen(each) for each in bound))

    def step(self, *changes: Change, after: int = 0) -> list[Effect]:
        self.now += after
        effects = self.engine.step(self.now, changes)
        for effect in effects:
            match effect:
                case Evict(victim):
                    self.evicted.append(victim.name)
                case Nominate(ref, where):
                    self.nominated[ref.name] = where
                case SetCondition(ref, message=message):
                    self.told[ref.name] = message
                case _:
                    pass
        return effects

    def come(self, *names: str, priority: int = 100, cpu: str = "2", **fields: Any) -> list[Effect]:
        made = [pod(name, uid=name, priority=priority, cpu=cpu, **fields) for name in names]
        self.pods.update((each.metadata.name, each) for each in made)
        return self.step(*(PodSeen(each) for each in made))

    def leave(self, *names: str) -> list[Effect]:
        """Pods are gone, and a second passes."""
        return self.step(*(PodGone(PodRef("default", name, name)) for name in names), after=SECOND)

    def bound(self, effects: Sequence[Effect]) -> dict[str, str]:
        return {effect.pod.name: effect.node for effect in effects if isinstance(effect, Bind)}


def running(name: str, where: int = 0, cpu: str = "4", priority: int = 0, **fields: Any) -> Pod:
    fields.setdefault("start_time", "2026-01-01T00:00:00Z")
    return pod(name, uid=name, node_name=f"n{where}", cpu=cpu, priority=priority, **fields)


def preempted(each: Pod) -> Pod:
    """The same pod as it is seen while it leaves."""
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    return running(
        each.metadata.name,
        int(each.spec.node_name.removeprefix("n")),
        each.spec.containers[0].resources.requests["cpu"],  # type: ignore[arg-type]
        deletion_timestamp=LEAVING,
        conditions=(condition,),
    )


# -- several preemptors ----------------------------------------------------------------------------------------------


def test_as_many_preemptors_as_nodes_get_a_node_each_and_each_victim_is_evicted_once() -> None:
    count = 7
    world = World(count, *(running(f"v{at}", at) for at in range(count)))
    world.come(*(f"p{at}" for at in range(count)), cpu="3")
    assert sorted(world.nominated.values()) == [f"n{at}" for at in range(count)]
    assert sorted(world.evicted) == [f"v{at}" for at in range(count)]


def test_the_preemptor_too_many_is_told_so_and_evicts_nobody() -> None:
    world = World(1, running("v"))
    world.come("first", "second", cpu="3")
    assert world.nominated == {"first": "n0"}
    assert world.evicted == ["v"]
    assert world.told["second"] == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are "
        "available: 1 Insufficient cpu."
    )


def test_what_the_first_leaves_of_the_freed_room_the_second_may_have() -> None:
    world = World(1, running("v"))
    world.come("first", "second", cpu="2")
    assert world.nominated == {"first": "n0", "second": "n0"}
    assert world.evicted == ["v"]


def test_a_second_preemptor_on_the_node_evicts_those_that_the_first_did_not_need_gone() -> None:
    world = World(1, running("old", cpu="2"), running("young", cpu="2", start_time="2026-01-02T00:00:00Z"))
    world.come("first", cpu="2")
    assert world.evicted == ["young"]
    world.come("second", cpu="2")
    assert world.evicted == ["young", "old"]


def test_when_the_victims_are_gone_each_preemptor_is_bound_where_it_was_promised() -> None:
    world = World(3, *(running(f"v{at}", at) for at in range(3)))
    world.come("p0", "p1", "p2", cpu="3")
    effects = world.leave("v0", "v1", "v2")
    assert world.bound(effects) == world.nominated == {"p0": "n0", "p1": "n1", "p2": "n2"}
    assert len(world.evicted) == 3


# -- other priorities ------------------------------------------------------------------------------------------------


def test_a_lower_preemptor_does_not_get_the_node_that_a_higher_one_was_promised() -> None:
    world = World(2, running("a", 0), running("b", 1, priority=50))
    world.come("higher", priority=100, cpu="3")
    assert world.nominated == {"higher": "n0"}
    world.come("lower", priority=40, cpu="3")
    assert world.nominated == {"higher": "n0"}
    assert world.evicted == ["a"]


def test_a_lower_pod_does_not_get_the_room_when_it_is_free() -> None:
    world = World(1, running("v"))
    world.come("higher", priority=100, cpu="3")
    world.come("lower", priority=40, cpu="3")
    effects = world.leave("v")
    assert world.bound(effects) == {"higher": "n0"}


def test_a_higher_preemptor_may_take_a_promised_node_and_the_lower_one_is_told_that_it_lost_it() -> None:
    world = World(1, running("v"))
    world.come("lower", priority=50, cpu="3")
    assert world.nominated == {"lower": "n0"}
    world.come("higher", priority=100, cpu="3")
    assert world.nominated == {"lower": "", "higher": "n0"}
    assert world.evicted == ["v"], "it has been asked to leave already"
    effects = world.leave("v")
    assert world.bound(effects) == {"higher": "n0"}


def test_a_preemptor_of_the_same_priority_gets_another_node() -> None:
    world = World(2, running("a", 0), running("b", 1, priority=1))
    world.come("first", cpu="3")
    world.come("second", cpu="3")
    assert world.nominated == {"first": "n0", "second": "n1"}
    assert world.evicted == ["a", "b"]


# -- while victims are leaving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seen", [pytest.param(True, id="they are seen leaving"), pytest.param(False, id="they do not show it yet")]
)
def test_a_preemptor_that_is_tried_again_waits_for_its_victims_and_evicts_nobody_else(seen: bool) -> None:
    world = World(2, running("a", 0), running("b", 1, priority=1))
    world.come("p", cpu="3")
    changes: list[Change] = [EvictDone(PodRef("default", "a", "a"))]
    if seen:
        changes.append(PodSeen(preempted(world.pods["a"])))
    world.step(*changes)
    # A new node is a reason to try again; and an eviction there would do less harm.
    world.step(
        NodeSeen(node("n2", cpu="4", memory="64Gi", pods="110")), PodSeen(running("c", 2, priority=-1)), after=SECOND
    )
    world.step(after=20 * SECOND)
    waiting = world.engine.queue.get("default/p")
    assert waiting is not None
    assert waiting.attempts == 2
    assert world.told["p"].endswith("preemption: not eligible due to a terminating pod on the nominated node.")
    assert world.evicted == ["a"]
    assert world.nominated == {"p": "n0"}


def test_a_preemptor_whose_node_dies_looks_for_another() -> None:
    world = World(2, running("a", 0), running("b", 1, priority=1))
    world.come("p", cpu="3")
    assert world.nominated == {"p": "n0"}
    world.step(NodeGone("n0"))
    world.step(after=20 * SECOND)
    assert world.nominated == {"p": "n1"}
    assert world.evicted == ["a", "b"]


def test_a_preemptor_that_can_be_helped_no_more_gives_its_node_back() -> None:
    world = World(1, running("v"))
    world.come("p", cpu="3")
    assert world.nominated == {"p": "n0"}
    # The node shrinks, so that the pod would not fit on it even if it were empty.
    world.step(NodeSeen(node("n0", cpu="2", memory="64Gi", pods="110")), after=5 * SECOND)
    world.leave("v")
    world.step(after=20 * SECOND)
    assert world.nominated == {"p": ""}
    assert not len(world.engine.state.nominations)


def test_a_victim_that_was_not_bound_yet_is_forgotten_though_only_the_next_pod_of_its_name_is_seen() -> None:
    world = World(1)
    world.come("low", cpu="4", priority=0)
    world.come("high", cpu="4")
    assert world.evicted == ["low"]
    leaving = pod("low", uid="low", cpu="4", priority=0, deletion_timestamp=LEAVING)
    world.step(EvictDone(PodRef("default", "low", "low")), PodSeen(leaving))
    world.step(PodSeen(pod("low", uid="again", cpu="4", priority=0)))
    assert world.engine.state.evictions == {}
