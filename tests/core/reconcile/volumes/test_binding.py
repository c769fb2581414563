"""Claims and volumes: bound to each other, provisioned, released, lost and protected."""

from __future__ import annotations

from typing import Any

import pytest

from core.reconcile.test_table import Driven
from core.reconcile.world import Raw, World
from situate.core.reconcile.volumes.claim import BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONER_OF
from situate.core.reconcile.volumes.provisioner import DIRECTORY, PROVISIONED_BY, PROVISIONER, SELECTED_NODE

NFS = {"nfs": {"server": "s", "path": "/p"}}


def claim(name: str = "data", size: str = "1Gi", **spec: Any) -> Raw:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "volumeMode": "Filesystem"}
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": {**body, **spec},
        "status": {"phase": "Pending"},
    }


def volume(name: str = "pv", size: str = "1Gi", labels: dict[str, str] | None = None, **spec: Any) -> Raw:
    body = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "volumeMode": "Filesystem", **NFS}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"persistentVolumeReclaimPolicy": "Retain", **body, **spec},
        "status": {"phase": "Pending"},
    }


def storage_class(name: str = "standard", mode: str = "WaitForFirstConsumer", provisioner: str = PROVISIONER) -> Raw:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": mode,
    }


def node(name: str = "n1", runtime: str = "hollow://1") -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"nodeInfo": {"containerRuntimeVersion": runtime}},
    }


def pod_using(name: str, **spec: Any) -> Raw:
    mounted = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
    meta = {"name": "p", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"volumes": [mounted], **spec}}


def settled(*bodies: Raw) -> World:
    world = World()
    for body in bodies:
        world.create(body)
    world.settle()
    return world


def phase(world: World, kind: str, name: str) -> str:
    return str(world.find(kind, name, "" if kind == "PersistentVolume" else "default")["status"]["phase"])


def bound_to(world: World, name: str = "data") -> str:
    return str(world.find("PersistentVolumeClaim", name)["spec"].get("volumeName", ""))


def selected(name: str = "n1", **spec: Any) -> Raw:
    """A claim for which the scheduler has selected a node."""
    body = claim(storageClassName="standard", **spec)
    body["metadata"]["annotations"] = {SELECTED_NODE: name}
    return body


# -- binding -----------------------------------------------------------------------------------------------------------


def test_a_claim_gets_the_smallest_volume_that_suits_it() -> None:
    world = settled(volume("big", "10Gi"), volume("small", "1Gi"), volume("middle", "5Gi"), claim(size="2Gi"))
    assert bound_to(world) == "middle"
    held, pv = world.find("PersistentVolumeClaim", "data"), world.find("PersistentVolume", "middle", "")
    assert held["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"}}
    assert held["metadata"]["annotations"] == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    assert pv["status"]["phase"] == "Bound"
    assert pv["spec"]["claimRef"]["uid"] == held["metadata"]["uid"]
    assert pv["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    assert phase(world, "PersistentVolume", "small") == "Available"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"size": "2Gi"}, id="too small"),
        pytest.param({"accessModes": ["ReadWriteMany"]}, id="without the access mode"),
        pytest.param({"volumeMode": "Block"}, id="of another volume mode"),
        pytest.param({"storageClassName": "gold"}, id="of another class"),
        pytest.param({"selector": {"matchLabels": {"disk": "ssd"}}}, id="that its selector does not match"),
    ],
)
def test_a_volume_is_not_bound_when_it_is(spec: dict[str, Any]) -> None:
    assert bound_to(settled(volume(labels={"disk": "hdd"}), claim(**spec))) == ""


def test_a_selector_chooses_among_volumes() -> None:
    chosen = claim(selector={"matchLabels": {"disk": "ssd"}})
    world = settled(volume("a"), volume("b", labels={"disk": "ssd"}), chosen)
    assert bound_to(world) == "b"


def test_a_volume_that_comes_later_is_bound() -> None:
    driven = Driven(0)
    driven.create(claim())
    driven.create(volume())
    driven.settle()
    assert bound_to(driven) == "pv"


