"""The binding cycle: volumes first, then the bind; what is retried, when, and what is decided again."""

from collections.abc import Iterable
from typing import Any

from builders import node, pod
from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    NodeSeen,
    ObjectSeen,
    PodRef,
    PodSeen,
    VolumesBound,
    VolumesFailed,
)
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, BindVolumes, Effect, Report
from situate.core.engine.engine import Engine
from situate.core.engine.metrics import BindingResult
from situate.core.model.named import NamedObject
from storage_builders import claimed, storage_class, volume, waiting

SECOND = 1_000
WEB = PodRef("default", "web", "web")
PROFILE = "default-scheduler"


def started(*, nodes: int = 1, **fields: Any) -> tuple[Engine, list[Effect]]:
    """One pod has been decided at 0; its claim, if it names one, can be provisioned on every node."""
    engine = Engine(default_configuration())
    changes: list[Change] = [NodeSeen(node(f"n{at}", cpu="4", memory="8Gi", pods="10")) for at in range(nodes)]
    changes += [ObjectSeen(storage_class("late")), ObjectSeen(waiting("data", "late"))]
    return engine, engine.step(0, [*changes, PodSeen(pod("web", uid="web", cpu="1", **fields))])


def binds(effects: Iterable[Effect]) -> list[tuple[str, int]]:
    return [(effect.node, effect.attempt) for effect in effects if isinstance(effect, Bind)]


def provisions(effects: Iterable[Effect]) -> list[tuple[str, int]]:
    return [(effect.node, effect.attempt) for effect in effects if isinstance(effect, BindVolumes)]


def scheduled(effects: Iterable[Effect]) -> int:
    return sum(isinstance(effect, Report) and effect.reason == "Scheduled" for effect in effects)


def counted(engine: Engine) -> str | None:
    """The node that the pod is counted on."""
    found = engine.cluster.counted(WEB.key)
    return None if found is None else found[1]


# -- volumes -----------------------------------------------------------------------------------------------------------


def test_a_pod_is_bound_once_its_volumes_are_and_only_once() -> None:
    engine, effects = started(volumes=claimed("data"))
    assert (provisions(effects), binds(effects)) == ([("n0", 1)], [])
    assert binds(engine.step(70, [VolumesBound(WEB, 1), VolumesBound(WEB, 1)])) == [("n0", 1)]
    assert engine.metrics.binding_results == [BindingResult("PreBind", PROFILE, 70, success=True)]
    assert binds(engine.step(80, [VolumesBound(WEB, 1)])) == []


def test_a_bind_that_fails_after_the_volumes_were_bound_is_a_failed_bind_and_is_retried() -> None:
    engine, _ = started(volumes=claimed("data"))
    engine.step(70, [VolumesBound(WEB, 1)])
    engine.step(100, [BindFailed(WEB, 1, "no")])
    assert engine.metrics.binding_results == [BindingResult("Bind", PROFILE, 30, success=False)]
    assert (counted(engine), engine.metrics.failed_attempts) == ("n0", [])
    assert binds(engine.step(600, [])) == [("n0", 2)]


def test_volumes_that_fail_are_reported_as_such_and_the_pod_is_decided_again() -> None:
    engine, _ = started(volumes=claimed("data"))
    effects = engine.step(70, [VolumesFailed(WEB, 1, "no room")])
    assert engine.metrics.binding_results == [BindingResult("PreBind", PROFILE, 70, success=False)]
    assert [(one.profile, one.result, one.took_ms) for one in engine.metrics.failed_attempts] == [
        (PROFILE, "error", 70)
    ]
    assert (counted(engine), binds(effects)) == (None, [])
    assert provisions(engine.step(5 * SECOND, [])) == [("n0", 2)]


def test_volumes_that_were_bound_stay_with_the_claim_if_the_bind_is_rejected() -> None:
    engine = Engine(default_configuration())
    objects: tuple[NamedObject, ...] = (
        storage_class("late", provisioner="kubernetes.io/no-provisioner"),
        volume("v1", class_name="late"),
        waiting("data", "late"),
        waiting("other", "late"),
    )
    web = pod("web", uid="web", cpu="1", volumes=claimed("data"))
    engine.step(0, [NodeSeen(node("n0", cpu="4", pods="9")), *map(ObjectSeen, objects), PodSeen(web)])
    engine.step(1, [VolumesBound(WEB, 1)])
    engine.step(2, [BindFailed(WEB, 1, "no", final=True)])
    assert provisions(engine.step(3, [PodSeen(pod("late", uid="late", volumes=claimed("other")))])) == []


