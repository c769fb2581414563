"""What a node may write, field by field, beside what the probes asked of a real kube-apiserver."""

import asyncio
from typing import Any, Literal

import pytest

from server.identity.memory import Memory
from situate.server.errors import StatusError
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.authorization.node_authorizer import NodeAuthorizer
from situate.server.identity.authorization.node_restriction import NodeRestriction
from situate.server.identity.ports import resource_of
from situate.server.requests import Caller, Object, Target

ALPHA = Caller("system:node:alpha", ("system:nodes", "system:authenticated"))
NODES, PODS, CLAIMS = (resource_of("v1", plural) for plural in ("nodes", "pods", "persistentvolumeclaims"))
ACCOUNTS, VOLUMES = resource_of("v1", "serviceaccounts"), resource_of("v1", "persistentvolumes")
SLICES = resource_of("resource.k8s.io/v1", "resourceslices")
LEASES = resource_of("coordination.k8s.io/v1", "leases")
CSI_NODES = resource_of("storage.k8s.io/v1", "csinodes")
Action = Literal["create", "update", "delete"]


def refusal(
    action: Action,
    target: Target,
    new: Object | None = None,
    old: Object | None = None,
    caller: Caller = ALPHA,
    world: Memory | None = None,
) -> str:
    """Why a write is refused; "" if it is not."""
    memory = world or Memory()
    try:
        asyncio.run(NodeRestriction(memory, Authorization(memory)).admit(action, target, new, old, caller))
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


