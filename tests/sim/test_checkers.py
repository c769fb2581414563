"""Checkers on steps that are made by hand: what they excuse, and what they do not."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from builders import node, pod
from device_builders import claim, device, device_class, exactly, owned_by, pod_with, slice_of
from device_builders import node as device_node
from situate.core.changes import Change, NodeGone, NodeSeen, ObjectSeen, PodSeen
from situate.core.config.decode import decode
from situate.core.config.defaults import with_defaults
from situate.core.effects import AskExtender, Bind, BindClaims, BindVolumes, Effect, SetCondition
from situate.core.engine.engine import Engine
from situate.core.model.named import NamedObject
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.sim.checkers import JUST_NOW_MS, Checkers
from situate.sim.steps import SchedulerStep
from storage_builders import claimed, storage_class, volume, waiting

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
FILTERS = {"urlPrefix": "http://a", "filterVerb": "filter"}
DRAWS = {"schedulerName": "default-scheduler", "nodeSample": 1}
LOOKS_AT_ALL = {"schedulerName": "default-scheduler"}


class Checked:
    """A scheduler whose every step is checked."""

    def __init__(self, profile: dict[str, Any], *extenders: dict[str, Any]) -> None:
        config = with_defaults(decode({**HEAD, "profiles": [profile], "extenders": list(extenders)}))
        self.engine = Engine(config)
        self.checkers = Checkers(self.engine, config, lambda *_: True)
        self.steps = 0

    def step(self, now: int, changes: Sequence[Change]) -> list[Effect]:
        self.steps += 1
        effects = self.engine.step(now, changes)
        assert list(self.checkers.after(SchedulerStep(self.steps, now, changes, effects))) == []
        return effects

    def late(self, now: int) -> list[str]:
        return list(self.checkers.waiting_that_fit(now))


ARRIVALS: tuple[Change, ...] = (
    NodeSeen(node("n1", cpu="4", memory="8Gi", pods="10")),
    PodSeen(pod("web", uid="web", cpu="1")),
)


@pytest.mark.parametrize(
    "profile, late",
    [
        pytest.param(DRAWS, [], id="that draws nodes may have drawn it just now"),
        pytest.param(
            LOOKS_AT_ALL, ["not bound: default/web is in flight, and fits n1"], id="that sees all nodes is late"
        ),
    ],
)
def test_a_pod_about_which_an_extender_is_being_asked_at_the_end(profile: dict[str, Any], late: list[str]) -> None:
    checked = Checked(profile, FILTERS)
    assert [type(effect) for effect in checked.step(0, ARRIVALS)] == [AskExtender]
    assert checked.late(10) == late


@pytest.mark.parametrize(
    "profile, after_ms, late",
    [
        pytest.param(DRAWS, JUST_NOW_MS - 1, False, id="of a pod that draws nodes, just now"),
        pytest.param(DRAWS, JUST_NOW_MS, True, id="of a pod that draws nodes, a while ago"),
        pytest.param(LOOKS_AT_ALL, 1, True, id="of a pod that sees all nodes"),
    ],
)
def test_a_bind_that_was_asked_for_before_the_end(profile: dict[str, Any], after_ms: int, late: bool) -> None:
    checked = Checked(profile)
    assert [type(effect) for effect in checked.step(0, ARRIVALS)] == [Bind]
    assert checked.late(after_ms) == (["not bound: default/web has n1, and is not bound"] if late else [])


def test_a_bind_before_the_volumes_are_bound_is_found() -> None:
    checked = Checked(LOOKS_AT_ALL)
    objects: tuple[NamedObject, ...] = (
        storage_class("late", provisioner="kubernetes.io/no-provisioner"),
        volume("v1", class_name="late"),
        waiting("data", "late"),
    )
    web = PodSeen(pod("web", uid="web", cpu="1", volumes=claimed("data")))
    (ask,) = checked.step(0, [ARRIVALS[0], *map(ObjectSeen, objects), web])
    assert isinstance(ask, BindVolumes)
    early = Bind(ask.pod, ask.node, ask.attempt)
    assert list(checked.checkers.after(SchedulerStep(2, 1, (), [early]))) == [
        "volumes: default/web is to be bound, and its volumes are not"
    ]


def gang_pod(name: str, **fields: Any) -> PodSeen:
    labels = {"situate.dev/gang": "train", "situate.dev/gang-size": "3"}
    return PodSeen(pod(name, uid=name, labels=labels, cpu="2", **fields))


def test_a_gang_that_fits_only_if_equal_nodes_are_tried_in_another_order_is_not_late() -> None:
    """Of equal nodes the first is chosen, and no pod is moved within a plan. A new node has the row of an old one."""

    def machine(name: str) -> NodeSeen:
        return NodeSeen(node(name, cpu="2", memory="8Gi", pods="10", labels={"disk": name}))

    checked = Checked(LOOKS_AT_ALL)
    checked.step(0, [machine("old"), machine("hdd1"), machine("hdd2")])
    checked.step(1, [NodeGone("old"), machine("ssd")])
    checked.step(2, [gang_pod("a"), gang_pod("b", node_selector={"disk": "ssd"}), gang_pod("c")])
    assert checked.late(3) == []
    missed = NodeSeen(node("large", cpu="8", memory="8Gi", pods="10", labels={"disk": "ssd"}))
    assert list(checked.checkers.after(SchedulerStep(4, 4, [missed], []))) == []
    assert checked.late(5) == ["not bound: gang default/train needs 3 more, and 3 fit"]


ROOM: dict[str, Any] = {"cpu": "1", "memory": "8Gi", "pods": "10"}


def one_more_than_placed(checked: Checked, size: int, *nodes: NodeSeen) -> QueuedPod:
    """A gang of which one pod fills n1, and another comes."""
    group = {"situate.dev/gang": "train", "situate.dev/gang-size": str(size)}
    placed = pod("a", uid="a", labels=group, cpu="1", node_name="n1")
    checked.step(0, [NodeSeen(node("n1", **ROOM)), *nodes, PodSeen(placed)])
    checked.step(1, [PodSeen(pod("b", uid="b", labels=group, cpu="1"))])
    waits = checked.engine.queue.get("default/b")
    assert waits is not None
    return waits


def test_a_pod_of_a_whole_gang_may_still_draw_the_right_node() -> None:
    checked = Checked(DRAWS)
    cordoned = [NodeSeen(node(f"c{number}", **ROOM, unschedulable=True)) for number in range(9)]
    waits = one_more_than_placed(checked, 1, *cordoned, NodeSeen(node("n2", **ROOM)))
    assert waits.state is QueueState.BACKOFF
    assert checked.late(2) == []


@pytest.mark.parametrize(
    "profile, size, needed",
    [
        pytest.param(LOOKS_AT_ALL, 1, 0, id="by itself, with all nodes"),
        pytest.param(DRAWS, 2, 1, id="in a plan, which draws no nodes"),
    ],
)
def test_a_pod_of_a_gang_that_would_be_placed_is_late(profile: dict[str, Any], size: int, needed: int) -> None:
    checked = Checked(profile)
    one_more_than_placed(checked, size)
    missed = NodeSeen(node("n2", **ROOM))
    assert list(checked.checkers.after(SchedulerStep(3, 2, [missed], []))) == []
    assert checked.late(3) == [f"not bound: gang default/train needs {needed} more, and 1 fit"]


def nominated_with_claim(name: str) -> tuple[PodSeen, ObjectSeen]:
    """A pod whose status nominates n1, and the claim that it waits for."""
    waits = pod_with(name, f"{name}-c", generated=True)
    waits = replace(waits, status=replace(waits.status, nominated_node_name="n1"))
    return PodSeen(waits), ObjectSeen(claim(f"{name}-c", exactly(), ownerReferences=owned_by(name)))


def with_room_for_one() -> Checked:
    checked = Checked(LOOKS_AT_ALL)
    devices = ObjectSeen(slice_of("n1", device("g1"), device("g2")))
    checked.step(0, [ObjectSeen(device_class()), NodeSeen(device_node("n1", pods="1")), devices])
    return checked


def test_two_nominated_pods_whose_claims_come_at_once_may_keep_each_other_out() -> None:
    """Another scheduler nominated the node for both. The first is refused for the second's sake, and gives it up."""
    checked = with_room_for_one()
    (first, first_claim), (second, second_claim) = map(nominated_with_claim, "ab")
    assert checked.step(1, [first, second]) == []
    effects = checked.step(2, [first_claim, second_claim])
    assert isinstance(effects[0], SetCondition)
    assert effects[0].pod.name == "a"
    assert [effect.pod.name for effect in effects if isinstance(effect, BindClaims)] == ["b"]


def test_a_nominated_pod_that_waits_for_a_claim_holds_no_node() -> None:
    checked = with_room_for_one()
    waits, awaited = nominated_with_claim("a")
    assert checked.step(1, [waits]) == []
    (bind,) = checked.step(2, [PodSeen(pod("web", uid="web"))])
    assert isinstance(bind, Bind)
    effects = checked.step(3, [awaited])
    assert {effect.pod.name for effect in effects if isinstance(effect, SetCondition)} == {"a"}


def test_a_pod_that_goes_on_waiting_for_claims_that_are_there_is_found() -> None:
    checked = with_room_for_one()
    waits, awaited = nominated_with_claim("a")
    checked.step(1, [waits])
    assert "gated: default/a waits for claims, and has them all" in list(
        checked.checkers.after(SchedulerStep(3, 2, [awaited], []))
    )