# -- a rejected bind ---------------------------------------------------------------------------------------------------


def test_a_rejected_bind_sends_the_pod_to_another_node() -> None:
    engine, effects = started(nodes=2)
    assert binds(effects) == [("n0", 1)]
    assert binds(engine.step(10, [BindFailed(WEB, 1, "no", final=True)])) == []
    assert binds(engine.step(5 * SECOND, [])) == [("n1", 2)]


def test_volumes_that_fail_are_no_reason_to_avoid_the_node() -> None:
    engine, effects = started(nodes=2, volumes=claimed("data"))
    assert provisions(effects) == [("n0", 1)]
    engine.step(10, [VolumesFailed(WEB, 1, "no")])
    assert provisions(engine.step(5 * SECOND, [])) == [("n0", 2)]


def test_a_node_that_rejected_a_bind_is_avoided_until_the_pod_has_another_node_and_no_longer() -> None:
    engine, effects = started(nodes=2, volumes=claimed("data"))
    assert provisions(effects) == [("n0", 1)]
    engine.step(10, [VolumesBound(WEB, 1)])
    engine.step(20, [BindFailed(WEB, 1, "no", final=True)])
    assert provisions(engine.step(5 * SECOND, [])) == [("n1", 2)]
    engine.step(6 * SECOND, [VolumesFailed(WEB, 2, "no")])
    assert provisions(engine.step(20 * SECOND, [])) == [("n0", 3)]


# -- retries -----------------------------------------------------------------------------------------------------------


def test_the_time_between_tries_doubles_and_every_try_is_another_attempt() -> None:
    engine, effects = started()
    now, waits = 0, []
    for attempt in range(1, 5):
        assert binds(effects) == [("n0", attempt)]
        engine.step(now, [BindFailed(WEB, attempt, "no")])
        due = engine.next_due_ms(now)
        assert due is not None
        assert binds(engine.step(due - 1, [])) == []
        waits.append(due - now)
        now, effects = due, engine.step(due, [])
    assert waits == [500, 1_000, 2_000, 4_000]
    assert binds(effects) == [("n0", 5)]
    assert counted(engine) == "n0"
    engine.step(now, [BindFailed(WEB, 5, "no")])
    assert counted(engine) is None


def test_a_bind_that_is_done_is_reported_once_and_neither_failed_nor_retried_later() -> None:
    engine, _ = started()
    engine.step(10, [BindFailed(WEB, 1, "no")])
    assert scheduled(engine.step(20, [BindDone(WEB, 2), BindDone(WEB, 2)])) == 1
    assert (counted(engine), len(engine.metrics.bound)) == ("n0", 1)
    assert engine.step(30, [BindFailed(WEB, 2, "no", final=True)]) == []
    assert (counted(engine), engine.metrics.binding_results) == ("n0", [])
    assert binds(engine.step(10 * SECOND, [])) == []


def test_an_answer_about_another_pod_of_that_name_or_another_attempt_is_ignored() -> None:
    engine, _ = started()
    other = PodRef("default", "web", "older")
    assert engine.step(10, [BindDone(other, 1), BindDone(WEB, 2), BindFailed(WEB, 0, "no", final=True)]) == []
    assert engine.step(10, [BindFailed(other, 1, "no", final=True)]) == []
    assert (counted(engine), scheduled(engine.step(20, [BindDone(WEB, 1)]))) == ("n0", 1)


# -- time limits -------------------------------------------------------------------------------------------------------


def test_a_bind_that_was_answered_needs_no_further_step() -> None:
    engine, _ = started()
    engine.step(10, [BindDone(WEB, 1)])
    assert engine.next_due_ms(10) is None


def test_the_time_limit_of_volumes_that_are_bound_does_nothing_to_the_bind() -> None:
    engine, _ = started(volumes=claimed("data"))
    limit = engine.next_due_ms(0)
    assert limit is not None
    engine.step(limit - 1, [VolumesBound(WEB, 1)])
    assert engine.step(limit, []) == []
    assert counted(engine) == "n0"
