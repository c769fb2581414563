"""StatefulSets: order, identity, claims, revisions."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.reconcile.world import Raw, World, is_ready, template, workload

CLAIM = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}


def started(seed: int = 0, ticks: int = 16, **spec: Any) -> World:
    world = World(seed)
    world.create(workload("StatefulSet", **{"replicas": 3, "serviceName": "svc", **spec}))
    world.run(ticks)
    return world


def images(world: World) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in world.pods()]


def to(world: World, image: str) -> None:
    world.patch("StatefulSet", "web", {"spec": {"template": template(image)}})


def made(world: World) -> list[str]:
    return [event.message.split()[2] for event in world.events if event.message.startswith("create Pod")]


def let_go(world: World) -> list[str]:
    return [event.message.split()[2] for event in world.events if event.message.startswith("delete Pod")]


def status(world: World) -> Raw:
    found: Raw = world.find("StatefulSet", "web")["status"]
    return found


def test_pods_are_made_in_order_each_when_all_before_it_are_ready() -> None:
    world = World()
    world.create(workload("StatefulSet", replicas=3))

    def look() -> None:
        pods = world.pods()
        assert world.names("Pod") == [f"web-{at}" for at in range(len(pods))]
        assert all(is_ready(pod) for pod in pods[:-1])

    world.watchers.append(look)
    world.run(16)
    assert made(world) == ["web-0", "web-1", "web-2"]
    assert (status(world)["readyReplicas"], status(world)["availableReplicas"]) == (3, 3)


def test_in_parallel_all_are_made_at_once() -> None:
    world = World()
    world.create(workload("StatefulSet", replicas=3, podManagementPolicy="Parallel"))
    world.settle()
    assert world.names("Pod") == ["web-0", "web-1", "web-2"]
    world.run(4)
    world.patch("StatefulSet", "web", {"spec": {"replicas": 0}})
    world.settle()
    assert all("deletionTimestamp" in pod["metadata"] for pod in world.pods())


def test_each_pod_has_a_name_labels_and_a_place_in_the_network_of_its_own() -> None:
    world = started()
    pod = world.find("Pod", "web-1")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "svc")
    labels = pod["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    assert labels["controller-revision-hash"] == world.names("ControllerRevision")[0]


@pytest.mark.parametrize(
    "kind, label", [("StatefulSet", "controller.kubernetes.io/hash"), ("DaemonSet", "controller-revision-hash")]
)
def test_a_revision_has_the_labels_of_the_template_its_hash_and_the_annotations_of_its_owner(
    kind: str, label: str
) -> None:
    world = World(0)
    body = workload(kind, **({"serviceName": "svc"} if kind == "StatefulSet" else {}))
    body["metadata"]["annotations"] = {"kubernetes.io/change-cause": "first"}
    world.create(body)
    world.run(4)
    (revision,) = world.all("ControllerRevision")
    metadata = revision["metadata"]
    assert metadata["annotations"] == {"kubernetes.io/change-cause": "first"}
    assert metadata["labels"] == {"app": "web", label: metadata["name"].removeprefix("web-")}
    template = revision["data"]["spec"]["template"]
    assert list(template) == sorted(template)


def test_ordinals_may_start_later() -> None:
    world = started(ordinals={"start": 5}, replicas=2)
    assert world.names("Pod") == ["web-5", "web-6"]


def test_the_highest_goes_first_and_one_at_a_time() -> None:
    world = started()
    world.grace = 3
    world.patch("StatefulSet", "web", {"spec": {"replicas": 1}})
    going: list[int] = []
    world.watchers.append(lambda: going.append(sum("deletionTimestamp" in pod["metadata"] for pod in world.pods())))
    world.run(12)
    assert let_go(world) == ["web-2", "web-1"]
    assert max(going) == 1
    assert world.names("Pod") == ["web-0"]


def test_a_pod_that_is_lost_comes_back_under_its_name_with_its_claim() -> None:
    world = started(volumeClaimTemplates=[CLAIM])
    before = world.find("PersistentVolumeClaim", "data-web-1")["metadata"]["uid"]
    world.delete("Pod", "web-1")
    world.run(8)
    assert world.names("Pod") == ["web-0", "web-1", "web-2"]
    assert world.find("PersistentVolumeClaim", "data-web-1")["metadata"]["uid"] == before
    volumes = world.find("Pod", "web-1")["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ended_is_made_anew_however_it_ended(phase: str) -> None:
    world = started()
    uid = world.find("Pod", "web-1")["metadata"]["uid"]
    world.patch("Pod", "web-1", {"status": {"phase": phase}})
    world.run(8)
    assert world.find("Pod", "web-1")["metadata"]["uid"] != uid
    assert status(world)["readyReplicas"] == 3


def test_an_update_goes_from_the_highest_down_and_waits_for_each() -> None:
    world = started()

    def look() -> None:
        assert sum(is_ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in world.pods()) >= 2

    to(world, "v2")
    world.watchers.append(look)
    world.run(24)
    assert let_go(world) == ["web-2", "web-1", "web-0"]
    assert images(world) == ["v2"] * 3
    assert status(world)["currentRevision"] == status(world)["updateRevision"]


def test_below_the_partition_pods_keep_the_old_revision_even_when_made_anew() -> None:
    world = started(updateStrategy={"rollingUpdate": {"partition": 2}})
    to(world, "v2")
    world.run(16)
    assert images(world) == ["v1", "v1", "v2"]
    world.delete("Pod", "web-0")
    world.run(8)
    assert images(world) == ["v1", "v1", "v2"]
    assert status(world)["currentRevision"] != status(world)["updateRevision"]
    assert (status(world)["currentReplicas"], status(world)["updatedReplicas"]) == (2, 1)
    world.patch("StatefulSet", "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    world.run(16)
    assert images(world) == ["v2"] * 3


def test_on_delete_only_what_somebody_deletes_is_updated() -> None:
    world = started(updateStrategy={"type": "OnDelete"})
    to(world, "v2")
    world.run(6)
    assert images(world) == ["v1"] * 3
    world.delete("Pod", "web-1")
    world.run(8)
    assert images(world) == ["v1", "v2", "v1"]


def test_as_many_are_updated_at_once_as_may_be_unavailable() -> None:
    world = started(replicas=4, ticks=20, updateStrategy={"rollingUpdate": {"maxUnavailable": 2}})
    to(world, "v2")
    world.settle()
    assert let_go(world) == ["web-3", "web-2"]
    world.run(30)
    assert images(world) == ["v2"] * 4


def test_a_pod_counts_when_it_has_been_ready_long_enough() -> None:
    world = started(minReadySeconds=60, ticks=6)
    assert world.names("Pod") == ["web-0"]
    assert status(world)["availableReplicas"] == 0
    world.now = max(world.requeue_at)
    world.settle()
    assert world.names("Pod") == ["web-0", "web-1"]


def test_going_back_makes_the_old_revision_the_newest() -> None:
    world = started()
    first = world.names("ControllerRevision")[0]
    to(world, "v2")
    world.run(24)
    to(world, "v1")
    world.run(24)
    assert world.find("ControllerRevision", first)["revision"] == 3
    assert len(world.names("ControllerRevision")) == 2
    assert images(world) == ["v1"] * 3


def test_no_more_old_revisions_are_kept_than_it_says() -> None:
    world = started(revisionHistoryLimit=1)
    for image in ("v2", "v3", "v4"):
        to(world, image)
        world.run(24)
    kept = [
        one["data"]["spec"]["template"]["spec"]["containers"][0]["image"] for one in world.all("ControllerRevision")
    ]
    assert sorted(kept) == ["v3", "v4"]


@pytest.mark.parametrize(
    "deleted, scaled, after_scaling, after_deleting",
    [
        pytest.param("Retain", "Retain", 3, 3, id="all are kept by default"),
        pytest.param("Retain", "Delete", 1, 1, id="those of pods that are let go, go"),
        pytest.param("Delete", "Retain", 3, 0, id="all go with the set"),
        pytest.param("Delete", "Delete", 1, 0, id="all go, sooner or later"),
    ],
)
def test_what_becomes_of_claims(deleted: str, scaled: str, after_scaling: int, after_deleting: int) -> None:
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    world = started(volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    assert len(world.names("PersistentVolumeClaim")) == 3
    world.patch("StatefulSet", "web", {"spec": {"replicas": 1}})
    world.run(10)
    assert len(world.names("PersistentVolumeClaim")) == after_scaling
    world.delete("StatefulSet", "web")
    world.run(6)
    assert len(world.names("PersistentVolumeClaim")) == after_deleting
    assert world.names("Pod") == []


def test_a_new_pod_waits_until_the_claim_of_the_last_is_gone() -> None:
    policy = {"whenScaled": "Delete"}
    world = started(volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    world.patch("PersistentVolumeClaim", "data-web-2", {"metadata": {"finalizers": ["example.com/hold"]}})
    world.patch("StatefulSet", "web", {"spec": {"replicas": 2}})
    world.run(6)
    world.patch("StatefulSet", "web", {"spec": {"replicas": 3}})
    world.run(4)
    assert world.names("Pod") == ["web-0", "web-1"]
    world.patch("PersistentVolumeClaim", "data-web-2", {"metadata": {"finalizers": None}})
    world.run(6)
    assert world.names("Pod") == ["web-0", "web-1", "web-2"]


def test_a_label_that_is_taken_off_is_put_back() -> None:
    world = started()
    world.patch("Pod", "web-0", {"metadata": {"labels": {"apps.kubernetes.io/pod-index": None}}})
    world.settle()
    assert world.find("Pod", "web-0")["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"


def test_only_pods_with_its_names_are_taken_in() -> None:
    world = World()
    for name in ("web-0", "stray"):
        meta = {"name": name, "namespace": "default", "labels": {"app": "web"}}
        world.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template()["spec"]})
    world.create(workload("StatefulSet", replicas=1))
    world.run(4)
    assert "ownerReferences" in world.find("Pod", "web-0")["metadata"]
    assert "ownerReferences" not in world.find("Pod", "stray")["metadata"]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    parallel=st.booleans(),
    sizes=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=3),
    odds=st.integers(0, 15),
)
def test_whatever_happens_there_is_one_pod_an_ordinal_at_most_and_in_the_end_exactly_one(
    seed: int, parallel: bool, sizes: list[tuple[int, int]], odds: int
) -> None:
    world = World(seed)
    policy = "Parallel" if parallel else "OrderedReady"
    world.create(workload("StatefulSet", replicas=2, podManagementPolicy=policy, volumeClaimTemplates=[CLAIM]))
    world.fails = lambda _pod: world.dice.randrange(100) < odds
    for at, (size, ticks) in enumerate(sizes):
        image = template(f"v{at + world.dice.randrange(2)}")
        spec = {"replicas": size, "template": image}
        if world.find("StatefulSet", "web")["spec"] | spec != world.find("StatefulSet", "web")["spec"]:
            world.patch("StatefulSet", "web", {"spec": spec})
        for _ in range(ticks):
            world.one_pass()
            world.tick()
    world.fails = lambda _pod: False
    world.run(60)
    assert world.names("Pod") == [f"web-{at}" for at in range(sizes[-1][0])]
    want = world.find("StatefulSet", "web")["spec"]["template"]["spec"]["containers"][0]["image"]
    assert images(world) == [want] * sizes[-1][0]
    assert status(world).get("readyReplicas", 0) == sizes[-1][0]


def test_of_two_billion_replicas_a_call_makes_500() -> None:
    world = World()
    world.create(workload("StatefulSet", replicas=2**31 - 1, podManagementPolicy="Parallel"))
    world.one_pass()
    world.one_pass()
    assert 0 < len(world.pods()) <= 1_000
