"""Gangs and extenders only return actions: they change neither the queue nor the cluster, and emit no effect."""

import ast
from pathlib import Path

import pytest

from builders import node, pod
from situate.core.changes import NodeSeen, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.engine import consultations, extenders, gang_attempt, gang_scheduling
from situate.core.engine.actions import EndNomination, Hold, Reserve, StartAttempt
from situate.core.engine.engine import Engine
from situate.core.engine.gang_scheduling import GangScheduling
from situate.core.engine.timers import Timers
from situate.core.queue.queued_pod import QueuedPod, QueueState

GANG = {"situate.dev/gang": "train", "situate.dev/gang-size": "2"}


@pytest.mark.parametrize(
    "module", [consultations, extenders, gang_attempt, gang_scheduling], ids=lambda one: one.__name__
)
def test_who_returns_actions_does_not_know_the_cycle(module: object) -> None:
    source = Path(str(module.__file__)).read_text()  # type: ignore[attr-defined]
    imported = {one.module for one in ast.walk(ast.parse(source)) if isinstance(one, ast.ImportFrom)}
    assert imported.isdisjoint(f"situate.core.engine.{name}" for name in ("cycle", "binding", "preemptor", "engine"))


def standby(*pods: PodSeen) -> tuple[Engine, GangScheduling, list[QueuedPod]]:
    engine = Engine(default_configuration())
    engine.leading = False
    engine.step(0, [NodeSeen(node("n1", cpu="8", memory="8Gi", pods="110")), *pods])
    return engine, engine.cycle.gangs, engine.queue.values()


def member(name: str) -> PodSeen:
    return PodSeen(pod(name, cpu="1", labels=GANG))


def test_a_gang_that_fits_is_returned_as_reservations() -> None:
    engine, gangs, entries = standby(member("a"), member("b"))
    found = list(gangs.decide(entries[0]) or ())
    assert [type(one) for one in found] == [StartAttempt, Reserve, Reserve]
    assert [one.row for one in found if isinstance(one, Reserve)] == [0, 0]
    assert ([entry.state for entry in entries], engine.state.effects) == ([QueueState.ACTIVE] * 2, [])
    assert (engine.state.reservations, engine.cluster.pods.rows) == ({}, {})


def test_a_gang_that_is_not_complete_is_returned_as_held() -> None:
    engine, gangs, (entry,) = standby(member("a"))
    found = list(gangs.decide(entry) or ())
    reason = "waiting for 1 more pod of gang default/train: 1 of 2 are here"
    assert found == [EndNomination(entry.key), Hold(entry), Hold(entry, reason)]
    assert (entry.state, entry.message, engine.state.effects) == (QueueState.ACTIVE, "", [])


def test_a_pod_without_a_gang_is_decided_by_itself() -> None:
    _, gangs, entries = standby(PodSeen(pod("alone", cpu="1")))
    assert gangs.decide(entries[0]) is None


def test_timers_go_off_when_they_are_due_in_the_order_in_which_they_were_set() -> None:
    timers = Timers()
    first, second = timers.set(10, "gang", "a"), timers.set(10, "gang", "b")
    timers.set(5, "bind", "c")
    assert (timers.next_ms(), timers.pop(4), len(timers)) == (5, None, 3)
    found = [timers.pop(10) for _ in range(4)]
    assert [one and (one.key, one.number) for one in found[1:]] == [("a", first), ("b", second), None]
    assert timers.next_ms() is None
