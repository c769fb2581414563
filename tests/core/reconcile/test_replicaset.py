"""ReplicaSets: as many pods as they say, and whose pods are whose."""

from collections.abc import Sequence
from typing import Any

from core.reconcile.world import World, condition, is_live, manifest, template, workload
from situate.core.model.apps import ManagedReplicaSet
from situate.core.model.managed import ManagedPod
from situate.core.reconcile.effects import CreateObject, UpdateStatus
from situate.core.reconcile.objects import ObjectIndex
from situate.core.reconcile.replicaset import replica_set


def pod_body(name: str, **labels: str) -> dict[str, object]:
    meta = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template()["spec"]}


def owners(world: World, name: str) -> list[str]:
    return [owner["name"] for owner in world.find("Pod", name)["metadata"].get("ownerReferences", [])]


def test_it_makes_as_many_pods_as_it_says_and_then_rests() -> None:
    world = World()
    world.create(workload("ReplicaSet", replicas=3))
    assert world.settle() <= 3
    assert len(world.pods()) == 3
    world.run(4)
    status = world.find("ReplicaSet", "web")["status"]
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (3, 3, 3)
    assert (status["fullyLabeledReplicas"], status["observedGeneration"]) == (3, 1)


def test_it_lets_go_of_those_that_are_too_many() -> None:
    world = World()
    world.create(workload("ReplicaSet", replicas=4))
    world.run(5)
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 1}})
    world.run(3)
    assert len(world.pods()) == 1
    assert world.reasons().count("SuccessfulDelete") == 3


def test_none_is_a_size_too() -> None:
    world = World()
    world.create(workload("ReplicaSet", replicas=2))
    world.run(4)
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 0}})
    world.run(3)
    assert world.pods() == []
    assert world.find("ReplicaSet", "web")["status"]["replicas"] == 0


def test_a_pod_that_failed_or_is_being_deleted_is_replaced() -> None:
    world = World(grace=3)
    world.create(workload("ReplicaSet", replicas=2))
    world.run(4)
    first, second = world.names("Pod")
    world.patch("Pod", first, {"status": {"phase": "Failed"}})
    world.delete("Pod", second)
    world.settle()
    assert len([pod for pod in world.pods() if is_live(pod)]) == 2
    assert world.find("ReplicaSet", "web")["status"]["terminatingReplicas"] == 1


def test_an_orphan_that_matches_is_taken_in_and_counts() -> None:
    world = World()
    world.create(dict(pod_body("lost", app="web")))
    world.create(workload("ReplicaSet", replicas=2))
    world.settle()
    assert owners(world, "lost") == ["web"]
    assert len(world.pods()) == 2


def test_a_pod_of_another_owner_is_left_alone() -> None:
    world = World()
    world.create(workload("ReplicaSet", "other", replicas=1))
    world.settle()
    (theirs,) = world.names("Pod")
    world.create(workload("ReplicaSet", replicas=1))
    world.settle()
    assert owners(world, theirs) == ["other"]
    assert len(world.pods()) == 2


def test_a_pod_whose_label_is_taken_off_is_let_go_and_replaced_and_lives_on() -> None:
    world = World()
    world.create(workload("ReplicaSet", replicas=2))
    world.run(4)
    name = world.names("Pod")[0]
    world.patch("Pod", name, {"metadata": {"labels": {"app": "debug"}}})
    world.run(4)
    assert owners(world, name) == []
    assert len(world.pods(app="web")) == 2
    assert is_live(world.find("Pod", name))


def test_a_set_that_is_being_deleted_makes_and_takes_in_nothing() -> None:
    world = World()
    body = workload("ReplicaSet", replicas=2)
    body["metadata"]["finalizers"] = ["example.com/wait"]
    world.create(body)
    world.create(dict(pod_body("lost", app="web")))
    world.delete("ReplicaSet", "web")
    world.settle()
    assert world.names("Pod") == ["lost"]
    assert owners(world, "lost") == []


def test_pods_that_were_ready_for_long_enough_are_available_and_it_asks_to_look_then() -> None:
    world = World(ready_after=2)
    world.create(workload("ReplicaSet", replicas=1, minReadySeconds=30))
    world.run(3)
    status = world.find("ReplicaSet", "web")["status"]
    assert (status["readyReplicas"], status.get("availableReplicas", 0)) == (1, 0)
    assert max(world.requeue_at) > world.now
    world.now = max(world.requeue_at)
    world.settle()
    assert world.find("ReplicaSet", "web")["status"]["availableReplicas"] == 1


def test_why_pods_cannot_be_made_is_said_and_taken_back() -> None:
    world = World()
    world.create(workload("ReplicaSet", replicas=2))
    one = world.held.get(ManagedReplicaSet, "default", "web")
    assert one is not None
    status = next(effect for effect in replica_set(one, world.held, world.now, "quota").effects)
    assert isinstance(status, UpdateStatus)
    (failure,) = status.status["conditions"]
    assert (failure["type"], failure["reason"], failure["message"]) == ("ReplicaFailure", "FailedCreate", "quota")
    world.perform_one(status, ("ReplicaSet", "default", "web"))
    world.settle()
    assert condition(world.find("ReplicaSet", "web"), "ReplicaFailure") == {}


def test_no_more_than_a_burst_is_made_at_once() -> None:
    world = World()
    world.create(workload("ReplicaSet", replicas=1200))
    one = world.held.get(ManagedReplicaSet, "default", "web")
    assert one is not None
    effects = replica_set(one, world.held, world.now).effects
    assert sum(isinstance(effect, CreateObject) for effect in effects) == 500
    world.settle()
    assert len(world.pods()) == 1200


def test_a_selector_that_matches_everything_is_not_acted_on() -> None:
    world = World()
    world.create(manifest("ReplicaSet", "web", selector={}, replicas=3, template=template()))
    assert world.settle() == 0
    assert world.pods() == []


class Counting(ObjectIndex):
    """Counts the pods that are read one by one."""

    __slots__ = ("read",)

    def __init__(self, *objects: Any) -> None:
        self.read = 0
        super().__init__(objects)

    def controlled(self, kind: type[Any], namespace: str, uid: str) -> Sequence[Any]:
        found = super().controlled(kind, namespace, uid)
        self.read += len(found)
        return found


def test_a_call_reads_no_pod_unless_one_has_to_go() -> None:
    world = World()
    world.create(workload("ReplicaSet", replicas=20))
    world.run(5)
    one = world.held.get(ManagedReplicaSet, "default", "web")
    assert one is not None
    counting = Counting(one, *world.held.among(ManagedPod))
    assert replica_set(one, counting, world.now).effects == ()
    assert counting.read == 0
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 21}})
    more = world.held.get(ManagedReplicaSet, "default", "web")
    assert more is not None
    assert [one for one in replica_set(more, counting, world.now).effects if isinstance(one, CreateObject)]
    assert counting.read == 0
