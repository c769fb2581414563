"""The scheduling cycle where something goes wrong: plugins raise, volumes are not to be had, pods and nodes leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pytest

from builders import node, pod
from gang_world import member
from situate.core.changes import (
    BindFailed,
    Change,
    ExtenderSaid,
    NodeGone,
    NodeSeen,
    ObjectSeen,
    Paused,
    PodGone,
    PodRef,
    PodSeen,
)
from situate.core.config.decode import decode
from situate.core.config.defaults import with_defaults
from situate.core.contract import Codes, Failure, Scores
from situate.core.effects import AskExtender, Bind, Effect, Report, SetCondition
from situate.core.engine.binding import NO_VOLUMES
from situate.core.engine.engine import Engine
from situate.core.place.selecting import NOWHERE
from situate.core.queue.queued_pod import QueueState
from situate.core.state.classes import PodClass
from situate.core.state.view import View
from storage_builders import claimed, storage_class, waiting

SECOND = 1_000
FILTERS = {"urlPrefix": "http://a", "filterVerb": "filter"}
WEB = PodRef("default", "web", "web")


class Faulty:
    """Raises where it is told to."""

    name = "Faulty"
    raises_at: ClassVar[str] = ""

    def check(self, pod: PodClass, view: View) -> Codes | Failure | None:
        self._ask("check")
        return Failure("the list is gone") if Faulty.raises_at == "nowhere" else None

    def score(self, pod: PodClass, view: View) -> Scores | None:
        self._ask("score")
        return None

    def assign(self, pod: PodClass, view: View, row: int) -> Mapping[str, str]:
        self._ask("assign")
        return {}

    def _ask(self, at: str) -> None:
        if Faulty.raises_at == at:
            raise RuntimeError("out of order")


def engine(*extenders: dict[str, Any], plugins: dict[str, Any] | None = None) -> Engine:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profile = {"plugins": plugins or {"multiPoint": {"enabled": [{"name": "Faulty"}]}}}
    config = with_defaults(decode({**head, "extenders": list(extenders), "profiles": [profile]}))
    Faulty.raises_at = ""
    return Engine(config, {"Faulty": Faulty})


def nodes(*names: str, **fields: Any) -> list[Change]:
    return [NodeSeen(node(name, **{"cpu": "4", "memory": "8Gi", "pods": "110", **fields})) for name in names]


def web(**fields: Any) -> PodSeen:
    return PodSeen(pod("web", uid="web", **{"cpu": "1", **fields}))


def bound(effects: Iterable[Effect]) -> list[tuple[str, str]]:
    return [(effect.pod.name, effect.node) for effect in effects if isinstance(effect, Bind)]


def asks(effects: Iterable[Effect]) -> list[AskExtender]:
    return [effect for effect in effects if isinstance(effect, AskExtender)]


def told(effects: Iterable[Effect]) -> list[tuple[str, str, str]]:
    return [(one.pod.name, one.reason, one.message) for one in effects if isinstance(one, SetCondition)]


def state_of(world: Engine, name: str) -> QueueState | None:
    entry = world.queue.get(f"default/{name}")
    return None if entry is None else entry.state


# -- plugins that raise --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["check", "score", "assign"])
def test_a_plugin_that_raises_costs_the_pod_a_retry(at: str) -> None:
    world = engine()
    world.step(0, nodes("n1", "n2"))
    Faulty.raises_at = at
    ((name, reason, message),) = told(world.step(0, [web()]))
    assert (name, reason, state_of(world, "web")) == ("web", "SchedulerError", QueueState.BACKOFF)
    assert "Faulty" in message
    entry = world.queue.get(WEB.key)
    assert entry is not None
    assert entry.message == message
    Faulty.raises_at = ""
    assert [name for name, _ in bound(world.step(2 * SECOND, []))] == ["web"]


def test_a_plugin_that_raises_when_it_is_asked_why_a_pod_fits_nowhere_costs_it_a_retry() -> None:
    world = engine()
    world.cycle.witness = lambda entry, row: setattr(Faulty, "raises_at", "check")
    ((_, reason, message),) = told(world.step(0, [*nodes("n1"), web(cpu="64")]))
    assert (reason, state_of(world, "web")) == ("SchedulerError", QueueState.BACKOFF)
    assert "Faulty" in message


def test_a_plugin_that_cannot_answer_costs_the_pod_a_retry() -> None:
    world = engine()
    Faulty.raises_at = "nowhere"
    effects = world.step(0, [*nodes("n1"), web()])
    assert told(effects) == [("web", "SchedulerError", 'running PreFilter plugin "Faulty": the list is gone')]
    assert state_of(world, "web") is QueueState.BACKOFF


@pytest.mark.parametrize("at", ["check", "score", "assign"])
def test_a_plugin_that_raises_costs_every_pod_of_the_gang_a_retry(at: str) -> None:
    world = engine()
    world.step(0, nodes("n1", "n2"))
    Faulty.raises_at = at
    effects = world.step(0, [PodSeen(member("t0", 2)), PodSeen(member("t1", 2))])
    assert [(name, reason) for name, reason, _ in told(effects)] == [("t0", "SchedulerError"), ("t1", "SchedulerError")]
    assert [state_of(world, name) for name in ("t0", "t1")] == [QueueState.BACKOFF] * 2
    Faulty.raises_at = ""
    assert sorted(name for name, _ in bound(world.step(2 * SECOND, []))) == ["t0", "t1"]


def test_a_plugin_that_raises_when_a_refused_gang_is_tried_again_leaves_no_pod_unschedulable() -> None:
    world = engine()
    gang = [PodSeen(member("t0", 2)), PodSeen(member("t1", 2, cpu="16"))]
    world.step(0, [*nodes("n1", cpu="1"), *gang])
    assert [state_of(world, name) for name in ("t0", "t1")] == [QueueState.UNSCHEDULABLE] * 2
    Faulty.raises_at = "check"
    world.step(5 * SECOND, nodes("n2", cpu="8"))  # which helps the smaller one only
    assert [state_of(world, name) for name in ("t0", "t1")] == [QueueState.BACKOFF] * 2
    assert world.queue.unschedulable() == []


@pytest.mark.parametrize("at", ["check", "score", "assign"])
def test_a_plugin_that_raises_after_extenders_have_answered_costs_the_pod_a_retry(at: str) -> None:
    world = engine(FILTERS)
    (ask,) = asks(world.step(0, [*nodes("n1", "n2"), web()]))
    Faulty.raises_at = at
    ((name, reason, message),) = told(world.step(1, [ExtenderSaid(ask.ask, nodes=("n1", "n2"))]))
    assert (name, reason, state_of(world, "web")) == ("web", "SchedulerError", QueueState.BACKOFF)
    assert "Faulty" in message


# -- volumes that are not to be had --------------------------------------------------------------------------------

UNCHECKED = {
    "filter": {"disabled": [{"name": "VolumeBinding"}]},
    "preFilter": {"disabled": [{"name": "VolumeBinding"}]},
}
"""Nobody filters by volumes, so that they are missed only when the pod is reserved."""


def without_volumes() -> list[Change]:
    late = storage_class("late", provisioner="kubernetes.io/no-provisioner")
    return [*nodes("n1"), ObjectSeen(late), ObjectSeen(waiting("data", "late")), web(volumes=claimed("data"))]


def test_a_pod_whose_volumes_are_not_to_be_had_on_its_node_is_tried_again_later() -> None:
    world = engine(plugins=UNCHECKED)
    effects = world.step(0, without_volumes())
    assert told(effects) == [("web", "SchedulerError", NO_VOLUMES.format("n1"))]
    assert (state_of(world, "web"), bound(effects)) == (QueueState.BACKOFF, [])
    assert world.cluster.counted(WEB.key) is None


def test_so_is_one_that_an_extender_was_asked_about() -> None:
    world = engine(FILTERS, plugins=UNCHECKED)
    (ask,) = asks(world.step(0, without_volumes()))
    effects = world.step(1, [ExtenderSaid(ask.ask, nodes=("n1",))])
    assert told(effects) == [("web", "SchedulerError", NO_VOLUMES.format("n1"))]
    assert (state_of(world, "web"), bound(effects)) == (QueueState.BACKOFF, [])


# -- who is decided, and when --------------------------------------------------------------------------------------


def test_a_pod_that_is_being_deleted_is_not_scheduled() -> None:
    world = engine()
    world.step(0, [Paused(True), *nodes("n1"), web()])
    effects = world.step(1, [Paused(False), web(deletion_timestamp="2026-01-01T00:00:00Z")])
    assert [(one.type, one.reason, one.action, one.note) for one in effects if isinstance(one, Report)] == [
        ("Warning", "FailedScheduling", "Scheduling", "skip schedule deleting pod: default/web")
    ]
    assert (bound(effects), told(effects), state_of(world, "web")) == ([], [], None)


def test_a_witness_sees_every_choice_before_it_is_carried_out() -> None:
    world = engine()
    seen: list[tuple[str, int, QueueState]] = []
    world.cycle.witness = lambda entry, row: seen.append((entry.key, row, entry.state))
    world.step(0, [*nodes("n0", cpu="1"), *nodes("n1"), web(cpu="2"), PodSeen(pod("big", uid="big", cpu="64"))])
    assert seen == [("default/web", 1, QueueState.IN_FLIGHT), ("default/big", NOWHERE, QueueState.IN_FLIGHT)]


def test_a_refusal_ends_a_row_of_failures() -> None:
    """A pod that failed keeps its backoff; one that was refused may be decided early."""
    world = engine()
    world.step(0, [*nodes("n1"), web()])
    world.step(1, [BindFailed(WEB, 1, "no", final=True)])
    refused = world.step(2 * SECOND, nodes("n1", unschedulable=True))
    assert [reason for _, reason, _ in told(refused)] == ["Unschedulable"]
    assert bound(world.step(2 * SECOND + 1, nodes("n1"))) == [("web", "n1")]


def test_a_pod_whose_nodes_filled_up_while_extenders_were_asked_is_decided_again_whatever_its_backoff() -> None:
    world = engine(FILTERS)
    world.step(0, [*nodes("n1", unschedulable=True), web()])
    assert state_of(world, "web") is QueueState.UNSCHEDULABLE
    (ask,) = asks(world.step(1, nodes("n1", "n2")))
    full = PodSeen(pod("full", uid="full", cpu="4", node_name="n1"))
    (again,) = asks(world.step(2, [full, ExtenderSaid(ask.ask, nodes=("n1",))]))
    assert again.nodes == ("n2",)


# -- nodes that leave ----------------------------------------------------------------------------------------------


def test_a_node_that_was_never_seen_may_be_gone() -> None:
    world = engine()
    world.step(0, [*nodes("n1"), PodSeen(pod("old", uid="old", cpu="1", node_name="ghost"))])
    assert world.step(1, [NodeGone("ghost"), NodeGone("nobody")]) == []
    assert bound(world.step(2, [web(cpu="4")])) == [("web", "n1")]


def test_the_pods_of_a_node_that_left_are_in_nobody_s_way() -> None:
    world = engine()
    world.step(0, [*nodes("n1"), PodSeen(pod("old", uid="old", cpu="4", node_name="n1")), web(cpu="4")])
    assert state_of(world, "web") is QueueState.UNSCHEDULABLE
    world.step(5 * SECOND, [NodeGone("n1")])
    assert bound(world.step(9 * SECOND, [*nodes("n1"), PodGone(PodRef("default", "old", "old"))])) == [("web", "n1")]


# -- who is held -----------------------------------------------------------------------------------------------------


def test_a_pod_that_is_held_for_its_gang_is_told_why_in_its_condition_and_in_an_event() -> None:
    world = engine()
    effects = world.step(0, [*nodes("n1"), PodSeen(member("t0", 2))])
    reason = "waiting for 1 more pod of gang default/train: 1 of 2 are here"
    assert told(effects) == [("t0", "WaitingForGang", reason)]
    assert [(one.type, one.reason, one.action, one.note) for one in effects if isinstance(one, Report)] == [
        ("Normal", "WaitingForGang", "Scheduling", reason)
    ]
    entry = world.queue.get("default/t0")
    assert entry is not None
    assert (entry.state, entry.message) == (QueueState.GATED, reason)
