"""The kinds of the authorization matrix, each with a small valid object."""

from typing import Any, NamedTuple

Json = dict[str, Any]

NAMESPACE = "matrix"
RBAC = "rbac.authorization.k8s.io"
NODE_LEASES = "kube-node-lease"
NODE = "alpha"
"""The node that pods are bound to."""
GRANTED = {"apiGroups": ["matrix.test"], "resources": ["secrets", "pods"], "verbs": ["get", "delete"]}
"""A rule that few users have all of."""
POD_SPEC: Json = {"containers": [{"name": "main", "image": "registry.test/pause"}]}
TEMPLATE: Json = {"metadata": {"labels": {"app": "a"}}, "spec": POD_SPEC}
SELECTOR: Json = {"matchLabels": {"app": "a"}}


class Subresource(NamedTuple):
    name: str
    methods: tuple[str, ...]
    body: Json | None = None
    """What is posted or put; None: the object itself."""


class MatrixKind(NamedTuple):
    id: str
    api_version: str
    kind: str
    plural: str
    namespaced: bool
    fields: Json
    """Beside metadata."""
    subresources: tuple[Subresource, ...] = ()
    namespace: str = NAMESPACE

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def path(self, *, everywhere: bool = False) -> str:
        """Of all objects in the kind's namespace, or in all."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        inside = f"/namespaces/{self.namespace}" if self.namespaced and not everywhere else ""
        return f"{root}{inside}/{self.plural}"

    def object(self, name: str, **metadata: Any) -> Json:
        where = {"namespace": self.namespace} if self.namespaced else {}
        named = {"name": name} if name else {}
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {**named, **where, **metadata},
            **self.fields,
        }


STATUS = Subresource("status", ("GET", "PUT", "PATCH"))
SCALE = Subresource("scale", ("GET", "PUT", "PATCH"), {"apiVersion": "autoscaling/v1", "kind": "Scale"})
BINDING = Subresource(
    "binding",
    ("POST",),
    {"apiVersion": "v1", "kind": "Binding", "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}},
)
EVICTION = Subresource("eviction", ("POST",), {"apiVersion": "policy/v1", "kind": "Eviction"})
TOKEN = Subresource("token", ("POST",), {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
LOG = Subresource("log", ("GET",))
FINALIZE = Subresource("finalize", ("PUT",))


def _workload(kind: str, plural: str, group: str = "apps/v1", *subresources: Subresource, **spec: Any) -> MatrixKind:
    fields = {"spec": {"selector": SELECTOR, "template": TEMPLATE, **spec}}
    return MatrixKind(plural, group, kind, plural, True, fields, (STATUS, *subresources))


_TO_NOBODY: Json = {
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "grants-nothing"},
    "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "nobody"}],
}
_TO_SOMEBODY: Json = {
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "grants-something"},
    "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "nobody"}],
}
_RBAC = f"{RBAC}/v1"

KINDS = (
    MatrixKind("configmaps", "v1", "ConfigMap", "configmaps", True, {"data": {"a": "b"}}),
    MatrixKind("pods", "v1", "Pod", "pods", True, {"spec": POD_SPEC}, (STATUS, BINDING, EVICTION, LOG)),
    MatrixKind(
        "bound pods", "v1", "Pod", "pods", True, {"spec": {**POD_SPEC, "nodeName": NODE}}, (STATUS, BINDING, EVICTION)
    ),
    MatrixKind("services", "v1", "Service", "services", True, {"spec": {"ports": [{"port": 80}]}}, (STATUS,)),
    MatrixKind("serviceaccounts", "v1", "ServiceAccount", "serviceaccounts", True, {}, (TOKEN,)),
    MatrixKind("secrets", "v1", "Secret", "secrets", True, {"stringData": {"a": "b"}}),
    MatrixKind(
        "events",
        "v1",
        "Event",
        "events",
        True,
        {"involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "a"}, "reason": "Told", "type": "Normal"},
    ),
    MatrixKind("limitranges", "v1", "LimitRange", "limitranges", True, {"spec": {"limits": []}}),
    MatrixKind("leases", "coordination.k8s.io/v1", "Lease", "leases", True, {"spec": {"holderIdentity": "a"}}),
    MatrixKind(
        "node leases",
        "coordination.k8s.io/v1",
        "Lease",
        "leases",
        True,
        {"spec": {"holderIdentity": "a"}},
        namespace=NODE_LEASES,
    ),
    MatrixKind("csinodes", "storage.k8s.io/v1", "CSINode", "csinodes", False, {"spec": {"drivers": []}}),
    _workload("Deployment", "deployments", "apps/v1", SCALE, replicas=0),
    MatrixKind(
        "jobs",
        "batch/v1",
        "Job",
        "jobs",
        True,
        {"spec": {"suspend": True, "template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}},
        (STATUS,),
    ),
    MatrixKind(
        "budgets",
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        True,
        {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "none"}}}},
        (STATUS,),
    ),
    MatrixKind("empty roles", _RBAC, "Role", "roles", True, {"rules": []}),
    MatrixKind("granting roles", _RBAC, "Role", "roles", True, {"rules": [GRANTED]}),
    MatrixKind("empty rolebindings", _RBAC, "RoleBinding", "rolebindings", True, _TO_NOBODY),
    MatrixKind("granting rolebindings", _RBAC, "RoleBinding", "rolebindings", True, _TO_SOMEBODY),
    MatrixKind("nodes", "v1", "Node", "nodes", False, {}, (STATUS,)),
    MatrixKind("namespaces", "v1", "Namespace", "namespaces", False, {}, (STATUS, FINALIZE)),
    MatrixKind(
        "persistentvolumes",
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        False,
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/tmp/matrix"},
            }
        },
        (STATUS,),
    ),
    MatrixKind("priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False, {"value": 1000}),
    MatrixKind(
        "storageclasses", "storage.k8s.io/v1", "StorageClass", "storageclasses", False, {"provisioner": "matrix.test/a"}
    ),
    MatrixKind("runtimeclasses", "node.k8s.io/v1", "RuntimeClass", "runtimeclasses", False, {"handler": "a"}),
    MatrixKind("empty clusterroles", _RBAC, "ClusterRole", "clusterroles", False, {"rules": []}),
    MatrixKind("granting clusterroles", _RBAC, "ClusterRole", "clusterroles", False, {"rules": [GRANTED]}),
    MatrixKind("granting clusterrolebindings", _RBAC, "ClusterRoleBinding", "clusterrolebindings", False, _TO_SOMEBODY),
)