def test_a_volume_that_names_a_claim_goes_to_no_other() -> None:
    reserved = volume("reserved", claimRef={"namespace": "default", "name": "mine"})
    world = settled(reserved, claim("other"), claim("mine"))
    assert (bound_to(world, "other"), bound_to(world, "mine")) == ("", "reserved")
    assert "annotations" not in world.find("PersistentVolume", "reserved", "")["metadata"]


def test_a_claim_that_names_its_volume_gets_it() -> None:
    world = settled(volume("a"), volume("b"), claim(volumeName="b"))
    assert phase(world, "PersistentVolumeClaim", "data") == "Bound"
    assert world.find("PersistentVolumeClaim", "data")["metadata"]["annotations"] == {BIND_COMPLETED: "yes"}


def test_a_claim_for_a_volume_that_does_not_suit_says_so() -> None:
    world = settled(volume("a"), claim(volumeName="a", size="2Gi"))
    assert phase(world, "PersistentVolumeClaim", "data") == "Pending"
    messages = {event.message for event in world.events}
    assert messages == {'Cannot bind to requested volume "a": requested PV is too small'}


def test_of_two_claims_for_one_volume_one_waits() -> None:
    world = settled(volume("a"), claim("one", volumeName="a"), claim("two", volumeName="a"))
    phases = sorted(phase(world, "PersistentVolumeClaim", name) for name in ("one", "two"))
    assert phases == ["Bound", "Pending"]
    assert 'volume "a" already bound to a different claim.' in [event.message for event in world.events]


def test_a_claim_without_class_and_volume_says_what_it_misses() -> None:
    world = settled(claim())
    assert {(event.reason, event.type) for event in world.events} == {("FailedBinding", "Normal")}


# -- provisioning ------------------------------------------------------------------------------------------------------


def test_a_claim_waits_for_its_first_pod() -> None:
    world = settled(
        storage_class(), node(), volume("free", storageClassName="standard"), claim(storageClassName="standard")
    )
    assert bound_to(world) == ""
    assert {event.reason for event in world.events} == {"WaitForFirstConsumer"}


def test_a_volume_is_provisioned_on_the_selected_node() -> None:
    world = settled(storage_class(), node("n1"), selected())
    name = f"pvc-{world.find('PersistentVolumeClaim', 'data')['metadata']['uid']}"
    assert bound_to(world) == name
    made = world.find("PersistentVolume", name, "")
    assert made["spec"]["csi"] == {"driver": PROVISIONER, "volumeHandle": name}
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]
    assert (made["status"]["phase"], phase(world, "PersistentVolumeClaim", "data")) == ("Bound", "Bound")
    annotations = world.find("PersistentVolumeClaim", "data")["metadata"]["annotations"]
    assert [annotations[key] for key in PROVISIONER_OF] == [PROVISIONER, PROVISIONER]
    assert "ProvisioningSucceeded" in world.reasons()


def test_a_kubelet_creates_its_directory_itself() -> None:
    world = settled(storage_class(), node(runtime="containerd://2"), selected())
    assert world.find("PersistentVolume", bound_to(world), "")["spec"]["hostPath"]["type"] == "DirectoryOrCreate"


def test_a_claim_for_a_node_that_is_gone_goes_back_to_the_scheduler() -> None:
    world = settled(storage_class(), selected("gone"))
    assert SELECTED_NODE not in world.find("PersistentVolumeClaim", "data")["metadata"]["annotations"]
    assert 'failed to provision volume with StorageClass "standard": node "gone" not found' in [
        event.message for event in world.events
    ]


def test_other_provisioners_are_named_and_waited_for() -> None:
    world = settled(storage_class(mode="Immediate", provisioner="csi.example.com"), claim(storageClassName="standard"))
    assert bound_to(world) == ""
    assert {event.reason for event in world.events} == {"ExternalProvisioning"}


@pytest.mark.parametrize(
    "made, asked, text",
    [
        pytest.param(
            storage_class(mode="Immediate"), claim(storageClassName="standard"), "no node was selected", id="at once"
        ),
        pytest.param(storage_class(), selected(volumeMode="Block"), "Block is not supported", id="blocks"),
        pytest.param(storage_class("other"), claim(storageClassName="standard"), '"standard" not found', id="no class"),
    ],
)
def test_what_cannot_be_provisioned_says_why(made: Raw, asked: Raw, text: str) -> None:
    world = settled(made, node(), asked)
    assert world.events
    assert all(text in event.message for event in world.events if event.reason == "ProvisioningFailed")
    assert "ProvisioningFailed" in world.reasons()


