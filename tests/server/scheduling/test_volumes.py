"""Volumes of a pod that is placed: bound on both sides before the pod is, or let go."""

from typing import Any

from server.placing.world import World
from server.scheduling.stories import scheduling, tell, until
from server.scheduling.test_scheduler import events, node_of
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import BY_KIND

VOLUMES, CLAIMS = BY_KIND["v1", "PersistentVolume"], BY_KIND["v1", "PersistentVolumeClaim"]
USES = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]


async def storage_class(world: World, provisioner: str = "kubernetes.io/no-provisioner") -> None:
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"}}
    await world.create({**body, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})


async def volume(world: World, name: str, node: str) -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    labelled = {"matchExpressions": [{"key": "host", "operator": "In", "values": [node]}]}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/x"},
        "persistentVolumeReclaimPolicy": "Retain",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [labelled if node else term]}},
    }
    await world.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
    await world.registry.modify(Target(VOLUMES, "", name), _with(status={"phase": "Available"}), SYSTEM)


async def claim(world: World) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    meta = {"name": "c", "namespace": "default"}
    await world.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})


def _with(**fields: Any) -> Any:
    def change(obj: Object, _held: StoredObject) -> Object:
        return {**obj, **fields}

    return change


def read(world: World, resource: Any, namespace: str, name: str) -> Object:
    found = world.registry.cache.get(resource, namespace, name)
    assert found is not None
    return found.object(resource)


def test_a_volume_and_its_claim_name_each_other_before_the_pod_is_bound() -> None:
    async def story(world: World) -> None:
        await world.node("n1", cpu="8", labels={"host": "n1"})
        await world.node("n2", cpu="4", labels={"host": "n2"})
        await storage_class(world)
        await volume(world, "pv", "n2")
        await claim(world)
        async with scheduling(world):
            await world.pod(volumes=USES)
            await until(lambda: node_of(world, "p") == "n2")
        bound, held = read(world, VOLUMES, "", "pv"), read(world, CLAIMS, "default", "c")
        assert bound["spec"]["claimRef"]["uid"] == held["metadata"]["uid"]
        assert bound["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
        assert bound["status"]["phase"] == "Bound"
        assert (held["spec"]["volumeName"], held["status"]["phase"]) == ("pv", "Bound")
        assert held["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"

    tell(story)


def test_a_claim_that_is_to_be_provisioned_is_waited_for() -> None:
    async def story(world: World) -> None:
        await world.node("n1", labels={"host": "n1"})
        await storage_class(world, "example.com/x")
        await claim(world)
        async with scheduling(world):
            await world.pod(volumes=USES)

            def selected() -> str | None:
                meta = read(world, CLAIMS, "default", "c")["metadata"]
                found: str | None = meta.get("annotations", {}).get("volume.kubernetes.io/selected-node")
                return found

            await until(lambda: selected() == "n1")
            await until(lambda: world.read("p")["status"].get("nominatedNodeName") == "n1")
            reserved = world.decision("p")
            assert reserved is not None
            assert (reserved.phase, reserved.spec.node, node_of(world, "p")) == ("reserved", "n1", "")
            assert reserved.status.reason == "WaitingForProvisioner"
            waits = 'claim "c" waits for provisioner example.com/x to provide its volume on node n1'
            assert reserved.status.message == waits

            def provisioned(obj: Object, _held: StoredObject) -> Object:
                obj["spec"]["volumeName"] = "made"
                obj["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
                return obj

            await volume(world, "made", "n1")
            await world.registry.modify(Target(CLAIMS, "default", "c"), provisioned, SYSTEM)
            await until(lambda: node_of(world, "p") == "n1")
            assert "nominatedNodeName" not in world.read("p")["status"]
            bound = world.decision("p")
            assert bound is not None
            assert (bound.status.reason, bound.status.message) == ("", "")

    tell(story)


def test_a_claim_that_is_provisioned_elsewhere_fails_the_attempt_with_the_reason() -> None:
    async def story(world: World) -> None:
        await world.node("n1", labels={"host": "n1"})
        await storage_class(world, "example.com/x")
        await claim(world)
        async with scheduling(world):
            await world.pod(volumes=USES)

            def noted() -> bool:
                return "annotations" in read(world, CLAIMS, "default", "c")["metadata"]

            await until(noted)

            def elsewhere(obj: Object, _held: StoredObject) -> Object:
                obj["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "n9"
                return obj

            await world.registry.modify(Target(CLAIMS, "default", "c"), elsewhere, SYSTEM)
            await until(lambda: any("provisioning failed for PVC" in one["message"] for one in events(world)))
            await until(lambda: "nominatedNodeName" not in world.read("p")["status"])

    tell(story)
