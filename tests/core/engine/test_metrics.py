"""What the engine notes of its own doing, and that noting it changes nothing that it does."""

from typing import Any

import pytest

from builders import node, pod
from gang_world import World, nodes, team
from situate.core.changes import BindDone, BindFailed, Change, NodeGone, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.contract import Wake
from situate.core.effects import Bind, Evict, Report
from situate.core.engine.binding import BIND_TRIES
from situate.core.engine.engine import Engine
from situate.core.engine.metrics import EngineMetrics, FailedAttempt
from situate.core.model.pod import PodSchedulingGate
from situate.core.place.stopwatch import FILTER, POST_FILTER, RESERVE, SCORE
from situate.core.queue.incoming import CAUSES
from situate.core.queue.queue import UNSCHEDULABLE_LIMIT_MS

DEFAULT = "default-scheduler"
ROOMY = NodeSeen(node("n1", cpu="4", pods=10))
WEB = PodRef("default", "web", "u1")


def seen(name: str = "web", uid: str = "u1", **fields: Any) -> PodSeen:
    return PodSeen(pod(name, uid=uid, **fields))


def engine_of(*changes: Change, now: int = 0) -> Engine:
    engine = Engine(default_configuration())
    engine.step(now, changes)
    return engine


# -- attempts --------------------------------------------------------------------------------------------------------


def test_a_pod_is_bound_when_its_bind_was_carried_out_and_not_before() -> None:
    engine = engine_of(ROOMY)
    engine.step(10, [seen(cpu="1")])
    assert engine.metrics.bound == []
    engine.step(35, [BindDone(WEB, 1)])
    (bound,) = engine.metrics.bound
    assert (bound.entry.key, bound.entry.first_ready_ms, bound.since_ms, bound.asked_ms) == ("default/web", 10, 10, 10)


def test_a_pod_that_is_seen_bound_before_the_answer_comes_is_bound_once_and_told_once() -> None:
    engine = engine_of(ROOMY, seen(cpu="1"))
    effects = engine.step(10, [seen(cpu="1", node_name="n1")])
    assert [effect.reason for effect in effects if isinstance(effect, Report)] == ["Scheduled"]
    assert len(engine.metrics.bound) == 1
    assert engine.step(20, [BindDone(WEB, 1)]) == []
    assert engine.metrics.bound == []


def test_a_pod_that_somebody_else_bound_elsewhere_is_not_ours() -> None:
    engine = engine_of(ROOMY, seen(cpu="1"), NodeSeen(node("n2")))
    assert engine.step(10, [seen(cpu="1", node_name="n2")]) == []
    assert engine.metrics.bound == []


def test_what_a_step_noted_is_there_until_the_next() -> None:
    engine = engine_of(ROOMY, seen(cpu="8"))
    assert engine.metrics.failed_attempts == [FailedAttempt(DEFAULT, "unschedulable")]
    engine.step(10, [])
    assert engine.metrics.failed_attempts == []


def test_a_bind_that_fails_for_good_ends_the_attempt_as_an_error_and_says_how_long_it_took() -> None:
    engine = engine_of(ROOMY, seen(cpu="1"))
    engine.step(250, [BindFailed(WEB, 1, "the pod has changed", final=True)])
    assert FailedAttempt(DEFAULT, "error", 250) in engine.metrics.failed_attempts
    assert [(one.point, one.took_ms, one.success) for one in engine.metrics.binding_results] == [("Bind", 250, False)]


def test_a_bind_that_is_tried_again_counts_as_one_attempt() -> None:
    engine = engine_of(ROOMY, seen(cpu="1"))
    now = refused = 0
    attempt = 1
    for _ in range(BIND_TRIES - 1):
        engine.step(now + 10, [BindFailed(WEB, attempt, "timed out")])
        refused += len(engine.metrics.failed_attempts)
        now += 20_000
        (again,) = engine.step(now, [])
        assert isinstance(again, Bind)
        attempt = again.attempt
    assert refused == 0
    engine.step(now + 7, [BindDone(WEB, attempt)])
    (bound,) = engine.metrics.bound
    assert (bound.since_ms, bound.asked_ms) == (0, now)
    assert bound.attempt - bound.entry.retries == 1


def test_pods_of_a_gang_that_is_refused_are_refused_each() -> None:
    world = World(*nodes(1, cpu="1"))
    world.arrive(*team(3, cpu="1"))
    assert world.engine.metrics.failed_attempts == [FailedAttempt(DEFAULT, "unschedulable")] * 3


# -- preemption ------------------------------------------------------------------------------------------------------


def test_victims_are_counted_for_each_pod_that_they_leave_for() -> None:
    engine = engine_of(ROOMY)
    small = [seen(f"small-{at}", f"s{at}", cpu="2", node_name="n1", priority=0) for at in range(2)]
    effects = engine.step(10, [*small, seen("large", "l", cpu="4", priority=10)])
    assert sum(isinstance(effect, Evict) for effect in effects) == 2
    assert (engine.metrics.victims, engine.metrics.preemptions) == ([2], 1)


def test_looking_for_victims_in_vain_counts_as_looking() -> None:
    engine = engine_of(ROOMY, seen(cpu="8"))
    assert (engine.metrics.victims, engine.metrics.preemptions) == ([], 1)


def test_a_gang_that_looks_for_victims_counts_once() -> None:
    both = nodes(2, cpu="1")
    world = World(*both)
    small = [pod(f"on-{one.metadata.name}", cpu="1", node_name=one.metadata.name, priority=0) for one in both]
    world.arrive(*small, *team(2, cpu="1", priority=10))
    assert (world.engine.metrics.victims, world.engine.metrics.preemptions) == ([2], 1)


