"""Deployments: revisions, pauses, scaling, deadlines, and what they say of themselves."""

from typing import Any

import pytest
from msgspec import convert

from core.reconcile.world import Raw, World, condition, is_live, template, workload
from situate.core.model.apps import Deployment, DeploymentStatus, ManagedReplicaSet
from situate.core.reconcile.deployment_status import counted
from situate.core.reconcile.objects import _int32_fields, update_status

REVISION = "deployment.kubernetes.io/revision"


def started(seed: int = 0, ticks: int = 6, **spec: Any) -> World:
    world = World(seed)
    world.create(workload("Deployment", **{"replicas": 3, **spec}))
    world.run(ticks)
    return world


def images(world: World) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in world.pods() if is_live(pod)]


def to(world: World, image: str, **spec: object) -> None:
    world.patch("Deployment", "web", {"spec": {"template": template(image), **spec}})


def by_image(world: World, image: str) -> Raw:
    sets = world.all("ReplicaSet")
    return next(one for one in sets if one["spec"]["template"]["spec"]["containers"][0]["image"] == image)


def test_it_makes_a_replica_set_named_and_labelled_by_the_hash_of_its_template() -> None:
    world = started()
    (one,) = world.all("ReplicaSet")
    digest = one["metadata"]["labels"]["pod-template-hash"]
    assert one["metadata"]["name"] == f"web-{digest}"
    assert one["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": digest}
    assert all(pod["metadata"]["labels"]["pod-template-hash"] == digest for pod in world.pods())
    assert one["metadata"]["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }


def test_when_it_is_done_it_says_so() -> None:
    world = started()
    body = world.find("Deployment", "web")
    name = world.names("ReplicaSet")[0]
    done = condition(body, "Progressing")
    assert (done["status"], done["reason"]) == ("True", "NewReplicaSetAvailable")
    assert done["message"] == f'ReplicaSet "{name}" has successfully progressed.'
    assert condition(body, "Available")["reason"] == "MinimumReplicasAvailable"
    assert body["status"]["observedGeneration"] == body["metadata"]["generation"]
    assert body["metadata"]["annotations"][REVISION] == "1"


def test_the_revision_of_a_new_deployment_makes_no_new_generation() -> None:
    metadata = started().find("Deployment", "web")["metadata"]
    assert metadata["annotations"][REVISION] == "1"
    assert metadata["generation"] == 1


def test_going_back_to_an_old_template_uses_its_replica_set_and_gives_it_a_new_revision() -> None:
    world = started()
    to(world, "v2")
    world.run(20)
    to(world, "v1")
    world.run(20)
    assert len(world.names("ReplicaSet")) == 2
    old = by_image(world, "v1")["metadata"]["annotations"]
    assert (old[REVISION], old["deployment.kubernetes.io/revision-history"]) == ("3", "1")
    assert world.find("Deployment", "web")["metadata"]["annotations"][REVISION] == "3"
    assert images(world) == ["v1"] * 3


def test_annotations_are_copied_but_for_those_that_are_its_own_business() -> None:
    world = started()
    last = "kubectl.kubernetes.io/last-applied-configuration"
    world.patch("Deployment", "web", {"metadata": {"annotations": {"kubernetes.io/change-cause": "x", last: "{}"}}})
    world.settle()
    notes = world.all("ReplicaSet")[0]["metadata"]["annotations"]
    assert notes["kubernetes.io/change-cause"] == "x"
    assert last not in notes


def test_no_more_old_replica_sets_are_kept_than_it_says() -> None:
    world = started(revisionHistoryLimit=1)
    for image in ("v2", "v3", "v4"):
        to(world, image)
        world.run(20)
    kept = [one["spec"]["template"]["spec"]["containers"][0]["image"] for one in world.all("ReplicaSet")]
    assert sorted(kept) == ["v3", "v4"]


def test_to_recreate_is_to_wait_until_all_old_pods_are_gone() -> None:
    world = started(strategy={"type": "Recreate"})
    world.grace = 3
    both: list[set[str]] = []
    world.watchers.append(lambda: both.append({pod["spec"]["containers"][0]["image"] for pod in world.pods()}))
    to(world, "v2")
    world.run(12)
    assert images(world) == ["v2"] * 3
    assert {"v1", "v2"} not in both
    assert set() in both


def test_while_it_is_paused_nothing_is_rolled_out_and_it_may_be_scaled() -> None:
    world = started()
    to(world, "v2", paused=True)
    world.run(4)
    assert images(world) == ["v1"] * 3
    assert condition(world.find("Deployment", "web"), "Progressing")["reason"] == "DeploymentPaused"
    world.patch("Deployment", "web", {"spec": {"replicas": 5}})
    world.run(4)
    assert images(world) == ["v1"] * 5
    world.patch("Deployment", "web", {"spec": {"paused": False}})
    world.run(30)
    assert images(world) == ["v2"] * 5
    assert condition(world.find("Deployment", "web"), "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_time_that_it_was_paused_does_not_count_against_the_deadline() -> None:
    world = started(progressDeadlineSeconds=20)
    to(world, "v2", paused=True)
    world.run(2)
    world.tick(100)
    world.patch("Deployment", "web", {"spec": {"paused": False}})
    world.settle()
    assert condition(world.find("Deployment", "web"), "Progressing")["status"] != "False"


def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportion() -> None:
    world = started(replicas=10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
    world.ready_after = 1000
    to(world, "v2")
    world.run(3)
    before = {one["metadata"]["name"]: one["spec"]["replicas"] for one in world.all("ReplicaSet")}
    assert sorted(before.values()) == [5, 8]
    world.patch("Deployment", "web", {"spec": {"replicas": 20}})
    world.settle()
    after = {one["metadata"]["name"]: one["spec"]["replicas"] for one in world.all("ReplicaSet")}
    assert sum(after.values()) == 23
    assert sorted(after.values()) == [9, 14]


def test_a_rollout_that_stands_still_past_its_deadline_says_so_once() -> None:
    world = started(progressDeadlineSeconds=60)
    world.ready_after = 1000
    to(world, "v2")
    world.run(3)
    body = world.find("Deployment", "web")
    assert condition(body, "Progressing")["status"] == "True"
    world.now = max(world.requeue_at)
    world.settle()
    late = condition(world.find("Deployment", "web"), "Progressing")
    assert (late["status"], late["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert late["message"].endswith("has timed out progressing.")
    world.tick(1000)
    world.settle()
    assert condition(world.find("Deployment", "web"), "Progressing") == late
    world.ready_after = 1
    world.run(30)
    assert condition(world.find("Deployment", "web"), "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_broken_new_pods_do_not_take_the_old_ones_with_them() -> None:
    world = started(replicas=4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})
    world.fails = lambda pod: pod["spec"]["containers"][0]["image"] == "bad"
    to(world, "bad")
    world.run(20)
    assert images(world).count("v1") >= 3
    to(world, "v1")
    world.run(20)
    assert images(world) == ["v1"] * 4


def test_another_object_under_the_name_of_its_replica_set_makes_it_choose_another() -> None:
    fresh = World()
    fresh.create(workload("Deployment", replicas=1))
    fresh.settle()
    taken = fresh.names("ReplicaSet")[0]
    world = World()
    stranger = workload("ReplicaSet", taken, replicas=0, template=template("v9", app="x"))
    stranger["spec"]["selector"] = {"matchLabels": {"app": "x"}}
    world.create(stranger)
    world.create(workload("Deployment", replicas=1))
    world.run(5)
    assert world.find("Deployment", "web")["status"]["collisionCount"] == 1
    assert len(world.names("ReplicaSet")) == 2
    assert images(world) == ["v1"]


def test_a_new_minimum_of_readiness_reaches_the_replica_set() -> None:
    world = started()
    world.patch("Deployment", "web", {"spec": {"minReadySeconds": 7}})
    world.settle()
    assert world.all("ReplicaSet")[0]["spec"]["minReadySeconds"] == 7


def test_what_keeps_its_replica_set_from_making_pods_is_said_here_too() -> None:
    world = started()
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    name = world.names("ReplicaSet")[0]
    world.patch("ReplicaSet", name, {"status": {"conditions": [failure]}})
    world.perform(world.controller(Deployment, ("Deployment", "default", "web")))
    assert condition(world.find("Deployment", "web"), "ReplicaFailure")["message"] == "quota"
    world.settle()
    assert condition(world.find("Deployment", "web"), "ReplicaFailure") == {}


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_when_it_is_deleted_all_that_is_its_own_goes_with_it(policy: str) -> None:
    world = started()
    to(world, "v2")
    world.run(3)
    world.delete("Deployment", "web", propagation=policy)
    world.run(6)
    assert world.bodies == {}


def test_orphaned_it_leaves_its_replica_set_which_another_takes_in() -> None:
    world = started()
    world.delete("Deployment", "web", propagation="Orphan")
    world.run(3)
    assert len(world.pods()) == 3
    assert "ownerReferences" not in world.all("ReplicaSet")[0]["metadata"]
    uids = [pod["metadata"]["uid"] for pod in world.pods()]
    world.create(workload("Deployment", replicas=3))
    world.run(3)
    assert [pod["metadata"]["uid"] for pod in world.pods()] == uids
    assert len(world.names("ReplicaSet")) == 1


def test_a_deployment_that_selects_everything_is_told_so_once() -> None:
    world = World()
    body = workload("Deployment")
    body["spec"]["selector"] = {}
    world.create(body)
    world.run(2)
    assert world.reasons() == ["SelectingAll"]
    assert world.names("ReplicaSet") == []


@pytest.mark.parametrize("number", ["9" * 5_000, str(2**63 - 1), "\u0663", "1_0", "-1"])
def test_a_revision_that_is_no_number_or_the_greatest_stops_nothing(number: str) -> None:
    world = World()
    world.create(workload("Deployment", replicas=1))
    world.run(8)
    (first,) = world.names("ReplicaSet")
    for kind, name in (("ReplicaSet", first), ("Deployment", "web")):
        world.patch(kind, name, {"metadata": {"annotations": {"deployment.kubernetes.io/revision": number}}})
    world.patch("Deployment", "web", {"spec": {"template": template("v2")}})
    world.run(16)
    assert [pod["spec"]["containers"][0]["image"] for pod in world.pods()] == ["v2"]


def test_a_surge_with_thousands_of_digits_is_as_many_as_there_can_be() -> None:
    world = World()
    rolling = {"maxSurge": "9" * 5_000 + "%", "maxUnavailable": 0}
    world.create(workload("Deployment", replicas=2, strategy={"type": "RollingUpdate", "rollingUpdate": rolling}))
    world.run(8)
    assert len(world.pods()) == 2


def test_sums_in_a_status_end_where_an_int32_does() -> None:
    """Beyond it, no controller could read the Deployment any more."""
    world = World()
    world.create(workload("Deployment", replicas=1))
    world.run(8)
    world.patch("Deployment", "web", {"spec": {"template": template("v2")}})
    world.settle()
    for name in world.names("ReplicaSet"):
        world.patch("ReplicaSet", name, {"spec": {"replicas": 2**31 - 1}, "status": {"replicas": 2**31 - 1}})
    replicas = [convert(body, ManagedReplicaSet) for body in world.all("ReplicaSet")]
    one = convert(world.find("Deployment", "web"), Deployment)
    (effect,) = update_status(one, counted(one, replicas[0], replicas[1:], 0))
    assert "terminating_replicas" in _int32_fields(DeploymentStatus)
    status = effect.status
    assert status["replicas"] == status["unavailableReplicas"] == 2**31 - 1
    assert convert({**world.find("Deployment", "web"), "status": status}, Deployment).status.replicas == 2**31 - 1