def node(labels: Object | None = None, owners: list[Object] | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": "alpha", "labels": labels, "ownerReferences": owners}, "spec": spec}


OWN = Target(NODES, "", "alpha")
SOURCE = {"configMap": {"name": "x"}}


@pytest.mark.parametrize(
    "action, new, old, why",
    [
        ("create", node({"a": "b"}), None, ""),
        ("create", node(configSource=SOURCE), None, "is not allowed to create pods with a non-nil configSource"),
        ("create", node({"node-role.kubernetes.io/x": "", "a.k8s.io/y": ""}), None, "a.k8s.io/y, node-role.kube"),
        ("update", node(), node(), ""),
        ("update", node(configSource=SOURCE), node(configSource=SOURCE), ""),
        ("update", node(configSource=SOURCE), node(), "to a new non-nil configSource"),
        ("update", node(), node(configSource=SOURCE), ""),
        ("update", node(taints=[]), node(), ""),
        ("update", node(taints=[{"key": "k"}]), node(taints=[{"key": "k"}]), ""),
        ("update", node(), node(taints=[{"key": "k"}]), "is not allowed to modify taints"),
        ("update", node(owners=[]), node(), ""),
        ("update", node(), node(owners=[{"uid": "1"}]), "is not allowed to modify ownerReferences"),
        ("update", node({"x.k8s.io/a": "1"}), node({"x.k8s.io/a": "1"}), ""),
        ("update", node(), node({"x.k8s.io/a": "1"}), "is not allowed to modify labels: x.k8s.io/a"),
        ("update", node({"x.k8s.io/a": "2"}), node({"x.k8s.io/a": "1"}), "is not allowed to modify labels: x.k8s.io/a"),
        ("delete", None, node(taints=[{"key": "k"}]), ""),
    ],
)
def test_a_node_writes_itself(action: Action, new: Object | None, old: Object | None, why: str) -> None:
    said = refusal(action, OWN, new, old)
    assert why in said
    assert bool(said) is bool(why)


def test_a_node_does_not_write_others_and_others_are_not_restricted() -> None:
    said = '403 nodes "beta" is forbidden: node "alpha" is not allowed to modify node "beta"'
    assert refusal("update", Target(NODES, "", "beta"), node(), node()) == said
    assert refusal("update", Target(NODES, "", "beta"), node(), node(), Caller("jane")) == ""
    nameless = Caller("system:node:", ("system:nodes",))
    assert 'could not determine node from user "system:node:"' in refusal("update", OWN, node(), node(), nameless)


@pytest.mark.parametrize(
    "label, allowed",
    [
        ("plain", True),
        ("example.com/a", True),
        ("notk8s.io/a", True),
        ("k8s.io/a", False),
        ("kubernetes.io/a", False),
        ("sub.kubernetes.io/a", False),
        ("kubernetes.io/os", True),
        ("kubernetes.io", True),
        ("node.kubernetes.io/a", True),
        ("x.node.kubernetes.io/a", True),
        ("kubelet.kubernetes.io/a", True),
        ("node-restriction.kubernetes.io/a", False),
        ("x.node-restriction.kubernetes.io/a", False),
    ],
)
def test_labels_of_kubernetes_are_the_administrators_but_for_a_few(label: str, allowed: bool) -> None:
    assert (refusal("create", OWN, node({label: "x"})) == "") is allowed


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def pod(on: str = "alpha", labels: Object | None = None, **status: Any) -> Object:
    return {"metadata": {"name": "web", "labels": labels}, "spec": {"nodeName": on}, "status": status}


CLAIMED = [{"name": "r", "resourceClaimName": "c"}]


@pytest.mark.parametrize(
    "new, old, why",
    [
        (pod(phase="Running"), pod(), ""),
        (pod(), pod("beta"), "can only update pod status for pods with spec.nodeName set to itself"),
        (pod(labels={}), pod(), ""),
        (pod(), pod(labels={"a": "b"}), "cannot update labels through pod status"),
        (pod(resourceClaimStatuses=[]), pod(), ""),
        (pod(resourceClaimStatuses=CLAIMED), pod(resourceClaimStatuses=CLAIMED), ""),
        (pod(), pod(resourceClaimStatuses=CLAIMED), "cannot update resource claim statues"),
        (pod(extendedResourceClaimStatus={"a": 1}), pod(extendedResourceClaimStatus={"a": 1}), ""),
        (pod(extendedResourceClaimStatus={"a": 1}), pod(), "cannot update extended resource claim status"),
    ],
)
def test_a_node_reports_its_pods(new: Object, old: Object, why: str) -> None:
    said = refusal("update", Target(PODS, "shop", "web", "status"), new, old)
    assert why in said
    assert bool(said) is bool(why)


def test_a_node_deletes_its_pods() -> None:
    target = Target(PODS, "shop", "web")
    assert refusal("delete", target, None, pod()) == ""
    assert refusal("delete", target, None, None) == ""
    assert "can only delete pods with spec.nodeName set to itself" in refusal("delete", target, None, pod("beta"))


@pytest.mark.parametrize(
    "action, subresource, why",
    [
        ("update", "", 'unexpected operation "UPDATE", node "alpha" can only create and delete mirror pods'),
        ("create", "status", 'unexpected operation "CREATE"'),
        ("delete", "eviction", 'unexpected operation "DELETE"'),
        ("create", "binding", "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed"),
    ],
)
def test_a_node_does_nothing_else_with_pods(action: Action, subresource: str, why: str) -> None:
    assert refusal(action, Target(PODS, "shop", "web", subresource), pod(), pod()).endswith(why)


def test_a_pod_that_is_gone_is_not_evicted() -> None:
    target = Target(PODS, "shop", "web", "eviction")
    assert refusal("create", target, {}) == '404 pod "web" not found'
    bound = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
    assert refusal("create", target, {}, world=Memory(bound | {"spec": {"nodeName": "alpha"}})) == ""
    assert "can only evict pods" in refusal("create", target, {}, world=Memory(bound | {"spec": {"nodeName": "beta"}}))


OWNER = {"apiVersion": "v1", "kind": "Node", "name": "alpha", "uid": "u", "controller": True}


@pytest.mark.parametrize(
    "owner, why",
    [
        ({}, ""),
        ({"apiVersion": "v2"}, "with an owner reference set to itself"),
        ({"kind": "Pod"}, "with an owner reference set to itself"),
        ({"name": "beta"}, "with an owner reference set to itself"),
        ({"controller": False}, "with a controller owner reference set to itself"),
        ({"blockOwnerDeletion": False}, ""),
        ({"blockOwnerDeletion": True}, "must not set blockOwnerDeletion"),
        ({"uid": "v"}, "node alpha UID mismatch: expected v got u"),
    ],
)
def test_a_mirror_pod_is_owned_by_its_node(owner: Object, why: str) -> None:
    mirror = {
        "metadata": {
            "name": "m",
            "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [OWNER | owner],
        },
        "spec": {"nodeName": "alpha"},
    }
    there = Memory({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "alpha", "uid": "u"}})
    said = refusal("create", Target(PODS, "shop"), mirror, world=there)
    assert why in said
    assert bool(said) is bool(why)
    if not why:
        assert refusal("create", Target(PODS, "shop"), mirror) == '404 node "alpha" not found'


