"""What a node may, decision by decision, where the small cluster of the matrix has no such object."""

from typing import Any

import pytest

from server.identity.memory import Memory
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.authorization.node_authorizer import NodeAuthorizer, node_name_of
from situate.server.requests import Caller, Object

ALPHA = Caller("system:node:alpha", ("system:nodes", "system:authenticated"))
RESOURCES, SITUATE = "resource.k8s.io", "situate.dev"


def made(kind: str, name: str, namespace: str = "", api: str = "v1", **fields: Any) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def why(asked: Attributes, *objects: Object) -> str:
    decision = NodeAuthorizer(Memory(*objects)).allows(ALPHA, asked)
    return "yes" if decision.allowed else decision.reason


@pytest.mark.parametrize(
    "name, groups, node",
    [
        ("system:node:a", ("system:nodes",), "a"),
        ("system:node:", ("system:nodes",), ""),
        ("system:node:a", ("system:masters",), None),
        ("kubelet", ("system:nodes",), None),
    ],
)
def test_a_node_has_a_name_and_is_in_a_group(name: str, groups: tuple[str, ...], node: str | None) -> None:
    assert node_name_of(Caller(name, groups)) == node


def test_a_node_without_a_name_may_nothing_and_others_are_not_asked_about() -> None:
    nameless = Caller("system:node:", ("system:nodes",))
    asked = Attributes("create", "", "events", "", "shop")
    authorizer = NodeAuthorizer(Memory())
    assert authorizer.allows(nameless, asked) == (False, 'unknown node for user "system:node:"')
    assert authorizer.allows(Caller("jane"), asked) == (False, "")
    assert authorizer.allows(ALPHA, asked).allowed


@pytest.mark.parametrize(
    "asked, reason",
    [
        (Attributes("update", "", "secrets", "", "shop", "s"), "can only read resources of this type"),
        (Attributes("get", "", "secrets", "status", "shop", "s"), "cannot read subresource"),
        (Attributes("get", "", "secrets", "", "", "s"), "can only read namespaced object of this type"),
        (Attributes("list", "", "secrets", "", "shop"), "No Object name found"),
        (
            Attributes("get", "", "secrets", "", "shop", "s"),
            "no relationship found between node 'alpha' and this object",
        ),
        (Attributes("list", "", "persistentvolumes"), "can only get individual resources of this type"),
        (Attributes("get", "", "persistentvolumes", "status", "", "v"), "cannot get subresource"),
        (
            Attributes("get", "", "persistentvolumeclaims", "status", "shop", "c"),
            "can only get/update/patch this type",
        ),
        (Attributes("get", "", "serviceaccounts", "token", "shop", "a"), "can only create tokens for individual"),
        (Attributes("create", "", "serviceaccounts", "token", "shop", ""), "can only create tokens for individual"),
        (Attributes("create", "", "serviceaccounts", "", "shop", "a"), "can only create token subresource"),
        (Attributes("list", "coordination.k8s.io", "leases", "", "kube-node-lease"), "can only get, create, update"),
        (Attributes("get", "coordination.k8s.io", "leases", "", "shop", "alpha"), "can only access leases in the"),
        (Attributes("get", "coordination.k8s.io", "leases", "", "kube-node-lease", "beta"), "with the same name"),
        (Attributes("get", "coordination.k8s.io", "leases", "", "kube-node-lease", "alpha"), "yes"),
        (Attributes("create", "coordination.k8s.io", "leases", "", "kube-node-lease"), "yes"),
        (Attributes("list", "storage.k8s.io", "csinodes"), "can only get, create, update, patch, or delete a CSINode"),
        (Attributes("get", "storage.k8s.io", "csinodes", "status", "", "alpha"), "cannot authorize CSINode"),
        (Attributes("get", "storage.k8s.io", "csinodes", "", "", "beta"), "can only access CSINode with the same name"),
        (Attributes("create", "storage.k8s.io", "csinodes"), "yes"),
        (Attributes("create", RESOURCES, "resourceslices", "status"), "cannot authorize ResourceSlice subresources"),
        (Attributes("list", RESOURCES, "resourceslices"), "can only list/watch/deletecollection resourceslices"),
        (Attributes("list", RESOURCES, "resourceslices", fields="spec.nodeName=alpha"), "yes"),
        (Attributes("list", RESOURCES, "resourceslices", fields="spec.nodeName!=alpha"), "can only list/watch"),
        (Attributes("list", RESOURCES, "resourceslices", fields="metadata.name=alpha"), "can only list/watch"),
        (Attributes("bind", RESOURCES, "resourceslices"), "only the following verbs are allowed for a ResourceSlice"),
        (Attributes("get", "", "nodes", "status", "", "alpha"), ""),
        (Attributes("patch", "", "nodes", "status", "", "beta"), "yes"),
        (Attributes("patch", "", "nodes", "proxy", "", "alpha"), ""),
        (Attributes("delete", "", "nodes", "", "", "alpha"), ""),
        (Attributes("get", "", "nodes", "", "", "alpha"), "yes"),
        (Attributes("get", "", "nodes", "", "", "beta"), "node 'alpha' cannot read 'beta', only its own Node object"),
        (Attributes("list", "", "nodes"), "node 'alpha' cannot read all nodes, only its own Node object"),
        (Attributes("list", "", "pods"), "can only list/watch pods with spec.nodeName field selector"),
        (Attributes("watch", "", "pods", "", "shop", "web"), "no relationship found"),
        (Attributes("update", "", "pods", "", "shop", "web"), ""),
        (Attributes("get", SITUATE, "nodesnapshots", "", "", "alpha"), "yes"),
        (Attributes("get", SITUATE, "nodesnapshots", "", "", "beta"), "can only read the NodeSnapshot with the same"),
        (Attributes("get", SITUATE, "nodesnapshots", "status", "", "alpha"), "can only read the NodeSnapshot"),
        (Attributes("update", SITUATE, "nodesnapshots", "", "", "alpha"), "can only read the NodeSnapshot"),
        (Attributes("create", SITUATE, "nodejoins"), "yes"),
        (Attributes("get", SITUATE, "nodejoins"), ""),
        (Attributes("create", SITUATE, "nodejoins", "status"), ""),
    ],
)
def test_a_decision_has_its_reason(asked: Attributes, reason: str) -> None:
    said = why(asked)
    assert said == reason if reason in ("", "yes") else reason in said


