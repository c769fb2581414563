"""A scheduler that does not lead, or is paused, hears everything and decides nothing, and can go on at once."""

from builders import node, pod
from situate.core.changes import BindDone, Change, Leading, NodeSeen, Paused, PodGone, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Report
from situate.core.engine.engine import Engine
from situate.core.queue.queue import PRUNE_ABOVE

NODE = NodeSeen(node("n1", cpu="4", pods=10))


def standby(*changes: Change) -> Engine:
    engine = Engine(default_configuration())
    assert engine.step(0, [Leading(False), *changes]) == []
    return engine


def test_a_standby_decides_nothing_and_has_nothing_to_wake_up_for() -> None:
    engine = standby(NODE, PodSeen(pod("web", uid="u1", cpu="1")))
    assert engine.step(10, []) == []
    assert engine.next_due_ms(10) is None


def test_whoever_takes_over_decides_in_the_same_step() -> None:
    engine = standby(NODE, PodSeen(pod("web", uid="u1", cpu="1")))
    (bind,) = engine.step(10, [Leading(True)])
    assert isinstance(bind, Bind)
    assert bind.node == "n1"


def test_a_pod_that_the_leader_bound_is_counted_and_not_decided_again() -> None:
    engine = standby(NODE, PodSeen(pod("web", uid="u1", cpu="3")))
    engine.step(5, [PodSeen(pod("web", uid="u1", cpu="3", node_name="n1")), PodSeen(pod("big", uid="u2", cpu="2"))])
    effects = engine.step(10, [Leading(True)])
    assert [effect for effect in effects if isinstance(effect, Bind)] == []


def test_promises_of_the_leader_are_followed_while_they_are_made_and_taken_back() -> None:
    engine = standby(NODE, PodSeen(pod("web", uid="u1", cpu="1")))
    engine.step(1, [PodSeen(pod("web", uid="u1", cpu="1", nominated_node_name="n1"))])
    nominated = engine.state.nominations.get("default/web")
    assert nominated is not None
    assert nominated.node == "n1"
    engine.step(2, [PodSeen(pod("web", uid="u1", cpu="1"))])
    assert engine.state.nominations.get("default/web") is None


def test_answers_are_heard_after_leading_has_ended() -> None:
    engine = Engine(default_configuration())
    engine.step(0, [NODE, PodSeen(pod("web", uid="u1", cpu="1"))])
    effects = engine.step(1, [Leading(False), BindDone(PodRef("default", "web", "u1"), 1)])
    assert [effect.reason for effect in effects if isinstance(effect, Report)] == ["Scheduled"]


def test_pods_that_came_and_went_leave_nothing_behind_in_a_standby() -> None:
    engine = standby(NODE)
    for at in range(3 * PRUNE_ABOVE):
        ref = PodRef("default", f"p{at}", f"u{at}")
        engine.step(at, [PodSeen(pod(ref.name, uid=ref.uid)), PodGone(ref)])
    assert len(engine.queue._active) <= PRUNE_ABOVE + 1


def test_who_is_paused_decides_nobody_and_hears_what_came_of_those_decided() -> None:
    engine = Engine(default_configuration())
    engine.step(0, [NODE, PodSeen(pod("web", uid="u1", cpu="1"))])
    changes: list[Change] = [
        Paused(True),
        PodSeen(pod("other", uid="u2", cpu="1")),
        BindDone(PodRef("default", "web", "u1"), 1),
    ]
    effects = engine.step(1, changes)
    assert [type(effect) for effect in effects] == [Report]
    assert engine.queue.next_due_ms(1) == 1
    assert engine.next_due_ms(1) != 1
    assert [type(effect) for effect in engine.step(2, [Paused(False)])] == [Bind]