# ── other objects ────────────────────────────────────────────────────────────────────────────────────────────────────


def claim(spec: Object | None = None, version: str = "1", **status: Any) -> Object:
    return {"metadata": {"name": "c", "resourceVersion": version}, "spec": spec or {}, "status": status}


@pytest.mark.parametrize(
    "new, allowed",
    [
        (claim(version="2"), True),
        (claim(capacity={"storage": "2Gi"}, conditions=[1], allocatedResources={}), True),
        (claim(allocatedResourceStatuses={"storage": "x"}), True),
        (claim(phase="Lost"), False),
        (claim({"volumeName": "v"}), False),
    ],
)
def test_of_a_claim_a_node_reports_sizes_and_conditions(new: Object, allowed: bool) -> None:
    said = refusal("update", Target(CLAIMS, "shop", "c", "status"), new, claim())
    assert said == "" if allowed else "other than status.quantity and status.conditions" in said
    assert "may only update PVC status" in refusal("update", Target(CLAIMS, "shop", "c"), new, claim())


@pytest.mark.parametrize(
    "action, new, old, allowed",
    [
        ("create", {"spec": {"nodeName": "alpha"}}, None, True),
        ("create", {"spec": {"nodeName": "beta"}}, None, False),
        ("create", None, None, False),
        ("delete", None, {"spec": {"nodeName": "alpha"}}, True),
        ("delete", {"spec": {"nodeName": "alpha"}}, {"spec": {"nodeName": "beta"}}, False),
        ("update", {"spec": {"nodeName": "beta"}}, {"spec": {"nodeName": "beta"}}, True),
    ],
)
def test_a_node_makes_and_deletes_its_slices(
    action: Action, new: Object | None, old: Object | None, allowed: bool
) -> None:
    said = refusal(action, Target(SLICES, "", "s"), new, old)
    assert said == "" if allowed else f"can only {action} ResourceSlice" in said


@pytest.mark.parametrize("name, allowed", [("alpha", True), ("beta", False)])
def test_a_node_writes_the_lease_and_the_csi_node_of_its_name(name: str, allowed: bool) -> None:
    body = {"metadata": {"name": name}}
    for target in (Target(LEASES, "kube-node-lease"), Target(CSI_NODES)):
        assert (refusal("create", target, body) == "") is allowed
        assert (refusal("update", Target(target.resource, target.namespace, name), body, body) == "") is allowed
    assert "can only access leases in the" in refusal("create", Target(LEASES, "shop"), body)
    assert refusal("create", Target(ACCOUNTS, "shop"), body) == ""


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def bound(volume: Object, on: str = "alpha") -> Object:
    spec = {"nodeName": on, "serviceAccountName": "robot", "volumes": [{"name": "v", **volume}]}
    metadata = {"name": "web", "namespace": "shop", "uid": "u"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


DRIVER = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": "d"},
    "spec": {"tokenRequests": [{"audience": "vault"}]},
}
VOLUME = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "p"}, "spec": {"csi": {"driver": "d"}}}


def claim_named(name: str) -> Object:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {"volumeName": "p"}}