WEB = made(
    "Pod",
    "web",
    "shop",
    spec={"nodeName": "alpha", "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
)
CLAIM = made("PersistentVolumeClaim", "data", "shop", spec={"volumeName": "vol"})
SOURCE = {"csi": {"driver": "d", "nodePublishSecretRef": {"name": "key", "namespace": "vault"}}}


def volume(namespace: str = "shop", name: str = "data", **more: Any) -> Object:
    return made("PersistentVolume", "vol", spec={**SOURCE, "claimRef": {"namespace": namespace, "name": name}, **more})


@pytest.mark.parametrize(
    "objects, allowed",
    [
        ((WEB, CLAIM, volume()), True),
        ((CLAIM, volume()), False),
        ((WEB, volume()), False),
        ((WEB, CLAIM), False),
        ((WEB, CLAIM, volume(namespace="other")), False),
        ((WEB, CLAIM, volume(name="other")), False),
        ((WEB, CLAIM, volume(csi={})), False),
        ((WEB, made("PersistentVolumeClaim", "data", "shop", spec={}), volume()), False),
    ],
)
def test_the_secret_of_a_volume_is_read_by_the_node_of_the_pod_whose_claim_it_serves(
    objects: tuple[Object, ...], allowed: bool
) -> None:
    assert (why(Attributes("get", "", "secrets", "", "vault", "key"), *objects) == "yes") is allowed
    assert why(Attributes("get", "", "configmaps", "", "vault", "key"), *objects) != "yes"


def test_a_volume_is_read_by_the_node_whose_pod_claims_it() -> None:
    asked = Attributes("get", "", "persistentvolumes", "", "", "vol")
    assert why(asked, WEB, volume()) == "yes"
    assert why(asked, volume()) != "yes"
    assert why(asked, WEB, volume(name="other")) != "yes"
    assert why(asked, WEB, made("PersistentVolume", "vol", spec={})) != "yes"
    assert why(asked, WEB) != "yes"


@pytest.mark.parametrize(
    "kind, plural, group, api",
    [
        ("VolumeAttachment", "volumeattachments", "storage.k8s.io", "storage.k8s.io/v1"),
        ("ResourceSlice", "resourceslices", RESOURCES, "resource.k8s.io/v1"),
    ],
)
def test_an_object_of_a_node_is_read_by_that_node(kind: str, plural: str, group: str, api: str) -> None:
    asked = Attributes("get", group, plural, "", "", "one")
    assert why(asked, made(kind, "one", api=api, spec={"nodeName": "alpha"})) == "yes"
    assert why(asked, made(kind, "one", api=api, spec={"nodeName": "beta"})).startswith("no relationship")
    assert why(asked).startswith("no relationship")


def test_a_refusal_of_a_node_has_the_reasons_of_both() -> None:
    binding = made(
        "ClusterRoleBinding",
        "lost",
        api="rbac.authorization.k8s.io/v1",
        subjects=[{"kind": "Group", "name": "system:nodes"}],
        roleRef={"kind": "ClusterRole", "name": "absent"},
    )
    lost = 'RBAC: clusterrole.rbac.authorization.k8s.io "absent" not found'
    authorization = Authorization(Memory(binding))
    secret, pod = Attributes("get", "", "secrets", "", "shop", "s"), Attributes("update", "", "pods", "", "shop", "p")
    assert authorization.allows(ALPHA, secret).reason == (
        f"no relationship found between node 'alpha' and this object\n{lost}"
    )
    assert authorization.allows(ALPHA, pod) == (False, lost)
    assert authorization.allows(ALPHA, Attributes("get", "", "nodes", "", "", "alpha")) == (True, "")
    assert Authorization(Memory()).allows(ALPHA, pod) == (False, "")
