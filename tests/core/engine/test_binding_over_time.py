"""Binds over time: answers that come twice, late or never, and volumes that are not to be had any more."""

from collections.abc import Sequence

from builders import node, pod
from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    NodeSeen,
    ObjectSeen,
    PodGone,
    PodRef,
    PodSeen,
    VolumesBound,
)
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Bind, BindVolumes, Effect, SetCondition
from situate.core.engine.binding import BIND_ANSWER_MS, BIND_TRIES, NO_BIND_ANSWER, VOLUMES_ANSWER_MS
from situate.core.engine.engine import Engine
from situate.core.model.named import NamedObject
from situate.core.model.pod import Pod
from situate.core.queue.queued_pod import QueueState
from situate.wire.config import load_config
from storage_builders import claimed, storage_class, volume, waiting

SECOND = 1_000
WEB = PodRef("default", "web", "web")


def config(profile: str = "{}") -> KubeSchedulerConfiguration:
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{profile}]
"""
    return load_config(text.encode(), "test.yaml")


def started(*pods: Pod, profile: str = "{}") -> tuple[Engine, list[Effect]]:
    engine = Engine(config(profile))
    objects: tuple[NamedObject, ...] = (
        storage_class("late", provisioner="kubernetes.io/no-provisioner"),
        volume("v1", class_name="late"),
        waiting("data", "late"),
    )
    changes: list[Change] = [NodeSeen(node("n1", cpu="4", memory="8Gi", pods="10")), *map(ObjectSeen, objects)]
    return engine, engine.step(0, [*changes, *map(PodSeen, pods)])


def web(uid: str = "web", **fields: object) -> Pod:
    return pod("web", uid=uid, cpu="1", **fields)  # type: ignore[arg-type]


def binds(effects: Sequence[Effect]) -> list[str]:
    return [effect.pod.name for effect in effects if isinstance(effect, Bind)]


def told(effects: Sequence[Effect]) -> list[str]:
    return [effect.message for effect in effects if isinstance(effect, SetCondition)]


def test_a_bind_that_is_not_answered_in_time_is_asked_for_again() -> None:
    engine, effects = started(web())
    assert binds(effects) == ["web"]
    assert engine.next_due_ms(0) == BIND_ANSWER_MS
    assert binds(engine.step(BIND_ANSWER_MS - 1, ())) == []
    assert binds(engine.step(BIND_ANSWER_MS, ())) == []
    assert binds(engine.step(BIND_ANSWER_MS + 500, ())) == ["web"]


def test_a_bind_that_is_never_answered_is_given_up_and_the_pod_decided_anew() -> None:
    engine, _ = started(web())
    now, asked = 0, 1
    while not (said := told(effects := engine.step(now, ()))):
        asked += len(binds(effects))
        now = engine.next_due_ms(now) or 0
    assert (asked, said) == (BIND_TRIES, [NO_BIND_ANSWER])
    assert engine.cluster.counted(WEB.key) is None
    assert binds(engine.step(now + 2 * SECOND, ())) == ["web"]


def test_an_answered_bind_is_not_waited_for() -> None:
    engine, _ = started(web())
    engine.step(1, [BindDone(WEB, 1)])
    assert binds(engine.step(10 * BIND_ANSWER_MS, ())) == []
    assert engine.next_due_ms(10 * BIND_ANSWER_MS) is None


def test_a_failure_that_is_told_twice_is_one_failure() -> None:
    engine, _ = started(web())
    failed = BindFailed(WEB, 1, "no")
    engine.step(1, [failed, failed, failed, failed, failed, failed])
    assert engine.state.reservations[WEB.key].tries == 2
    assert binds(engine.step(2 * SECOND, ())) == ["web"]


def test_a_failure_that_is_told_again_when_the_bind_is_under_way_anew_is_old_news() -> None:
    engine, effects = started(web())
    failed: list[BindFailed] = []
    now = 0
    for _ in range(1, BIND_TRIES):
        (bind,) = [effect for effect in effects if isinstance(effect, Bind)]
        failed.append(BindFailed(bind.pod, bind.attempt, "no"))
        engine.step(now + 1, [failed[-1]])
        now += 10 * SECOND
        effects = engine.step(now, ())
    assert binds(effects) == ["web"]
    engine.step(now + 1, failed)
    assert engine.cluster.counted(WEB.key) is not None


def test_a_retry_that_is_due_is_not_made_for_another_pod_of_that_name() -> None:
    engine, _ = started(web())
    engine.step(1, [BindFailed(WEB, 1, "no")])
    effects = engine.step(2, [PodGone(WEB), PodSeen(web("younger", volumes=claimed("data")))])
    assert [effect.pod.uid for effect in effects if isinstance(effect, BindVolumes)] == ["younger"]
    assert binds(engine.step(10 * SECOND, ())) == []


def test_volumes_that_are_never_heard_of_end_the_reservation() -> None:
    engine, effects = started(web(volumes=claimed("data")))
    assert [effect.static for effect in effects if isinstance(effect, BindVolumes)] == [(("data", "v1"),)]
    limit = 600 * SECOND + VOLUMES_ANSWER_MS
    assert engine.next_due_ms(0) == limit
    engine.step(limit, ())
    entry = engine.queue.get(WEB.key)
    assert entry is not None
    assert (entry.state, engine.state.reservations) == (QueueState.BACKOFF, {})
    engine.step(limit + 1, [VolumesBound(WEB, 1)])
    assert engine.state.reservations == {}


def test_the_time_limit_of_volumes_is_not_that_of_an_earlier_pod_of_the_same_name() -> None:
    engine, _ = started(web(volumes=claimed("data")))
    limit = 600 * SECOND + VOLUMES_ANSWER_MS
    engine.step(limit - SECOND, [PodGone(WEB), PodSeen(web("younger", volumes=claimed("data")))])
    engine.step(limit, ())
    assert [one.entry.ref.uid for one in engine.state.reservations.values()] == ["younger"]
    engine.step(2 * limit - SECOND, ())
    assert engine.state.reservations == {}


def test_the_time_limit_of_volumes_is_the_configured_one() -> None:
    args = "{pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 5}}]}"
    engine, _ = started(web(volumes=claimed("data")), profile=args)
    assert engine.next_due_ms(0) == 5 * SECOND + VOLUMES_ANSWER_MS


def test_without_volume_binding_volumes_are_left_to_others() -> None:
    off = "{plugins: {multiPoint: {disabled: [{name: VolumeBinding}]}}}"
    _, effects = started(web(volumes=claimed("data")), profile=off)
    assert [type(effect) for effect in effects if isinstance(effect, Bind | BindVolumes)] == [Bind]
