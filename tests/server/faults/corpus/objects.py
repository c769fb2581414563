"""Good objects to spoil, and those that are there while bad requests come in."""

from typing import Any

Object = dict[str, Any]
NAMESPACE = "corpus"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
BATCH = f"/apis/batch/v1/namespaces/{NAMESPACE}"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
PODS = f"{CORE}/pods"


def made(api: str, kind: str, name: str, **fields: Any) -> Object:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


CONTAINER: Object = {"name": "c", "image": "registry.example/app:1"}
LABELS = {"app": "web"}
TEMPLATE: Object = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
SELECTOR = {"matchLabels": LABELS}


def pod(name: str = "new", **spec: Any) -> Object:
    return made("v1", "Pod", name, spec={"containers": [CONTAINER], **spec})


TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
RICH_POD = made(
    "v1",
    "Pod",
    "rich",
    spec={
        "nodeSelector": {"disk": "ssd"},
        "priorityClassName": "",
        "schedulerName": "other",
        "terminationGracePeriodSeconds": 5,
        "restartPolicy": "Never",
        "hostNetwork": False,
        "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}],
        "topologySpreadConstraints": [SPREAD],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": TERM}],
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": SELECTOR, "topologyKey": "zone"}]
            },
        },
        "containers": [
            {
                **CONTAINER,
                "command": ["run"],
                "env": [{"name": "A", "value": "b"}],
                "ports": [{"name": "web", "containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}},
                "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
                "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}],
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    },
)
RICH_POD["metadata"] |= {
    "labels": {"app": "web"},
    "annotations": {"note": "x"},
    "finalizers": ["example.com/f"],
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}],
}
NODE = made(
    "v1",
    "Node",
    "new",
    spec={"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "unschedulable": False, "podCIDR": ""},
    status={"allocatable": {"cpu": "4", "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]},
)
SERVICE = made(
    "v1",
    "Service",
    "new",
    spec={"selector": LABELS, "ports": [{"name": "a", "port": 80, "targetPort": 80}], "type": "ClusterIP"},
)
STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}
DEPLOYMENT = made(
    "apps/v1",
    "Deployment",
    "new",
    spec={"replicas": 1, "selector": SELECTOR, "template": TEMPLATE, "strategy": STRATEGY, "paused": False},
)
REPLICA_SET = made("apps/v1", "ReplicaSet", "new", spec={"replicas": 1, "selector": SELECTOR, "template": TEMPLATE})
STATEFUL_SET = made(
    "apps/v1",
    "StatefulSet",
    "new",
    spec={"serviceName": "s", "replicas": 1, "selector": SELECTOR, "template": TEMPLATE},
)
DAEMON_SET = made("apps/v1", "DaemonSet", "new", spec={"selector": SELECTOR, "template": TEMPLATE})
JOB_TEMPLATE: Object = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
JOB_SPEC: Object = {"parallelism": 1, "completions": 2, "backoffLimit": 3, "template": JOB_TEMPLATE}
JOB = made("batch/v1", "Job", "new", spec=JOB_SPEC)
CRON_JOB = made(
    "batch/v1", "CronJob", "new", spec={"schedule": "* * * * *", "suspend": True, "jobTemplate": {"spec": JOB_SPEC}}
)
CONFIG_MAP = made("v1", "ConfigMap", "new", data={"a": "b"}, immutable=False)
SECRET = made("v1", "Secret", "new", data={"a": "Yg=="}, stringData={"c": "d"}, type="Opaque")
BUDGET = made("policy/v1", "PodDisruptionBudget", "new", spec={"minAvailable": 1, "selector": SELECTOR})
PRIORITY = made("scheduling.k8s.io/v1", "PriorityClass", "new", value=5, globalDefault=False, preemptionPolicy="Never")
CLAIM = made(
    "v1",
    "PersistentVolumeClaim",
    "new",
    spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
)
VOLUME = made(
    "v1",
    "PersistentVolume",
    "new",
    spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
)
STORAGE_CLASS = made("storage.k8s.io/v1", "StorageClass", "new", provisioner="example.com/p", parameters={"a": "b"})
LEASE = made("coordination.k8s.io/v1", "Lease", "new", spec={"holderIdentity": "me", "leaseDurationSeconds": 5})
ROLE = made(
    "rbac.authorization.k8s.io/v1",
    "Role",
    "new",
    rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
)
BINDING = made(
    "rbac.authorization.k8s.io/v1",
    "RoleBinding",
    "new",
    subjects=[{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}],
    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
)
SPACE = made("v1", "Namespace", "new", spec={"finalizers": ["kubernetes"]})
ACCOUNT = made("v1", "ServiceAccount", "new", secrets=[{"name": "s"}], automountServiceAccountToken=True)
QUOTA = made("v1", "ResourceQuota", "new", spec={"hard": {"pods": "5"}, "scopes": ["Terminating"]})
LIMITS = made("v1", "LimitRange", "new", spec={"limits": [{"type": "Container", "max": {"cpu": "1"}}]})
EVENT = made(
    "v1",
    "Event",
    "new",
    involvedObject={"kind": "Pod", "name": "p", "namespace": NAMESPACE},
    reason="r",
    message="m",
    type="Normal",
    count=1,
)
SLICE = made(
    "discovery.k8s.io/v1",
    "EndpointSlice",
    "new",
    addressType="IPv4",
    endpoints=[{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}],
    ports=[{"name": "a", "port": 80, "protocol": "TCP"}],
)

SAMPLES: dict[str, tuple[str, Object]] = {
    "pod": (PODS, RICH_POD),
    "node": ("/api/v1/nodes", NODE),
    "service": (f"{CORE}/services", SERVICE),
    "deployment": (f"{APPS}/deployments", DEPLOYMENT),
    "replicaset": (f"{APPS}/replicasets", REPLICA_SET),
    "statefulset": (f"{APPS}/statefulsets", STATEFUL_SET),
    "daemonset": (f"{APPS}/daemonsets", DAEMON_SET),
    "job": (f"{BATCH}/jobs", JOB),
    "cronjob": (f"{BATCH}/cronjobs", CRON_JOB),
    "configmap": (f"{CORE}/configmaps", CONFIG_MAP),
    "secret": (f"{CORE}/secrets", SECRET),
    "budget": (f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", BUDGET),
    "priorityclass": ("/apis/scheduling.k8s.io/v1/priorityclasses", PRIORITY),
    "claim": (f"{CORE}/persistentvolumeclaims", CLAIM),
    "volume": ("/api/v1/persistentvolumes", VOLUME),
    "storageclass": ("/apis/storage.k8s.io/v1/storageclasses", STORAGE_CLASS),
    "lease": (f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases", LEASE),
    "role": (f"{RBAC}/roles", ROLE),
    "rolebinding": (f"{RBAC}/rolebindings", BINDING),
    "namespace": ("/api/v1/namespaces", SPACE),
    "serviceaccount": (f"{CORE}/serviceaccounts", ACCOUNT),
    "quota": (f"{CORE}/resourcequotas", QUOTA),
    "limitrange": (f"{CORE}/limitranges", LIMITS),
    "event": (f"{CORE}/events", EVENT),
    "endpointslice": (f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices", SLICE),
}
"""By a name for people: where it is created, and the object."""


def named(obj: Object, name: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "name": name}}


PRESENT: list[tuple[str, Object]] = [
    ("/api/v1/namespaces", made("v1", "Namespace", NAMESPACE)),
    ("/api/v1/nodes", named(NODE, "n1") | {"spec": {}}),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", made("scheduling.k8s.io/v1", "PriorityClass", "high", value=5)),
    (PODS, pod("p", schedulerName="nobody")),
    (PODS, pod("bound", nodeName="n1")),
    (f"{APPS}/deployments", named(DEPLOYMENT, "web")),
    (f"{APPS}/statefulsets", named(STATEFUL_SET, "db")),
    (f"{CORE}/services", named(SERVICE, "svc")),
    (f"{BATCH}/jobs", named(JOB, "job")),
    (f"{CORE}/configmaps", named(CONFIG_MAP, "cm")),
    (f"{CORE}/configmaps", named(CONFIG_MAP, "fixed") | {"immutable": True}),
    (f"{CORE}/secrets", named(SECRET, "secret")),
    (f"{CORE}/persistentvolumeclaims", named(CLAIM, "claim")),
    (f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", named(BUDGET, "budget")),
    (f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases", named(LEASE, "lease")),
]
"""What is there before, in the order in which it is made."""