def refused_token(world: Memory, *audiences: str, **reference: str) -> str:
    wanted = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u"} | reference
    request = {"spec": {"boundObjectRef": wanted, "audiences": list(audiences)}}
    try:
        NodeRestriction(world, Authorization(world)).admit_token(Target(ACCOUNTS, "shop", "robot"), request, ALPHA)
    except StatusError as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    "volume, more",
    [
        ({"projected": {"sources": [{"secret": {}}, {"serviceAccountToken": {"audience": "vault"}}]}}, ()),
        ({"csi": {"driver": "d"}}, (DRIVER,)),
        ({"persistentVolumeClaim": {"claimName": "data"}}, (DRIVER, VOLUME, claim_named("data"))),
        ({"ephemeral": {}}, (DRIVER, VOLUME, claim_named("web-v"))),
    ],
    ids=["projected", "csi", "claim", "ephemeral"],
)
def test_a_token_is_for_an_audience_that_a_volume_of_the_pod_needs(volume: Object, more: tuple[Object, ...]) -> None:
    world = Memory(bound(volume), *more)
    assert refused_token(world, "vault") == ""
    assert 'audience "bank" not found in pod spec volume' in refused_token(world, "bank")
    assert "may only request 0 or 1 audiences" in refused_token(world, "vault", "bank")
    for missing in range(len(more)):
        fewer = Memory(bound(volume), *more[:missing], *more[missing + 1 :])
        assert 'audience "vault" not found' in refused_token(fewer, "vault")


def test_a_token_without_an_audience_needs_a_volume_without_one() -> None:
    assert refused_token(Memory(bound({"projected": {"sources": [{"serviceAccountToken": {}}]}}))) == ""
    assert 'audience "" not found' in refused_token(Memory(bound({"projected": {"sources": [{"secret": {}}]}})))
    assert 'audience "" not found' in refused_token(Memory(bound({"csi": {"driver": "d"}}), DRIVER))


@pytest.mark.parametrize(
    "reference, why",
    [
        ({"apiVersion": "v2"}, "token not bound to a pod"),
        ({"kind": "Secret"}, "token not bound to a pod"),
        ({"name": ""}, "token not bound to a pod"),
        ({"uid": ""}, "a pod binding without a uid"),
        ({"uid": "other"}, "does not match the UID in record"),
        ({"name": "absent"}, 'pod "absent" not found'),
    ],
)
def test_a_token_is_bound_to_a_pod_of_the_node(reference: dict[str, str], why: str) -> None:
    mounted: Object = {"projected": {"sources": [{"serviceAccountToken": {}}]}}
    assert why in refused_token(Memory(bound(mounted)), **reference)
    assert "a pod scheduled on a different node" in refused_token(Memory(bound(mounted, "beta")))


def local_volume(*finalizers: str, of: str = "alpha", **spec: Any) -> Object:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [of]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    source = {"driver": "node-directories.situate.dev", "volumeHandle": "pv"}
    return {
        "metadata": {"name": "pv", "finalizers": list(finalizers)},
        "spec": {"nodeAffinity": affinity, "csi": source, **spec},
    }


@pytest.mark.parametrize(
    "new, old, why",
    [
        pytest.param(local_volume("situate.dev/node-directory"), local_volume(), "", id="adds its finalizer"),
        pytest.param(local_volume(), local_volume("situate.dev/node-directory"), "", id="removes it"),
        pytest.param(local_volume(), local_volume("kubernetes.io/pv-protection"), "can only write", id="another's"),
        pytest.param(local_volume(capacity={}), local_volume(), "can only write the finalizer", id="the spec"),
    ],
)
def test_an_agent_writes_one_finalizer_of_the_volumes_on_its_node(new: Object, old: Object, why: str) -> None:
    found = refusal("update", Target(VOLUMES, "", "pv"), new, old)
    assert why in found if why else not found


@pytest.mark.parametrize(
    "of, verb, allowed", [("alpha", "patch", True), ("alpha", "update", False), ("beta", "patch", False)]
)
def test_a_node_may_patch_the_volumes_that_are_its_directories(of: str, verb: str, allowed: bool) -> None:
    memory = Memory({"apiVersion": "v1", "kind": "PersistentVolume", **local_volume(of=of)})
    attributes = Attributes(verb, "", "persistentvolumes", "", "", "pv")
    assert NodeAuthorizer(memory).allows(ALPHA, attributes).allowed == allowed
