"""Writes that nodes and granters of rights must not make, or may: asked of a real kube-apiserver, and of us."""

from collections.abc import Callable
from typing import Any, NamedTuple

from server.identity.world import ASKERS, AUTHENTICATED, RBAC, Asker, Json

BY_ID = {who.id: who for who in ASKERS}
ALPHA = BY_ID["node-self"]
GAMMA = Asker("gamma", "system:node:gamma", ("system:nodes", AUTHENTICATED))
NAMELESS = BY_ID["node-nameless"]
KATE = BY_ID["keeper"]
ANN, BOB, EVE = (Asker(name, name, (AUTHENTICATED,)) for name in ("ann", "bob", "eve"))

CORE = "/api/v1"
PODS = f"{CORE}/namespaces/shop/pods"
RBACS = f"/apis/{RBAC}"
LEASES = "/apis/coordination.k8s.io/v1/namespaces"


class Probe(NamedTuple):
    id: str
    who: Asker
    method: str
    path: str
    body: Json | None = None

    def filled(self, get: Callable[[str], Json]) -> Json | None:
        """The body; `uid of PATH` in it becomes that uid."""

        def fill(value: Any) -> Any:
            match value:
                case dict():
                    return {key: fill(inner) for key, inner in value.items()}
                case list():
                    return [fill(inner) for inner in value]
                case str() if value.startswith("uid of "):
                    return get(value.removeprefix("uid of "))["metadata"]["uid"]
            return value

        filled: Json | None = fill(self.body)
        return filled


def lease(name: str, namespace: str = "kube-node-lease") -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"holderIdentity": name},
    }


def node(name: str, labels: Json | None = None, **spec: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def owner(name: str = "alpha", uid: str = f"uid of {CORE}/nodes/alpha", **more: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True} | more


def mirror(*owners: Json, node_name: str = "alpha", **spec: Any) -> Json:
    metadata: Json = {"name": "mirrored", "namespace": "shop", "annotations": {"kubernetes.io/config.mirror": "x"}}
    if owners:
        metadata["ownerReferences"] = list(owners)
    inside = {"nodeName": node_name, "containers": [{"name": "main", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": inside}


def token(pod: str = "", uid: str = "", *audiences: str, kind: str = "Pod") -> Json:
    spec: Json = {"expirationSeconds": 3600, "audiences": list(audiences)}
    if pod:
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": kind, "name": pod, "uid": uid}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


def eviction(pod: str) -> Json:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "shop"}}


def role(*rules: Json, namespace: str = "shop", **more: Any) -> Json:
    metadata = {"name": "made"} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": RBAC,
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": metadata,
        "rules": list(rules),
    } | more


def rule(verbs: str, group: str, resources: str, **more: Any) -> Json:
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()} | more


def binding(name: str, namespace: str = "shop", kind: str = "ClusterRole") -> Json:
    metadata = {"name": "made"} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": RBAC,
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "subjects": [{"kind": "User", "name": "zoe", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
    }


def slice_of(node_name: str) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "made"},
        "spec": {
            "driver": "d.example.com",
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
        },
    }


TOKENS = f"{CORE}/namespaces/shop/serviceaccounts/web-account/token"
WEB_UID, OTHER_UID = f"uid of {PODS}/web", f"uid of {PODS}/other"
CLAIM = f"{CORE}/namespaces/shop/persistentvolumeclaims/data"
TAINTS = [{"key": "k", "effect": "NoSchedule"}]
SECRET_VOLUME = [{"name": "v", "secret": {"secretName": "loose-secret"}}]
CONFIG_VOLUME = [{"name": "v", "configMap": {"name": "loose-config"}}]
TOKEN_VOLUME = [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "p"}}]}}]

