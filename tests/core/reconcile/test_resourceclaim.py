"""Claims for devices: made from templates, released when their pods are over, deleted with them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.reconcile.test_table import Driven
from core.reconcile.world import Raw, World, is_live, manifest, template, workload
from situate.core.model.managed_devices import ManagedResourceClaim
from situate.core.reconcile.effects import ReconcileError
from situate.core.reconcile.resourceclaim import FINALIZER, POD_CLAIM, generated_base, unseen_pods

DEVICES = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
BY_TEMPLATE = ({"name": "gpu", "resourceClaimTemplateName": "one-gpu"},)
BY_NAME = ({"name": "gpu", "resourceClaimName": "shared"},)


def claim_template(name: str = "one-gpu") -> Raw:
    meta = {"name": name, "namespace": "default"}
    spec = {"metadata": {"labels": {"kind": "gpu"}, "annotations": {"a": "b"}}, "spec": DEVICES}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": meta,
        "spec": spec,
    }


def claim(name: str = "shared") -> Raw:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": DEVICES}


def pod(name: str = "p", claims: tuple[Raw, ...] = BY_TEMPLATE, **spec: Any) -> Raw:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"resourceClaims": list(claims), **spec}}


def consumer(of: Raw) -> Raw:
    return {"resource": "pods", "name": of["metadata"]["name"], "uid": of["metadata"]["uid"]}


def allocated(world: World, name: str, *pods: Raw, **status: Any) -> None:
    """What a scheduler writes."""
    held = world.find("ResourceClaim", name)
    held["metadata"]["finalizers"] = [FINALIZER]
    held["status"] = {"allocation": {"devices": {}}, "reservedFor": [consumer(one) for one in pods], **status}
    world.put(held)


def only_claim(world: World) -> Raw:
    (found,) = world.all("ResourceClaim")
    return found


def with_pod(**spec: Any) -> World:
    world = World()
    world.create(claim_template())
    world.create(pod(**spec))
    world.settle()
    return world


def test_a_pod_gets_a_claim_from_its_template() -> None:
    made = only_claim(world := with_pod())
    meta, owner = made["metadata"], world.find("Pod", "p")
    assert meta["generateName"] == "p-gpu-"
    assert meta["name"].startswith("p-gpu-")
    assert meta["labels"] == {"kind": "gpu"}
    assert meta["annotations"] == {"a": "b", POD_CLAIM: "gpu"}
    assert meta["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner["metadata"]["uid"], "controller": True}
    ]
    assert made["spec"] == DEVICES
    assert owner["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": meta["name"]}]


def test_two_entries_of_one_template_get_two_claims() -> None:
    both = ({**BY_TEMPLATE[0], "name": "a"}, {**BY_TEMPLATE[0], "name": "b"})
    world = with_pod(claims=both)
    made = {one["metadata"]["annotations"][POD_CLAIM]: one["metadata"]["name"] for one in world.all("ResourceClaim")}
    said = world.find("Pod", "p")["status"]["resourceClaimStatuses"]
    assert {one["name"]: one["resourceClaimName"] for one in said} == made
    assert len(set(made.values())) == 2


def test_a_claim_whose_name_was_not_written_is_found_and_not_made_again() -> None:
    world = with_pod()
    before = only_claim(world)["metadata"]["name"]
    world.patch("Pod", "p", {"status": None})
    world.settle()
    assert only_claim(world)["metadata"]["name"] == before
    assert world.find("Pod", "p")["status"]["resourceClaimStatuses"][0]["resourceClaimName"] == before


def test_a_claim_that_was_deleted_is_made_again() -> None:
    world = with_pod()
    before = only_claim(world)["metadata"]["name"]
    world.delete("ResourceClaim", before)
    world.settle()
    after = only_claim(world)["metadata"]["name"]
    assert after != before
    assert world.find("Pod", "p")["status"]["resourceClaimStatuses"][0]["resourceClaimName"] == after


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"status": {"phase": "Succeeded"}}, id="that has ended"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}}, id="deleted"),
        pytest.param({"status": {"resourceClaimStatuses": [{"name": "gpu"}]}}, id="whose status says none is needed"),
    ],
)
def test_no_claim_is_made_for_a_pod(change: Raw) -> None:
    world = World()
    world.create(claim_template())
    world.create(pod())
    world.patch("Pod", "p", change)
    world.settle()
    assert world.all("ResourceClaim") == []


def test_a_pod_whose_template_is_missing_says_so_and_gets_its_claim_when_it_comes() -> None:
    world = Driven()
    world.create(pod())
    with pytest.raises(ReconcileError) as caught:
        world.settle()
    assert caught.value.reason == "FailedResourceClaimCreation"
    assert str(caught.value) == (
        'PodResourceClaim gpu: resource claim template "one-gpu":'
        ' resourceclaimtemplate.resource.k8s.io "one-gpu" not found'
    )
    world.create(claim_template())
    world.settle()
    assert only_claim(world)["metadata"]["annotations"][POD_CLAIM] == "gpu"


def test_long_names_lose_in_proportion() -> None:
    base = generated_base("p" * 60, "c" * 30)
    assert base == "p" * 37 + "-" + "c" * 18


# -- reservations ------------------------------------------------------------------------------------------------------


def test_a_bound_pod_gets_a_reservation_of_an_allocated_claim() -> None:
    world = World()
    world.create(claim())
    first = world.create(pod("first", BY_NAME, nodeName="n0"))
    allocated(world, "shared", first)
    second = world.create(pod("second", BY_NAME, nodeName="n0"))
    world.create(pod("third", BY_NAME))
    world.settle()
    held = world.find("ResourceClaim", "shared")["status"]["reservedFor"]
    assert held == [consumer(first), consumer(second)], "the third is the scheduler's"


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"allocation": None}, id="without devices"),
        pytest.param(
            {"reservedFor": [{"resource": "other", "name": "x", "uid": str(n)} for n in range(256)]}, id="full"
        ),
    ],
)
def test_a_claim_is_not_reserved(status: Raw) -> None:
    world = World()
    world.create(claim())
    world.create(pod("p", BY_NAME, nodeName="n0"))
    allocated(world, "shared", **status)
    before = world.find("ResourceClaim", "shared")
    world.settle()
    assert world.find("ResourceClaim", "shared") == before


def test_of_a_shared_claim_the_last_pod_gives_the_devices_back() -> None:
    world = Driven()
    world.create(claim())
    pods = [world.create(pod(name, BY_NAME, nodeName="n0")) for name in ("a", "b")]
    allocated(world, "shared", *pods)
    world.patch("Pod", "a", {"status": {"phase": "Succeeded"}})
    world.settle()
    held = world.find("ResourceClaim", "shared")
    assert held["status"] == {"allocation": {"devices": {}}, "reservedFor": [consumer(pods[1])]}
    assert held["metadata"]["finalizers"] == [FINALIZER]
    world.patch("Pod", "b", {"status": {"phase": "Failed"}})
    world.settle()
    assert world.find("ResourceClaim", "shared")["status"] == {}


class Protected(Driven):
    """Whoever deletes a claim at any moment must not take its devices from a pod for which it was just reserved."""

    def put(self, body: Raw) -> Raw:
        meta = body["metadata"]
        is_kept = body["kind"] == "ResourceClaim" and "deletionTimestamp" not in meta
        if is_kept and "allocation" in body.get("status", {}):
            assert FINALIZER in meta.get("finalizers", ()), meta["name"]
        return super().put(body)


@pytest.mark.parametrize("claims", [BY_NAME, BY_TEMPLATE], ids=["shared", "generated"])
def test_a_claim_with_devices_can_never_be_deleted_at_once(claims: tuple[Raw, ...]) -> None:
    world = Protected()
    world.create(claim())
    world.create(claim_template())
    user = world.create(pod("p", claims, nodeName="n0"))
    world.settle()
    for one in world.all("ResourceClaim"):
        allocated(world, one["metadata"]["name"], user)
    world.patch("Pod", "p", {"status": {"phase": "Succeeded"}})
    world.settle()
    assert [one["status"] for one in world.all("ResourceClaim")] == [{}]


def test_an_allocated_claim_that_nobody_ever_used_stays_allocated() -> None:
    world = World()
    world.create(claim())
    allocated(world, "shared")
    assert world.settle() == 0


def test_a_consumer_that_is_no_pod_keeps_the_claim() -> None:
    world = World()
    world.create(claim())
    other = {"apiGroup": "x.io", "resource": "things", "name": "t", "uid": "u"}
    allocated(world, "shared", reservedFor=[other, {"resource": "pods", "name": "gone", "uid": "v"}])
    world.settle()
    assert world.find("ResourceClaim", "shared")["status"]["reservedFor"] == [other]


def test_a_deleted_claim_goes_when_its_last_pod_is_over() -> None:
    world = Driven()
    world.create(claim())
    user = world.create(pod("p", BY_NAME, nodeName="n0"))
    allocated(world, "shared", user)
    world.delete("ResourceClaim", "shared")
    world.settle()
    assert world.names("ResourceClaim") == ["shared"]
    world.patch("Pod", "p", {"status": {"phase": "Succeeded"}})
    world.settle()
    assert world.names("ResourceClaim") == []


def test_a_deleted_claim_that_is_allocated_and_not_reserved_goes() -> None:
    world = World()
    world.create(claim())
    allocated(world, "shared")
    world.delete("ResourceClaim", "shared")
    world.settle()
    assert world.names("ResourceClaim") == []


@pytest.mark.parametrize("kept", [True, False], ids=["that has ended", "that is gone"])
def test_a_generated_claim_goes_with_its_pod(kept: bool) -> None:
    world = Driven()
    world.create(claim_template())
    owner = world.create(pod(nodeName="n0"))
    world.settle()
    allocated(world, only_claim(world)["metadata"]["name"], owner)
    world.patch("Pod", "p", {"status": {"phase": "Succeeded"}})
    if not kept:
        world.delete("Pod", "p")
    world.settle()
    assert world.names("Pod") == (["p"] if kept else [])
    assert world.all("ResourceClaim") == []


def test_the_claim_for_extended_resources_goes_when_its_pod_has_ended() -> None:
    world = Driven()
    owner = world.create(pod(claims=(), nodeName="n0"))
    special = claim("p-extended-resources-x")
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner["metadata"]["uid"], "controller": True}
    special["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [reference],
    }
    world.create(special)
    allocated(world, "p-extended-resources-x", owner)
    world.patch(
        "Pod", "p", {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "p-extended-resources-x"}}}
    )
    world.settle()
    assert world.names("ResourceClaim") == ["p-extended-resources-x"]
    world.patch("Pod", "p", {"status": {"phase": "Succeeded"}})
    world.settle()
    assert world.all("ResourceClaim") == []


def test_the_pods_to_ask_the_server_for_are_those_that_are_not_seen() -> None:
    world = World()
    seen = world.create(pod("seen", BY_NAME))
    world.create(pod("replaced", BY_NAME))
    body = claim()
    body["status"] = {
        "reservedFor": [
            consumer(seen),
            {"resource": "pods", "name": "replaced", "uid": "another"},
            {"resource": "pods", "name": "unseen", "uid": "u"},
            {"apiGroup": "x.io", "resource": "pods", "name": "other", "uid": "v"},
        ]
    }
    found = unseen_pods(msgspec.convert(body, ManagedResourceClaim), world.held)
    assert [(one.name, one.uid) for one in found] == [("replaced", "another"), ("unseen", "u")]


@pytest.mark.parametrize("seed", range(8))
def test_pods_that_come_and_go_leave_no_claim_and_no_reservation(seed: int) -> None:
    """A Deployment by template and pods that share a claim, with a scheduler that allocates what it sees."""
    world = Driven(seed)
    world.create(claim_template())
    world.create(claim())
    world.create(workload("Deployment", replicas=3, template=template(resourceClaims=list(BY_TEMPLATE))))
    sharing = template(app="j", restartPolicy="Never", resourceClaims=list(BY_NAME))
    world.create(manifest("Job", "j", parallelism=2, completions=6, template=sharing))
    for _ in range(14):
        world.settle()
        for one in world.all("Pod"):
            schedule(world, one)
        world.settle()
        world.tick()
        live = [one["metadata"]["name"] for one in world.pods(app="web") if is_live(one)]
        if live and world.dice.random() < 0.3:
            world.delete("Pod", world.dice.choice(live))
    for _ in range(3):
        world.settle()
        world.tick()
    world.settle()
    assert world.calls_left() == []
    live = [one for one in world.pods(app="web") if is_live(one)]
    owners = [
        one["metadata"]["ownerReferences"][0]["uid"]
        for one in world.all("ResourceClaim")
        if one["metadata"]["name"] != "shared"
    ]
    assert sorted(owners) == sorted(one["metadata"]["uid"] for one in live)
    assert world.find("ResourceClaim", "shared").get("status", {}) == {}


def schedule(world: World, one: Raw) -> None:
    """Allocate and reserve the claims of a pod that waits."""
    if one["spec"].get("nodeName") or not is_live(one):
        return
    said = {
        each["name"]: each.get("resourceClaimName") for each in one.get("status", {}).get("resourceClaimStatuses", ())
    }
    for entry in one["spec"]["resourceClaims"]:
        name = entry.get("resourceClaimName") or said[entry["name"]]
        held = world.find("ResourceClaim", name).get("status", {}).get("reservedFor", [])
        if consumer(one) not in held:
            allocated(world, name, reservedFor=[*held, consumer(one)])
