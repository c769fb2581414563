"""A small cluster, and who asks what in it: told to a real kube-apiserver (recording.py) and to us, to compare."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from situate.server.resources import RESOURCES

Json = dict[str, Any]

SHOP = "shop"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
ODD_VERBS = ("impersonate", "bind", "escalate", "use", "approve", "GET", "*", "")


class Asker(NamedTuple):
    id: str
    name: str
    groups: tuple[str, ...]


AUTHENTICATED = "system:authenticated"
ASKERS = (
    Asker("anonymous", "system:anonymous", ("system:unauthenticated",)),
    Asker("user", "jane", (AUTHENTICATED,)),
    Asker("viewer", "vera", (AUTHENTICATED,)),
    Asker("editor", "ed", (AUTHENTICATED, "editors")),
    Asker("keeper", "kate", (AUTHENTICATED,)),
    Asker("particular", "paul", (AUTHENTICATED,)),
    Asker("master", "root", ("system:masters", AUTHENTICATED)),
    Asker("scheduler", "system:kube-scheduler", (AUTHENTICATED,)),
    Asker("controllers", "system:kube-controller-manager", (AUTHENTICATED,)),
    Asker("node-self", "system:node:alpha", ("system:nodes", AUTHENTICATED)),
    Asker("node-other", "system:node:beta", ("system:nodes", AUTHENTICATED)),
    Asker("node-nameless", "kubelet", ("system:nodes", AUTHENTICATED)),
    Asker("node-groupless", "system:node:alpha", (AUTHENTICATED,)),
    Asker(
        "account",
        "system:serviceaccount:shop:web-account",
        ("system:serviceaccounts", "system:serviceaccounts:shop", AUTHENTICATED),
    ),
)


class Question(NamedTuple):
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    fields: str = ""
    odd: bool = False

    @property
    def verbs(self) -> tuple[str, ...]:
        return ODD_VERBS if self.odd else VERBS


PATHS = (
    "/ /api /api/ /api/v1 /apis /apis/apps/v1 /healthz /healthz/etcd /livez /livez/ping /readyz /version /version/ "
    "/metrics /metrics/slis /openapi /openapi/v3 /openapi/v3/api/v1 /logs /debug/pprof /custom /custom/a /customs "
    "/.well-known/openid-configuration /openid/v1/jwks /openid/v1/jwks/"
).split()

# group/resource/subresource, namespace, name, field selector; `-` for none
_SINGLE = """
/pods shop web -
/pods shop other -
/pods shop waiting -
/pods shop absent -
/pods shop - spec.nodeName=alpha
/pods shop - spec.nodeName=beta
/pods shop - spec.nodeName!=alpha
/pods - - spec.nodeName=alpha
/pods - - spec.nodeName=alpha,status.phase!=Failed
/pods - - metadata.name=web
/pods/status shop web -
/pods/status shop other -
/pods/eviction shop web -
/pods/eviction shop other -
/pods/binding shop web -
/pods/log shop web -
/pods/exec shop web -
/pods/finalizers shop web -
/nodes - alpha -
/nodes - beta -
/nodes - - metadata.name=alpha
/nodes/status - alpha -
/nodes/status - beta -
/nodes/proxy - alpha -
/secrets shop web-secret -
/secrets shop env-secret -
/secrets shop pull-secret -
/secrets shop init-secret -
/secrets shop projected-secret -
/secrets shop other-secret -
/secrets shop waiting-secret -
/secrets shop loose-secret -
/secrets kube-system web-secret -
/configmaps shop web-config -
/configmaps shop env-config -
/configmaps shop other-config -
/configmaps shop loose-config -
/configmaps kube-system extension-apiserver-authentication -
/configmaps kube-system loose-config -
/persistentvolumeclaims shop data -
/persistentvolumeclaims/status shop data -
/persistentvolumeclaims shop web-scratch -
/persistentvolumeclaims shop other-data -
/persistentvolumeclaims/status shop other-data -
/persistentvolumeclaims shop loose-data -
/persistentvolumes - vol-1 -
/persistentvolumes - vol-2 -
/serviceaccounts shop web-account -
/serviceaccounts shop other-account -
/serviceaccounts shop loose-account -
/serviceaccounts/token shop web-account -
/serviceaccounts/token shop other-account -
/serviceaccounts/token shop loose-account -
coordination.k8s.io/leases kube-node-lease alpha -
coordination.k8s.io/leases kube-node-lease beta -
coordination.k8s.io/leases kube-node-lease - -
coordination.k8s.io/leases kube-system alpha -
coordination.k8s.io/leases kube-system kube-scheduler -
coordination.k8s.io/leases kube-system other -
coordination.k8s.io/leases shop kube-scheduler -
storage.k8s.io/csinodes - alpha -
storage.k8s.io/csinodes - beta -
storage.k8s.io/volumeattachments - attached -
resource.k8s.io/resourceclaims shop web-claim -
resource.k8s.io/resourceclaims shop loose-claim -
resource.k8s.io/resourceclaims/status shop web-claim -
resource.k8s.io/resourceclaims/binding shop web-claim -
resource.k8s.io/resourceslices - alpha-slice -
resource.k8s.io/resourceslices - beta-slice -
resource.k8s.io/resourceslices - - spec.nodeName=alpha
resource.k8s.io/resourceslices - - spec.nodeName=beta
/services shop web -
/services/status shop web -
/namespaces - shop -
/namespaces shop shop -
/events kube-system - -
scheduling.k8s.io/podgroups/status shop gang -
scheduling.k8s.io/workloads shop gang -
networking.k8s.io/networkpolicies shop - -
networking.k8s.io/ingresses shop - -
autoscaling/horizontalpodautoscalers shop - -
extensions/replicasets shop - -
certificates.k8s.io/certificatesigningrequests - - -
policy/poddisruptionbudgets/status shop web -
apps/deployments shop front -
apps/deployments shop back -
apps/deployments/scale shop front -
apps/deployments/status shop front -
apps/deployments other front -
example.com/widgets shop one -
example.com/widgets/status shop one -
example.com/gadgets/status shop one -
example.com/gadgets - - -
"""
_ODD = """
/serviceaccounts shop web-account
/users - jane
/users - root
/groups - editors
/groups - system:masters
authentication.k8s.io/userextras/scopes - a
authentication.k8s.io/uids - 1
rbac.authorization.k8s.io/clusterroles - view
rbac.authorization.k8s.io/clusterroles - edit
rbac.authorization.k8s.io/clusterroles - cluster-admin
rbac.authorization.k8s.io/clusterroles shop view
rbac.authorization.k8s.io/roles shop particular
certificates.k8s.io/signers - kubernetes.io/kubelet-serving
/pods shop web
"""


def _word(text: str) -> str:
    return "" if text == "-" else text


def _split(text: str) -> tuple[str, str, str]:
    group, resource, *rest = text.split("/")
    return group, resource, "/".join(rest)


def questions() -> Iterator[Question]:
    seen = set()
    for one in RESOURCES:
        if one.group.startswith(("situate", "scheduling.x-k8s", "metrics")) or (one.group, one.plural) in seen:
            continue
        seen.add((one.group, one.plural))
        yield Question(one.group, one.plural)
        if one.namespaced:
            yield Question(one.group, one.plural, "", SHOP)
        for sub in one.subresources:
            yield Question(one.group, one.plural, sub, SHOP if one.namespaced else "", "some")
    for line in _SINGLE.strip().splitlines():
        where, namespace, name, fields = line.split()
        yield Question(*_split(where), _word(namespace), _word(name), "", _word(fields))
    for line in _ODD.strip().splitlines():
        where, namespace, name = line.split()
        yield Question(*_split(where), _word(namespace), _word(name), odd=True)
    for path in PATHS:
        yield Question(path=path)


def _made(kind: str, name: str, namespace: str = "", api: str = "v1", **fields: Any) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    extra = fields.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata | extra, **fields}


def _pod(name: str, node: str, **spec: Any) -> Json:
    bound = {"nodeName": node} if node else {}
    return _made("Pod", name, SHOP, spec={"containers": [{"name": "main", "image": "i"}], **bound, **spec})


def _claim(name: str, volume: str = "") -> Json:
    bound = {"volumeName": volume} if volume else {}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    return _made("PersistentVolumeClaim", name, SHOP, spec=wanted | bound)


def _volume(name: str, claim: str) -> Json:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
        "claimRef": {"namespace": SHOP, "name": claim},
    }
    return _made("PersistentVolume", name, spec=spec)


RBAC = "rbac.authorization.k8s.io/v1"
ROLES = "clusterroles clusterrolebindings roles rolebindings"


def _binding(
    name: str, role: str, *subjects: tuple[str, str], namespace: str = "", role_kind: str = "ClusterRole"
) -> Json:
    who: list[Json] = []
    for kind, subject in subjects:
        if kind == "ServiceAccount":
            who.append({"kind": kind, "name": subject, "namespace": SHOP})
        else:
            who.append({"kind": kind, "name": subject, "apiGroup": "rbac.authorization.k8s.io"})
    return _made(
        "RoleBinding" if namespace else "ClusterRoleBinding",
        name,
        namespace,
        RBAC,
        subjects=who,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
    )


def _rule(verbs: str, group: str, resources: str, names: str = "") -> Json:
    named = {"resourceNames": names.split()} if names else {}
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()} | named


def _web() -> Json:
    volumes = [
        {"name": "a", "secret": {"secretName": "web-secret"}},
        {"name": "b", "configMap": {"name": "web-config"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
        {
            "name": "scratch",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            },
        },
        {"name": "d", "projected": {"sources": [{"secret": {"name": "projected-secret"}}]}},
        {"name": "e", "projected": {"sources": [{"serviceAccountToken": {"path": "p"}}]}},
        {"name": "f", "projected": {"sources": [{"serviceAccountToken": {"path": "p", "audience": "vault"}}]}},
    ]
    main = {
        "name": "main",
        "image": "i",
        "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "env-secret", "key": "k"}}}],
        "envFrom": [{"configMapRef": {"name": "env-config"}}],
    }
    first = {"name": "first", "image": "i", "envFrom": [{"secretRef": {"name": "init-secret"}}]}
    return _pod(
        "web",
        "alpha",
        serviceAccountName="web-account",
        imagePullSecrets=[{"name": "pull-secret"}],
        volumes=volumes,
        containers=[main],
        initContainers=[first],
        resourceClaims=[{"name": "r", "resourceClaimName": "web-claim"}],
    )


def _other(name: str, node: str) -> Json:
    volumes = [{"name": "a", "secret": {"secretName": f"{name}-secret"}}]
    if name == "other":
        volumes.append({"name": "b", "configMap": {"name": "other-config"}})
        volumes.append({"name": "c", "persistentVolumeClaim": {"claimName": "other-data"}})
    return _pod(name, node, serviceAccountName=f"{name}-account", volumes=volumes)


def _slice(node: str) -> Json:
    spec = {
        "driver": "d.example.com",
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
    }
    return _made("ResourceSlice", f"{node}-slice", "", "resource.k8s.io/v1", spec=spec)


def objects() -> list[Json]:
    """What is in the cluster beside what every cluster begins with."""
    particular = [
        _rule("get update", "apps", "deployments", "front"),
        _rule("*", "example.com", "*/status"),
        _rule("get", "example.com", "widgets"),
        _rule("impersonate", "", "users", "jane"),
        _rule("impersonate", "authentication.k8s.io", "userextras/scopes"),
        _rule("bind", "rbac.authorization.k8s.io", "clusterroles", "view"),
        {"verbs": ["get"], "nonResourceURLs": ["/custom/*", "/logs"]},
    ]
    local = [_rule("list delete", "", "secrets"), _rule("create", "", "pods/*")]
    aggregated = _made(
        "ClusterRole", "widgets-view", "", RBAC, rules=[_rule("get list", "example.com", "gadgets/status")]
    )
    aggregated["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    device = {"devices": {"requests": [{"name": "q", "exactly": {"deviceClassName": "c"}}]}}
    return [
        *(_made("Namespace", name) for name in (SHOP, "other")),
        *(_made("Node", name, metadata={"labels": {"kubernetes.io/hostname": name}}) for name in ("alpha", "beta")),
        *(_made("ServiceAccount", f"{name}-account", SHOP) for name in ("web", "other", "waiting", "loose")),
        *(
            _made("Secret", f"{name}-secret", SHOP, data={"k": "eA=="})
            for name in ("web", "env", "pull", "init", "projected", "other", "waiting", "loose")
        ),
        *(_made("ConfigMap", f"{name}-config", SHOP) for name in ("web", "env", "other", "loose")),
        _volume("vol-1", "data"),
        _volume("vol-2", "other-data"),
        _volume("vol-3", "web-scratch"),
        _claim("data", "vol-1"),
        _claim("web-scratch", "vol-3"),
        _claim("other-data", "vol-2"),
        _claim("loose-data"),
        _made("ResourceClaim", "web-claim", SHOP, "resource.k8s.io/v1", spec=device),
        _made("ResourceClaim", "loose-claim", SHOP, "resource.k8s.io/v1", spec=device),
        _slice("alpha"),
        _slice("beta"),
        _made(
            "VolumeAttachment",
            "attached",
            "",
            "storage.k8s.io/v1",
            spec={"attacher": "a.example.com", "nodeName": "alpha", "source": {"persistentVolumeName": "vol-1"}},
        ),
        _web(),
        _other("other", "beta"),
        _other("waiting", ""),
        aggregated,
        _made("ClusterRole", "particular", "", RBAC, rules=particular),
        _made("Role", "local", SHOP, RBAC, rules=local),
        _binding("vera", "view", ("User", "vera"), namespace=SHOP),
        _binding("ed", "edit", ("Group", "editors"), namespace=SHOP),
        _binding("kate", "admin", ("User", "kate"), namespace=SHOP),
        _binding("paul", "particular", ("User", "paul")),
        _binding("account", "local", ("ServiceAccount", "web-account"), namespace=SHOP, role_kind="Role"),
        _made(
            "ClusterRole", "granter", "", RBAC, rules=[_rule("get create update patch", RBAC.partition("/")[0], ROLES)]
        ),
        _made("ClusterRole", "binder", "", RBAC, rules=[_rule("bind", RBAC.partition("/")[0], "clusterroles", "view")]),
        _made("ClusterRole", "escalator", "", RBAC, rules=[_rule("escalate", RBAC.partition("/")[0], "clusterroles")]),
        _binding("granters", "granter", ("User", "ann"), ("User", "bob"), ("User", "eve")),
        _binding("binders", "binder", ("User", "bob")),
        _binding("escalators", "escalator", ("User", "eve")),
        _binding("lost", "absent", ("User", "paul"), namespace=SHOP, role_kind="Role"),
    ]