PROBES = (
    Probe("a node makes its own lease", ALPHA, "POST", f"{LEASES}/kube-node-lease/leases", lease("alpha")),
    Probe("a node makes the lease of another", ALPHA, "POST", f"{LEASES}/kube-node-lease/leases", lease("beta")),
    Probe(
        "a node makes a lease elsewhere", ALPHA, "POST", f"{LEASES}/kube-system/leases", lease("alpha", "kube-system")
    ),
    Probe("a node labels another", ALPHA, "PATCH", f"{CORE}/nodes/beta", {"metadata": {"labels": {"a": "b"}}}),
    Probe("a node labels itself", ALPHA, "PATCH", f"{CORE}/nodes/alpha", {"metadata": {"labels": {"a.com/a": "b"}}}),
    Probe(
        "a node labels itself as kubelets do",
        ALPHA,
        "PATCH",
        f"{CORE}/nodes/alpha",
        {"metadata": {"labels": {"node.kubernetes.io/a": "b", "topology.kubernetes.io/zone": "z"}}},
    ),
    Probe(
        "a node gives itself labels that are reserved",
        ALPHA,
        "PATCH",
        f"{CORE}/nodes/alpha",
        {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b", "x.node-restriction.kubernetes.io/b": "c"}}},
    ),
    Probe(
        "a node gives itself an unknown label of Kubernetes",
        ALPHA,
        "PATCH",
        f"{CORE}/nodes/alpha",
        {"metadata": {"labels": {"secure.k8s.io/a": "b", "node-role.kubernetes.io/master": ""}}},
    ),
    Probe("a node taints itself", ALPHA, "PATCH", f"{CORE}/nodes/alpha", {"spec": {"taints": TAINTS}}),
    Probe(
        "a node gives itself an owner",
        ALPHA,
        "PATCH",
        f"{CORE}/nodes/alpha",
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}]}},
    ),
    Probe("a node cordons itself", ALPHA, "PATCH", f"{CORE}/nodes/alpha", {"spec": {"unschedulable": True}}),
    Probe("a node deletes itself", ALPHA, "DELETE", f"{CORE}/nodes/alpha"),
    Probe(
        "a node reports its status",
        ALPHA,
        "PATCH",
        f"{CORE}/nodes/alpha/status",
        {"status": {"phase": "Running"}},
    ),
    Probe(
        "a node reports the status of another",
        ALPHA,
        "PATCH",
        f"{CORE}/nodes/beta/status",
        {"status": {"phase": "Running"}},
    ),
    Probe(
        "a node takes a reserved label by its status",
        ALPHA,
        "PATCH",
        f"{CORE}/nodes/alpha/status",
        {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}},
    ),
    Probe("a node makes another node", ALPHA, "POST", f"{CORE}/nodes", node("made")),
    Probe("a node joins, tainted", GAMMA, "POST", f"{CORE}/nodes", node("gamma", taints=TAINTS)),
    Probe(
        "a node joins with labels it may have",
        GAMMA,
        "POST",
        f"{CORE}/nodes",
        node("gamma", {"kubernetes.io/os": "linux"}),
    ),
    Probe(
        "a node joins with labels it may not have",
        GAMMA,
        "POST",
        f"{CORE}/nodes",
        node("gamma", {"node-role.kubernetes.io/control-plane": "", "a.com/b": "c"}),
    ),
    Probe("a node without a name makes a node", NAMELESS, "POST", f"{CORE}/nodes", node("made")),
    Probe("a node reports a pod of its own", ALPHA, "PATCH", f"{PODS}/web/status", {"status": {"phase": "Running"}}),
    Probe(
        "a node reports the pod of another", ALPHA, "PATCH", f"{PODS}/other/status", {"status": {"phase": "Running"}}
    ),
    Probe(
        "a node reports a pod that waits", ALPHA, "PATCH", f"{PODS}/waiting/status", {"status": {"phase": "Running"}}
    ),
    Probe("a node labels by a status", ALPHA, "PATCH", f"{PODS}/web/status", {"metadata": {"labels": {"a": "b"}}}),
    Probe(
        "a node writes claims into a status",
        ALPHA,
        "PATCH",
        f"{PODS}/web/status",
        {"status": {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "loose-claim"}]}},
    ),
    Probe("a node deletes a pod of its own", ALPHA, "DELETE", f"{PODS}/web"),
    Probe("a node deletes the pod of another", ALPHA, "DELETE", f"{PODS}/other"),
    Probe("a node deletes no pod at all", ALPHA, "DELETE", f"{PODS}/absent"),
    Probe("a node changes a pod of its own", ALPHA, "PATCH", f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}}),
    Probe("a node evicts a pod of its own", ALPHA, "POST", f"{PODS}/web/eviction", eviction("web")),
    Probe("a node evicts the pod of another", ALPHA, "POST", f"{PODS}/other/eviction", eviction("other")),
    Probe(
        "a node binds",
        ALPHA,
        "POST",
        f"{PODS}/waiting/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "waiting"},
            "target": {"kind": "Node", "name": "alpha"},
        },
    ),
    Probe("a node makes a mirror pod", ALPHA, "POST", PODS, mirror(owner())),
    Probe(
        "a node makes a pod that mirrors nothing", ALPHA, "POST", PODS, mirror(owner()) | {"metadata": {"name": "made"}}
    ),
    Probe("a node mirrors for another", ALPHA, "POST", PODS, mirror(owner(), node_name="beta")),
    Probe("a node mirrors without an owner", ALPHA, "POST", PODS, mirror()),
    Probe("a node mirrors with two owners", ALPHA, "POST", PODS, mirror(owner(), owner(uid="2", controller=False))),
    Probe("a node mirrors as another's", ALPHA, "POST", PODS, mirror(owner("beta"))),
    Probe("a node mirrors without control", ALPHA, "POST", PODS, mirror(owner(controller=False))),
    Probe("a node mirrors and blocks", ALPHA, "POST", PODS, mirror(owner(blockOwnerDeletion=True))),
    Probe("a node mirrors with a secret", ALPHA, "POST", PODS, mirror(owner(), volumes=SECRET_VOLUME)),
    Probe("a node mirrors with a config map", ALPHA, "POST", PODS, mirror(owner(), volumes=CONFIG_VOLUME)),
    Probe("a node mirrors with a token", ALPHA, "POST", PODS, mirror(owner(), volumes=TOKEN_VOLUME)),
    Probe("a node mirrors with an account", ALPHA, "POST", PODS, mirror(owner(), serviceAccountName="web-account")),
    Probe("a node asks a token for its pod", ALPHA, "POST", TOKENS, token("web", WEB_UID)),
    Probe("a node asks a token for an audience of its pod", ALPHA, "POST", TOKENS, token("web", WEB_UID, "vault")),
    Probe("a node asks a token for another audience", ALPHA, "POST", TOKENS, token("web", WEB_UID, "bank")),
    Probe("a node asks a token for two audiences", ALPHA, "POST", TOKENS, token("web", WEB_UID, "vault", "bank")),
    Probe("a node asks a token for no pod", ALPHA, "POST", TOKENS, token()),
    Probe("a node asks a token for a secret", ALPHA, "POST", TOKENS, token("web-secret", "1", kind="Secret")),
    Probe("a node asks a token for another's pod", ALPHA, "POST", TOKENS, token("other", OTHER_UID)),
    Probe("a node asks a token without a uid", ALPHA, "POST", TOKENS, token("web")),
    Probe("a node asks a token with a wrong uid", ALPHA, "POST", TOKENS, token("web", "no-such-uid")),
    Probe("a node asks a token for a pod that is not", ALPHA, "POST", TOKENS, token("absent", "1")),
    Probe(
        "a node asks a token of an account it does not run",
        ALPHA,
        "POST",
        TOKENS.replace("web-account", "loose-account"),
        token("web", WEB_UID),
    ),
    Probe(
        "a node makes the CSINode of another",
        ALPHA,
        "POST",
        "/apis/storage.k8s.io/v1/csinodes",
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "beta"}, "spec": {"drivers": []}},
    ),
    Probe(
        "a node makes its CSINode",
        ALPHA,
        "POST",
        "/apis/storage.k8s.io/v1/csinodes",
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "alpha"}, "spec": {"drivers": []}},
    ),
    Probe("a node makes its slice", ALPHA, "POST", "/apis/resource.k8s.io/v1/resourceslices", slice_of("alpha")),
    Probe(
        "a node makes the slice of another", ALPHA, "POST", "/apis/resource.k8s.io/v1/resourceslices", slice_of("beta")
    ),
    Probe("a node reports a claim", ALPHA, "PATCH", f"{CLAIM}/status", {"status": {"capacity": {"storage": "1Gi"}}}),
    Probe(
        "a node labels a claim by its status", ALPHA, "PATCH", f"{CLAIM}/status", {"metadata": {"labels": {"a": "b"}}}
    ),
    Probe("a node changes a claim", ALPHA, "PATCH", CLAIM, {"metadata": {"labels": {"a": "b"}}}),
    Probe("a node reads a secret of its pods", ALPHA, "GET", f"{CORE}/namespaces/shop/secrets/web-secret"),
    Probe("a node reads another secret", ALPHA, "GET", f"{CORE}/namespaces/shop/secrets/loose-secret"),
    Probe("a node lists secrets", ALPHA, "GET", f"{CORE}/namespaces/shop/secrets"),
    Probe("a node lists all pods", ALPHA, "GET", f"{CORE}/pods"),
    Probe("a node lists its pods", ALPHA, "GET", f"{CORE}/pods?fieldSelector=spec.nodeName%3Dalpha"),
    Probe("a node lists the pods of another", ALPHA, "GET", f"{CORE}/pods?fieldSelector=spec.nodeName%3Dbeta"),
    Probe("a node reads another", ALPHA, "GET", f"{CORE}/nodes/beta"),
    Probe("a node lists nodes", ALPHA, "GET", f"{CORE}/nodes"),
    Probe("a node without a name lists nodes", NAMELESS, "GET", f"{CORE}/nodes"),
    # ── granting ──
    Probe(
        "a keeper grants what it has",
        KATE,
        "POST",
        f"{RBACS}/namespaces/shop/roles",
        role(rule("get list", "", "pods")),
    ),
    Probe(
        "a keeper grants nodes",
        KATE,
        "POST",
        f"{RBACS}/namespaces/shop/roles",
        role(rule("get list", "", "nodes pods")),
    ),
    Probe("a keeper grants everything", KATE, "POST", f"{RBACS}/namespaces/shop/roles", role(rule("*", "*", "*"))),
    Probe(
        "a keeper grants by name",
        KATE,
        "POST",
        f"{RBACS}/namespaces/shop/roles",
        role(rule("get", "", "nodes", resourceNames=["a", "b"]), rule("watch", "", "nodes", resourceNames=["a"])),
    ),
    Probe("a keeper binds the view", KATE, "POST", f"{RBACS}/namespaces/shop/rolebindings", binding("view")),
    Probe("a keeper binds the admin it is", KATE, "POST", f"{RBACS}/namespaces/shop/rolebindings", binding("admin")),
    Probe(
        "a keeper binds more than it is",
        KATE,
        "POST",
        f"{RBACS}/namespaces/shop/rolebindings",
        binding("system:node-proxier"),
    ),
    Probe(
        "a keeper binds a cluster's admin",
        KATE,
        "POST",
        f"{RBACS}/namespaces/shop/rolebindings",
        binding("cluster-admin"),
    ),
    Probe(
        "a keeper binds a role that is not", KATE, "POST", f"{RBACS}/namespaces/shop/rolebindings", binding("absent")
    ),
    Probe(
        "a keeper binds a local role that is not",
        KATE,
        "POST",
        f"{RBACS}/namespaces/shop/rolebindings",
        binding("absent", kind="Role"),
    ),
    Probe("a keeper binds for the cluster", KATE, "POST", f"{RBACS}/clusterrolebindings", binding("view", "")),
    Probe("somebody grants pods", ANN, "POST", f"{RBACS}/clusterroles", role(rule("get", "", "pods"), namespace="")),
    Probe(
        "somebody grants a path",
        ANN,
        "POST",
        f"{RBACS}/clusterroles",
        role({"verbs": ["get", "post"], "nonResourceURLs": ["/logs/*", "/healthz"]}, namespace=""),
    ),
    Probe(
        "somebody gathers roles",
        ANN,
        "POST",
        f"{RBACS}/clusterroles",
        role(namespace="", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
    ),
    Probe("somebody binds the view", ANN, "POST", f"{RBACS}/clusterrolebindings", binding("widgets-view", "")),
    Probe("somebody who may bind does", BOB, "POST", f"{RBACS}/clusterrolebindings", binding("view", "")),
    Probe(
        "somebody who may bind binds another", BOB, "POST", f"{RBACS}/clusterrolebindings", binding("widgets-view", "")
    ),
    Probe(
        "somebody who may escalate does", EVE, "POST", f"{RBACS}/clusterroles", role(rule("*", "*", "*"), namespace="")
    ),
    Probe("somebody who may escalate binds", EVE, "POST", f"{RBACS}/clusterrolebindings", binding("widgets-view", "")),
    Probe(
        "somebody labels a role",
        ANN,
        "PATCH",
        f"{RBACS}/clusterroles/widgets-view",
        {"metadata": {"labels": {"a": "b"}}},
    ),
    Probe(
        "somebody gives a role a finalizer",
        ANN,
        "PATCH",
        f"{RBACS}/clusterroles/widgets-view",
        {"metadata": {"finalizers": ["a.com/b"]}},
    ),
    Probe("somebody takes a role's rules", ANN, "PATCH", f"{RBACS}/clusterroles/widgets-view", {"rules": []}),
    Probe(
        "somebody tightens a role that gathers",
        ANN,
        "PATCH",
        f"{RBACS}/clusterroles/view",
        {"aggregationRule": None, "rules": []},
    ),
    Probe(
        "somebody labels a binding",
        ANN,
        "PATCH",
        f"{RBACS}/clusterrolebindings/paul",
        {"metadata": {"labels": {"a": "b"}}},
    ),
)
