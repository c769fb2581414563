"""The kinds whose patches are compared with a real server's: objects to start with, and what may be patched."""

from dataclasses import dataclass
from typing import Any

from kubernetes import patching_cases as cases
from kubernetes.policy_cases import API as POLICIES_API
from kubernetes.policy_cases import bound, rule, validating

Json = dict[str, Any]

# What admission and the registry put into a new object's spec.
FILLED_IN = {
    "Pod": ("priority", "preemptionPolicy", "tolerations"),
    "Service": ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind, an object of it to start with, and what patches of it may touch."""

    version: str
    name: str
    resource: str
    start: Json
    fragments: tuple[cases.Fragment, ...]
    subresource: str = ""
    cluster_wide: bool = False

    def path(self, namespace: str, name: str = "") -> str:
        root = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"
        inside = "" if self.cluster_wide else f"/namespaces/{namespace}"
        return f"{root}{inside}/{self.resource}" + (f"/{name}" if name else "")


def kind_id(kind: Kind) -> str:
    return kind.resource + ("/" + kind.subresource if kind.subresource else "")


POD = {"containers": [{"name": "a", "image": "one", "env": [{"name": "a", "value": "1"}]}]}
SCRATCH = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
DEPLOYMENT: Json = {
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": POD | SCRATCH},
    }
}
KINDS = (
    Kind(
        "apps/v1",
        "Deployment",
        "deployments",
        DEPLOYMENT,
        (*cases.OF_ANY, cases.template, cases.replicas, cases.strategy),
    ),
    Kind("v1", "ConfigMap", "configmaps", {"data": {"a": "1"}}, (*cases.OF_ANY, cases.data)),
    Kind(
        "v1",
        "Service",
        "services",
        {"spec": {"ports": [{"port": 80, "name": "p80"}], "selector": {"a": "1"}}},
        (cases.labels, cases.owners, cases.service),
    ),
    Kind("v1", "Pod", "pods", {"spec": POD}, (*cases.OF_ANY, cases.image, cases.deadline, cases.more_tolerations)),
    Kind("v1", "Pod", "pods", {"spec": POD}, (cases.conditions, cases.phase, cases.labels), "status"),
    Kind("v1", "Node", "nodes", {}, (*cases.OF_ANY, cases.taints, cases.cordon), cluster_wide=True),
    Kind(
        "v1",
        "Node",
        "nodes",
        {},
        (cases.conditions, cases.addresses, cases.capacity, cases.labels),
        "status",
        cluster_wide=True,
    ),
)

POD_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"app": "x"}}, "template": POD_TEMPLATE}
ONCE = {"template": {"spec": POD | {"restartPolicy": "Never"}}}
BY_HAND = SELECTED | {"manualSelector": True, "template": POD_TEMPLATE | {"spec": POD | {"restartPolicy": "Never"}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
EVENT = {
    "involvedObject": {"kind": "Pod", "name": "a", "namespace": "NAMESPACE"},
    "reason": "R",
    "message": "m",
    "source": {"component": "c"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
}
NEW_EVENT = {
    "regarding": {"kind": "Pod", "name": "a", "namespace": "NAMESPACE"},
    "reason": "R",
    "action": "A",
    "type": "Normal",
    "reportingController": "example.com/c",
    "reportingInstance": "i",
    "eventTime": "2026-01-01T00:00:00.000000Z",
}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
DEVICES = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "d"}}]}}
SLICE = {
    "driver": "example.com",
    "nodeName": "n",
    "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
    "devices": [{"name": "a"}],
}
POLICY = validating(
    "made",
    "true",
    rules=[rule("gadgets", "example.com", "CREATE")],
    paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    variables=[{"name": "a", "expression": "1"}],
)
PARAMS = {"name": "a", "namespace": "b", "parameterNotFoundAction": "Deny"}
BINDING = bound("made", paramRef=PARAMS, matchResources={"objectSelector": {"matchLabels": {"a": "b"}}})
CREATED: tuple[tuple[str, Json], ...] = (
    ("apps/v1 StatefulSet", {"spec": {**SELECTED, "serviceName": "s"}}),
    ("apps/v1 DaemonSet", {"spec": SELECTED}),
    ("apps/v1 ReplicaSet", {"spec": SELECTED}),
    ("batch/v1 Job", {"spec": BY_HAND}),
    ("batch/v1 CronJob", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": ONCE}}}),
    ("v1 Secret", {"stringData": {"a": "1"}}),
    ("v1 ServiceAccount", {"secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "s"}]}),
    ("v1 PersistentVolumeClaim", {"spec": CLAIM}),
    ("v1 PersistentVolume", {"spec": VOLUME}),
    ("v1 ReplicationController", {"spec": {"selector": {"app": "x"}, "template": POD_TEMPLATE}}),
    ("v1 Event", EVENT),
    ("v1 LimitRange", {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}}),
    ("events.k8s.io/v1 Event", NEW_EVENT),
    ("coordination.k8s.io/v1 Lease", {"spec": {"holderIdentity": "me"}}),
    (f"{POLICIES_API} ValidatingAdmissionPolicy", {"spec": POLICY["spec"]}),
    (f"{POLICIES_API} ValidatingAdmissionPolicyBinding", {"spec": BINDING["spec"]}),
    ("policy/v1 PodDisruptionBudget", {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "1"}}}}),
    ("scheduling.k8s.io/v1 PriorityClass", {"value": 0}),
    ("scheduling.k8s.io/v1alpha2 PodGroup", {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}),
    ("storage.k8s.io/v1 StorageClass", {"provisioner": "example.com"}),
    ("storage.k8s.io/v1 CSINode", {"spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["k"]}]}}),
    ("storage.k8s.io/v1 CSIDriver", {"spec": {"volumeLifecycleModes": ["Persistent"]}}),
    ("rbac.authorization.k8s.io/v1 Role", {"rules": RULES}),
    ("resource.k8s.io/v1 ResourceClaim", {"spec": DEVICES}),
    ("resource.k8s.io/v1 ResourceClaimTemplate", {"spec": {"spec": DEVICES}}),
    ("resource.k8s.io/v1 DeviceClass", {"spec": {"selectors": [{"cel": {"expression": "true"}}]}}),
    ("resource.k8s.io/v1 ResourceSlice", {"spec": SLICE}),
)
