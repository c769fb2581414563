"""A volume that was given to a pod is nobody else's, from the decision on."""

from builders import node, pod
from situate.core.changes import Change, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodSeen, VolumesBound, VolumesFailed
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, BindVolumes, Effect
from situate.core.engine.engine import Engine
from situate.core.model.named import NamedObject
from situate.core.model.pod import Pod
from situate.core.model.refs import PodRef
from storage_builders import ZONE, claimed, storage_class, volume, waiting

FREE = volume("v1", class_name="late")
TAKEN = volume("v1", class_name="late", claim_ref=("default", "a-data", "a-data"), phase="Bound")


def consumer(name: str) -> Pod:
    return pod(name, uid=name, cpu="100m", volumes=claimed(f"{name}-data"))


def ref(name: str) -> PodRef:
    return PodRef("default", name, name)


def started() -> Engine:
    engine = Engine(default_configuration())
    objects: tuple[NamedObject, ...] = (
        storage_class("late", provisioner="kubernetes.io/no-provisioner"),
        FREE,
        waiting("a-data", "late"),
        waiting("b-data", "late"),
    )
    engine.step(
        0, [NodeSeen(node("n1", cpu="4", memory="8Gi", pods="10", labels={ZONE: "z"})), *map(ObjectSeen, objects)]
    )
    return engine


def asked(effects: list[Effect]) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [(one.pod.name, one.static) for one in effects if isinstance(one, BindVolumes)]


def told(engine: Engine, now: int, *changes: Change) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return asked(engine.step(now, changes))


def test_of_two_pods_that_want_one_volume_the_first_gets_it() -> None:
    engine = started()
    assert told(engine, 1, PodSeen(consumer("a")), PodSeen(consumer("b"))) == [("a", (("a-data", "v1"),))]


def test_a_volume_whose_bind_failed_can_be_had_by_another_at_once() -> None:
    engine = started()
    told(engine, 1, PodSeen(consumer("a")), PodSeen(consumer("b")))
    assert told(engine, 5_000, VolumesFailed(ref("a"), 1, "no")) == [("b", (("b-data", "v1"),))]


def test_a_volume_that_changes_while_it_is_given_away_stays_given() -> None:
    engine = started()
    told(engine, 1, PodSeen(consumer("a")), PodSeen(consumer("b")))
    seen_again = volume("v1", class_name="late", capacity="20Gi")
    assert told(engine, 5_000, ObjectSeen(seen_again)) == []


def test_a_volume_that_was_seen_to_be_taken_is_free_when_it_is_seen_to_be() -> None:
    engine = started()
    told(engine, 1, PodSeen(consumer("a")), PodSeen(consumer("b")))
    effects = engine.step(10, [VolumesBound(ref("a"), 1), ObjectSeen(TAKEN)])
    assert [one.node for one in effects if isinstance(one, Bind)] == ["n1"]
    assert told(engine, 5_000, ObjectSeen(FREE)) == [("b", (("b-data", "v1"),))]


def test_the_volume_of_a_pod_that_is_gone_is_free_and_another_s_is_not_given_back_with_it() -> None:
    engine = started()
    told(engine, 1, PodSeen(consumer("a")))
    engine.step(10, [VolumesBound(ref("a"), 1), ObjectSeen(TAKEN), ObjectSeen(FREE)])
    assert told(engine, 20, PodSeen(consumer("b"))) == [("b", (("b-data", "v1"),))]
    # Only now it is heard that the first is gone. The volume is the second's.
    late = pod("c", uid="c", cpu="100m", volumes=claimed("c-data"))
    assert told(engine, 5_000, PodGone(ref("a")), ObjectSeen(waiting("c-data", "late")), PodSeen(late)) == []


def test_a_volume_that_is_gone_is_forgotten() -> None:
    engine = started()
    told(engine, 1, PodSeen(consumer("a")), PodSeen(consumer("b")))
    engine.step(10, [ObjectGone(FREE), VolumesFailed(ref("a"), 1, "not found")])
    assert told(engine, 60_000, ObjectSeen(FREE)) != []


def test_a_volume_that_was_given_back_is_free_however_often_it_is_seen() -> None:
    engine = started()
    told(engine, 1, PodSeen(consumer("a")))
    engine.step(10, [VolumesFailed(ref("a"), 1, "no"), PodGone(ref("a"))])
    engine.step(20, [ObjectSeen(volume("v1", class_name="late", capacity="20Gi"))])
    assert told(engine, 30, PodSeen(consumer("b"))) == [("b", (("b-data", "v1"),))]


def test_a_new_volume_of_the_same_name_is_not_given_away() -> None:
    engine = started()
    told(engine, 1, PodSeen(consumer("a")), PodSeen(consumer("b")))
    assert told(engine, 5_000, ObjectGone(FREE), ObjectSeen(FREE)) == [("b", (("b-data", "v1"),))]


def test_a_claim_that_goes_does_not_free_the_volume_of_its_name() -> None:
    engine = started()
    namesake = waiting("v1", "late")
    engine.step(0, [ObjectSeen(namesake)])
    told(engine, 1, PodSeen(consumer("a")), PodSeen(consumer("b")))
    assert told(engine, 5_000, ObjectGone(namesake), ObjectSeen(FREE)) == []


def test_a_volume_that_was_reserved_for_a_claim_stays_so_if_the_bind_fails() -> None:
    engine = started()
    reserved = volume("v1", class_name="late", claim_ref=("default", "a-data"))
    engine.step(0, [ObjectSeen(reserved)])
    assert told(engine, 1, PodSeen(consumer("a"))) == [("a", (("a-data", "v1"),))]
    engine.step(10, [VolumesFailed(ref("a"), 1, "no"), PodGone(ref("a"))])
    assert told(engine, 20, PodSeen(consumer("b"))) == []


def test_the_volume_of_a_bound_pod_that_is_gone_is_free_if_it_was_never_seen_taken() -> None:
    engine = started()
    told(engine, 1, PodSeen(consumer("a")))
    engine.step(10, [VolumesBound(ref("a"), 1)])
    engine.step(20, [PodSeen(pod("a", uid="a", cpu="100m", node_name="n1", volumes=claimed("a-data")))])
    assert told(engine, 30, PodGone(ref("a")), PodSeen(consumer("b"))) == [("b", (("b-data", "v1"),))]