# -- the queue -------------------------------------------------------------------------------------------------------


def incoming(engine: Engine) -> dict[tuple[str, str], int]:
    return engine.metrics.incoming


def test_a_pod_that_comes_is_active_and_a_gated_one_is_not() -> None:
    gated = seen("gated", "g", scheduling_gates=(PodSchedulingGate(name="later"),))
    engine = engine_of(ROOMY, seen(), gated)
    assert incoming(engine) == {("active", "UnschedulablePodAdd"): 1, ("unschedulable", "UnschedulablePodAdd"): 1}
    assert engine.queue.values()[1].first_ready_ms is None
    engine.step(700, [PodSeen(pod("gated", uid="g", cpu="1"))])
    assert incoming(engine)["active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"] == 1
    engine.step(800, [BindDone(PodRef("default", "gated", "g"), 1)])
    assert engine.metrics.bound[0].entry.first_ready_ms == 700


def test_a_parked_pod_comes_back_with_the_name_of_what_woke_it() -> None:
    engine = engine_of(ROOMY, seen(cpu="8"))
    engine.step(20_000, [NodeSeen(node("n2", cpu="8", pods=10))])
    assert incoming(engine) == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("active", "NodeAdd"): 1,
    }


def test_a_pod_that_is_woken_before_its_backoff_is_over_rests_and_may_be_popped_early() -> None:
    engine = engine_of(ROOMY, seen(cpu="8"))
    engine.step(10, [NodeSeen(node("n2", cpu="8", pods=10))])
    assert incoming(engine)["backoff", "NodeAdd"] == 1
    assert incoming(engine)["active", "PopFromBackoffQ"] == 1


def test_a_pod_whose_backoff_is_over_is_active_again() -> None:
    engine = engine_of(ROOMY, seen(cpu="1"))
    engine.step(10, [BindFailed(WEB, 1, "no", final=True)])
    assert incoming(engine)["backoff", "ScheduleAttemptFailure"] == 1
    engine.step(5_000, [])
    assert incoming(engine)["active", "BackoffComplete"] == 1


def test_a_pod_that_was_flushed_has_timed_out() -> None:
    engine = engine_of(ROOMY, seen(cpu="8"))
    engine.step(UNSCHEDULABLE_LIMIT_MS + 60_000, [])
    assert incoming(engine)["active", "UnschedulableTimeout"] == 1


@pytest.mark.parametrize("wake", list(Wake), ids=lambda wake: f"{wake.value} has a name")
def test_whatever_wakes_pods_has_a_name(wake: Wake) -> None:
    assert CAUSES[wake]


def test_the_next_engine_goes_on_counting() -> None:
    metrics = EngineMetrics()
    for _ in range(2):
        Engine(default_configuration(), metrics=metrics).step(0, [ROOMY, seen(cpu="8")])
    assert metrics.incoming["active", "UnschedulablePodAdd"] == 2
    assert metrics.preemptions == 2


# -- the stopwatch ---------------------------------------------------------------------------------------------------


class Heard:
    """A stopwatch that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bool | int]] = []

    def begin(self, profile: str, pods: int = 1) -> None:
        self.told.append((profile, pods))

    def lap(self, point: str, success: bool = True) -> None:
        self.told.append((point, success))


def timed(*changes: Change) -> list[tuple[str, bool | int]]:
    """What is told of the decisions of one step: of each, every point once."""
    heard = Heard()
    engine = Engine(default_configuration(), stopwatch=heard)
    engine.step(0, changes)
    told: list[tuple[str, bool | int]] = []
    begun = 0
    for one in heard.told:
        begun = len(told) if one[0] == DEFAULT else begun
        if one not in told[begun:]:
            told.append(one)
    return told


def test_a_decision_is_told_of_point_by_point() -> None:
    whole = [(DEFAULT, 1), (FILTER, True), (SCORE, True), (RESERVE, True)]
    pods = [seen(f"web-{at}", f"u{at}", cpu="1") for at in range(3)]
    assert timed(ROOMY, *pods) == whole * 3


def test_a_refusal_is_told_of_too_whether_or_not_the_answer_was_known() -> None:
    refusal = [(DEFAULT, 1), (FILTER, False), (POST_FILTER, False)]
    pods = [seen(f"web-{at}", f"u{at}", cpu="8") for at in range(3)]
    assert timed(ROOMY, *pods) == refusal * 3


def test_a_preemption_is_a_remedy_that_succeeded() -> None:
    bound = seen("small", "s", cpu="4", node_name="n1", priority=0)
    assert timed(ROOMY, bound, seen("large", "l", cpu="4", priority=9))[-1] == (POST_FILTER, True)


def test_a_gang_is_begun_as_one() -> None:
    heard = Heard()
    world = World(*nodes(3), engine=Engine(default_configuration(), stopwatch=heard))
    world.arrive(*team(3, cpu="1"))
    assert heard.told == [(DEFAULT, 3)]


def test_neither_the_tally_nor_the_stopwatch_changes_what_is_decided() -> None:
    changes: list[list[Change]] = [
        [ROOMY, *(seen(f"web-{at}", f"u{at}", cpu="1") for at in range(6))],
        [BindDone(PodRef("default", "web-0", "u0"), 1), PodGone(PodRef("default", "web-1", "u1"))],
        [NodeSeen(node("n2", cpu="2", pods=3)), NodeGone("n1")],
    ]
    plain, watched = Engine(default_configuration()), Engine(default_configuration(), stopwatch=Heard())
    for at, heard in enumerate(changes):
        assert plain.step(at * 5_000, heard) == watched.step(at * 5_000, heard)
