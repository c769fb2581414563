"""Nominations and evictions: how long they last, what is tried again, and when it is given up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from builders import node, pod
from situate.core.changes import BindDone, Change, EvictFailed, Leading, NodeGone, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Effect, Evict, Nominate, Report
from situate.core.engine.engine import Engine
from situate.core.engine.in_flight import NOMINATION_LIMIT_MS
from situate.core.engine.preemptor import EVICT_TRIES
from situate.core.model.pod import PodSchedulingGate
from situate.core.queue.queued_pod import QueueState
from situate.core.versions import V1_36, V1_37, KubernetesRules
from worlds import HOST, distance, near

SECOND = 1_000
VICTIM = PodRef("default", "v", "v")


def nodes(*names: str) -> list[Change]:
    return [NodeSeen(node(name, cpu="4", memory="8Gi", pods="110")) for name in names]


def running(name: str, on: str, **fields: Any) -> PodSeen:
    return PodSeen(pod(name, uid=name, **{"cpu": "4", "node_name": on, **fields}))


def boss(**fields: Any) -> PodSeen:
    return PodSeen(pod("boss", uid="boss", **{"cpu": "4", "priority": 10, **fields}))


def preempting() -> Engine:
    """At 0, one pod was evicted for another."""
    engine = Engine(default_configuration())
    effects = engine.step(0, [*nodes("n1"), running("v", "n1"), boss()])
    assert (evicted(effects), nominated(effects)) == (["v"], [("boss", "n1")])
    return engine


def evicted(effects: Iterable[Effect]) -> list[str]:
    return [effect.victim.name for effect in effects if isinstance(effect, Evict)]


def nominated(effects: Iterable[Effect]) -> list[tuple[str, str]]:
    return [(effect.pod.name, effect.node) for effect in effects if isinstance(effect, Nominate)]


def bound(effects: Iterable[Effect]) -> list[tuple[str, str]]:
    return [(effect.pod.name, effect.node) for effect in effects if isinstance(effect, Bind)]


def state_of(engine: Engine, name: str) -> QueueState | None:
    entry = engine.queue.get(f"default/{name}")
    return None if entry is None else entry.state


# -- evictions -------------------------------------------------------------------------------------------------------


def test_a_victim_s_event_names_who_it_leaves_for() -> None:
    engine = Engine(default_configuration())
    effects = engine.step(0, [*nodes("n1"), running("v", "n1"), boss()])
    (event,) = [one for one in effects if isinstance(one, Report) and one.reason == "Preempted"]
    assert (event.pod, event.type, event.action) == (VICTIM, "Normal", "Preempting")
    assert (event.note, event.related) == ("Preempted by pod boss on node n1", PodRef("default", "boss", "boss"))


def test_an_eviction_that_fails_is_tried_again_ever_later_and_in_the_end_given_up() -> None:
    engine = preempting()
    now, waits = 0, []
    for _ in range(EVICT_TRIES - 1):
        assert evicted(engine.step(now, [EvictFailed(VICTIM, "no")])) == []
        due = engine.cycle.next_timer_ms()
        assert due is not None
        assert evicted(engine.step(due - 1, [])) == []
        assert evicted(engine.step(due, [])) == ["v"]
        waits.append(due - now)
        now = due
    assert waits == [500, 1_000, 2_000, 4_000]
    effects = engine.step(now, [EvictFailed(VICTIM, "no")])
    assert (nominated(effects), state_of(engine, "boss")) == ([("boss", "")], QueueState.BACKOFF)
    assert evicted(engine.step(now + 500, [])) == []
    assert evicted(engine.step(now + 60 * SECOND, [])) == ["v"], "it may be tried anew"


def test_a_failure_to_evict_a_pod_that_nobody_evicts_is_ignored() -> None:
    engine = preempting()
    assert engine.step(1, [EvictFailed(PodRef("default", "v", "older"), "no")]) == []
    assert evicted(engine.step(10 * SECOND, [])) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(PodGone(VICTIM), id="is gone"),
        pytest.param(running("v", "n1", deletion_timestamp="2026-01-01T00:00:00Z"), id="is leaving"),
        pytest.param(running("v", "n2"), id="is on another node"),
    ],
)
def test_an_eviction_is_not_tried_again_if_the_victim(change: Change) -> None:
    engine = preempting()
    engine.step(1, [*nodes("n2"), EvictFailed(VICTIM, "no"), change])
    assert evicted(engine.step(501, [])) == []


def test_a_victim_that_is_on_another_node_by_now_may_be_evicted_there() -> None:
    engine = preempting()
    engine.step(1, [*nodes("n2"), EvictFailed(VICTIM, "no"), running("v", "n2")])
    engine.step(501, [])
    chief = PodSeen(pod("chief", uid="chief", cpu="4", priority=20, node_selector={"disk": "ssd"}))
    disk = NodeSeen(node("n2", cpu="4", memory="8Gi", pods="110", labels={"disk": "ssd"}))
    assert evicted(engine.step(502, [disk, chief])) == ["v"]


# -- nominations -----------------------------------------------------------------------------------------------------


def test_a_nomination_ends_when_its_victims_have_not_left_in_time() -> None:
    engine = preempting()
    assert nominated(engine.step(NOMINATION_LIMIT_MS - 1, [])) == []
    came = sum(engine.metrics.incoming.values())
    assert nominated(engine.step(NOMINATION_LIMIT_MS, [])) == [("boss", "")]
    assert (state_of(engine, "boss"), engine.queue.unschedulable()) == (QueueState.BACKOFF, [])
    assert sum(engine.metrics.incoming.values()) == came + 1, "it came to the backoff queue once"
    entry = engine.queue.get("default/boss")
    assert entry is not None
    assert entry.nominated == ""


@pytest.mark.parametrize(
    "changes", [pytest.param([NodeGone("n1")], id="with its node"), pytest.param([], id="in vain")]
)
def test_a_gated_pod_whose_nomination_ends_stays_gated(changes: list[Change]) -> None:
    engine = Engine(default_configuration(V1_37))
    engine.step(0, [*nodes("n1"), boss(nominated_node_name="n1", scheduling_gates=(PodSchedulingGate(name="g"),))])
    assert nominated(engine.step(NOMINATION_LIMIT_MS, changes)) == [("boss", "")]
    assert state_of(engine, "boss") is QueueState.GATED


def test_the_time_limit_of_a_nomination_that_has_ended_does_nothing() -> None:
    engine = preempting()
    assert bound(engine.step(5 * SECOND, [PodGone(VICTIM)])) == [("boss", "n1")]
    engine.step(6 * SECOND, [BindDone(PodRef("default", "boss", "boss"), 2)])
    assert engine.step(NOMINATION_LIMIT_MS, []) == []


def test_the_time_limit_of_a_nomination_is_not_that_of_the_one_before() -> None:
    engine = Engine(default_configuration())
    engine.step(0, [Leading(False), *nodes("n1", "n2"), boss(nominated_node_name="n1")])
    engine.step(100 * SECOND, [boss(nominated_node_name="n2")])
    engine.step(NOMINATION_LIMIT_MS, [])
    assert len(engine.state.nominations) == 1
    engine.step(NOMINATION_LIMIT_MS + 100 * SECOND, [])
    assert len(engine.state.nominations) == 0


def test_a_pod_that_changes_keeps_its_nomination_and_the_time_it_ends() -> None:
    engine = preempting()
    assert nominated(engine.step(100 * SECOND, [boss(labels={"a": "b"})])) == []
    assert nominated(engine.step(NOMINATION_LIMIT_MS - 1, [])) == []
    assert nominated(engine.step(NOMINATION_LIMIT_MS, [])) == [("boss", "")]


@pytest.mark.parametrize("rules, taken", [(V1_36, [("small", "n1")]), (V1_37, [])], ids=["1.36", "1.37"])
def test_a_node_is_held_for_a_gated_pod_since_1_37(rules: KubernetesRules, taken: list[tuple[str, str]]) -> None:
    engine = Engine(default_configuration(rules))
    engine.step(0, [*nodes("n1"), boss(nominated_node_name="n1", scheduling_gates=(PodSchedulingGate(name="g"),))])
    assert bound(engine.step(1, [PodSeen(pod("small", uid="small", cpu="4"))])) == taken


def test_a_node_is_held_for_a_pod_once_its_gates_are_gone_in_1_36() -> None:
    engine = Engine(default_configuration(V1_36))
    wide = {"nominated_node_name": "n1", "cpu": "4"}
    engine.step(0, [*nodes("n1"), running("v", "n1"), boss(scheduling_gates=(PodSchedulingGate(name="g"),), **wide)])
    assert evicted(engine.step(1, [boss(**wide)])) == ["v"]
    entry = engine.queue.get("default/boss")
    assert entry is not None
    assert entry.nominated == "n1"


def test_a_node_is_held_for_a_pod_as_it_is_now() -> None:
    engine = Engine(default_configuration(V1_37))
    gates = (PodSchedulingGate(name="g"),)
    held = {"scheduling_gates": gates, "nominated_node_name": "n1"}
    engine.step(0, [*nodes("n1"), boss(**held)])
    small = PodSeen(pod("small", uid="small", cpu="2"))
    assert bound(engine.step(1, [small])) == []
    assert bound(engine.step(5 * SECOND, [boss(cpu="2", **held)])) == [("small", "n1")]


@pytest.mark.parametrize("priority, ends", [(9, True), (10, False)])
def test_a_nomination_ends_when_a_more_important_pod_gets_the_node(priority: int, ends: bool) -> None:
    engine = Engine(default_configuration(V1_37))
    gates = (PodSchedulingGate(name="g"),)
    lesser = pod("lesser", uid="l", cpu="1", priority=priority, nominated_node_name="n1", scheduling_gates=gates)
    effects = engine.step(0, [*nodes("n1"), running("v", "n1"), PodSeen(lesser), boss(cpu="3")])
    assert evicted(effects) == ["v"]
    assert nominated(effects) == ([("lesser", "")] if ends else []) + [("boss", "n1")]


def test_a_pod_whose_node_a_more_important_one_gets_looks_for_another_at_once() -> None:
    engine = Engine(default_configuration())
    disk = NodeSeen(node("n1", cpu="4", memory="8Gi", pods="110", labels={"disk": "ssd"}))
    engine.step(0, [disk, *nodes("n2"), running("v", "n1"), running("w", "n2", priority=5), boss()])
    chief = PodSeen(pod("chief", uid="chief", cpu="4", priority=20, node_selector={"disk": "ssd"}))
    effects = engine.step(5 * SECOND, [chief])
    assert nominated(effects) == [("boss", ""), ("chief", "n1"), ("boss", "n2")]
    assert evicted(effects) == ["w"]


def test_a_pod_that_gets_another_node_leaves_the_first_to_those_who_wait_for_it() -> None:
    engine = Engine(default_configuration(V1_37))
    disk = NodeSeen(node("n2", cpu="4", memory="8Gi", pods="110", labels={"disk": "ssd"}))
    picky = {"node_selector": {"disk": "ssd"}, "nominated_node_name": "n1"}
    held = boss(scheduling_gates=(PodSchedulingGate(name="g"),), **picky)
    engine.step(0, [*nodes("n1"), disk, running("w", "n2", priority=5), held])
    assert bound(engine.step(1, [PodSeen(pod("small", uid="small", cpu="4"))])) == []
    effects = engine.step(5 * SECOND, [boss(**picky)])
    assert (nominated(effects), evicted(effects)) == ([("boss", "n2")], ["w"])
    assert bound(effects) == [("small", "n1")]


def test_a_pod_that_loses_its_node_looks_for_another_though_what_it_waits_for_did_not_happen() -> None:
    """It shuns others, and not itself: that its own nomination ends is no event for it."""
    engine = Engine(default_configuration())
    room: dict[str, Any] = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    both = [
        NodeSeen(node(name, labels={HOST: name, "disk": kind}, **room)) for name, kind in (("n1", "ssd"), ("n2", ""))
    ]
    shunned = {"labels": {"app": "a"}}
    victims = [running("v", "n1", **shunned), running("w", "n2", priority=5, cpu="1", **shunned)]
    effects = engine.step(0, [*both, *victims, boss(cpu="1", affinity=distance(near(HOST)))])
    assert (nominated(effects), evicted(effects)) == ([("boss", "n1")], ["v"])
    chief = PodSeen(pod("chief", uid="chief", cpu="4", priority=20, node_selector={"disk": "ssd"}))
    effects = engine.step(5 * SECOND, [chief])
    assert nominated(effects) == [("boss", ""), ("chief", "n1"), ("boss", "n2")]
    assert evicted(effects) == ["w"]


def test_a_standby_follows_the_leader_from_node_to_node() -> None:
    engine = Engine(default_configuration())
    engine.step(0, [Leading(False), *nodes("n1", "n2"), boss(nominated_node_name="n1")])
    assert [one.node for one in engine.state.nominations.values()] == ["n1"]
    engine.step(1, [boss(nominated_node_name="n2")])
    assert [one.node for one in engine.state.nominations.values()] == ["n2"]
    engine.step(2, [boss()])
    entry = engine.queue.get("default/boss")
    assert entry is not None
    assert (len(engine.state.nominations), entry.nominated) == (0, "")