# -- when claims go ----------------------------------------------------------------------------------------------------


def test_a_volume_outlives_its_claim_unless_its_policy_is_delete() -> None:
    world = settled(volume(), claim())
    world.delete("PersistentVolumeClaim", "data")
    world.settle()
    assert phase(world, "PersistentVolume", "pv") == "Released"
    world.create(claim())  # another claim of its name
    world.settle()
    assert (phase(world, "PersistentVolume", "pv"), bound_to(world)) == ("Released", "")


def test_a_provisioned_volume_goes_with_its_claim() -> None:
    world = settled(storage_class(), node(), selected())
    world.delete("PersistentVolumeClaim", "data")
    world.settle()
    assert world.names("PersistentVolume") == []


def test_a_provisioned_volume_waits_for_its_directory_while_its_node_is_there() -> None:
    driven = Driven(0)
    for body in (storage_class(), node(), selected()):
        driven.create(body)
    driven.settle()
    world, name = driven, bound_to(driven)
    held = world.find("PersistentVolume", name, "")
    world.patch(
        "PersistentVolume", name, {"metadata": {"finalizers": [*held["metadata"]["finalizers"], DIRECTORY]}}, ""
    )
    world.delete("PersistentVolumeClaim", "data")
    driven.settle()
    assert world.find("PersistentVolume", name, "")["metadata"]["finalizers"] == [DIRECTORY]
    world.delete("Node", "n1", "")
    driven.settle()
    assert world.names("PersistentVolume") == []


def test_a_volume_of_another_provisioner_is_left_to_it() -> None:
    other = volume(persistentVolumeReclaimPolicy="Delete")
    other["metadata"]["annotations"] = {PROVISIONED_BY: "csi.example.com"}
    world = settled(other, claim())
    world.delete("PersistentVolumeClaim", "data")
    world.settle()
    assert phase(world, "PersistentVolume", "pv") == "Released"


@pytest.mark.parametrize("policy, reason", [("Delete", "VolumeFailedDelete"), ("Recycle", "VolumeFailedRecycle")])
def test_what_nobody_can_reclaim_has_failed(policy: str, reason: str) -> None:
    world = settled(volume(persistentVolumeReclaimPolicy=policy), claim())
    world.delete("PersistentVolumeClaim", "data")
    world.settle()
    assert phase(world, "PersistentVolume", "pv") == "Failed"
    assert reason in world.reasons()


def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    world = settled(volume(), claim())
    world.gone(world.find("PersistentVolume", "pv", ""))
    world.settle()
    assert phase(world, "PersistentVolumeClaim", "data") == "Lost"
    assert "ClaimLost" in world.reasons()


def test_a_volume_that_lost_its_claim_reference_gets_it_back() -> None:
    driven = Driven(0)
    for body in (volume(), claim()):
        driven.create(body)
    driven.settle()
    driven.patch("PersistentVolume", "pv", {"spec": {"claimRef": None}}, "")
    driven.settle()
    assert driven.find("PersistentVolume", "pv", "")["spec"]["claimRef"]["name"] == "data"


# -- protection --------------------------------------------------------------------------------------------------------


def test_a_claim_stays_while_a_pod_on_a_node_uses_it() -> None:
    driven = Driven(0)
    for body in (volume(), claim(), pod_using("data", nodeName="n1")):
        driven.create(body)
    driven.settle()
    driven.delete("PersistentVolumeClaim", "data")
    driven.settle()
    assert driven.names("PersistentVolumeClaim") == ["data"]
    driven.gone(driven.find("Pod", "p"))
    driven.settle()
    assert driven.names("PersistentVolumeClaim") == []


def test_a_volume_stays_while_it_is_bound() -> None:
    world = settled(volume(), claim())
    world.delete("PersistentVolume", "pv", "")
    world.settle()
    assert phase(world, "PersistentVolume", "pv") == "Bound"
    world.delete("PersistentVolumeClaim", "data")
    world.settle()
    assert world.names("PersistentVolume") == []
