"""A small valid object of every kind that clients may write: the fuzz starts from these."""

import copy
from typing import Any

from server.fuzz.values import fields_of, minimal
from situate.server.resources import BY_KIND, Resource
from situate.wire.schema.table import message_of

Json = dict[str, Any]

CONTAINER: Json = {"name": "c", "image": "registry.test/app:1", "command": ["/bin/sleep", "60"]}
POD: Json = {"containers": [CONTAINER], "terminationGracePeriodSeconds": 1}
LABELS = {"app": "a"}
TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": POD}
ENDING: Json = {"metadata": {"labels": LABELS}, "spec": {**POD, "restartPolicy": "Never"}}
SELECTOR: Json = {"matchLabels": LABELS}
CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
REVIEWED: Json = {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "pods"}}
RULES: list[Json] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
SUBJECTS: list[Json] = [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]
ROLE: Json = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
DEVICES: Json = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}}

_FIELDS: dict[tuple[str, str], Json] = {
    ("v1", "Binding"): {"target": {"apiVersion": "v1", "kind": "Node", "name": "node-01"}},
    ("v1", "ConfigMap"): {"data": {"k": "v"}},
    ("v1", "Endpoints"): {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]},
    ("v1", "Event"): {"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "Because", "type": "Normal"},
    ("v1", "LimitRange"): {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}},
    ("v1", "Namespace"): {},
    ("v1", "Node"): {"spec": {"unschedulable": True}},
    ("v1", "PersistentVolume"): {
        "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    },
    ("v1", "PersistentVolumeClaim"): {"spec": CLAIM},
    ("v1", "Pod"): {"spec": POD},
    ("v1", "PodTemplate"): {"template": TEMPLATE},
    ("v1", "ReplicationController"): {"spec": {"replicas": 1, "selector": LABELS, "template": TEMPLATE}},
    ("v1", "ResourceQuota"): {"spec": {"hard": {"pods": "1000"}}},
    ("v1", "Secret"): {"type": "Opaque", "data": {"k": "aGVsbG8="}},
    ("v1", "Service"): {"spec": {"selector": LABELS, "ports": [{"port": 80}]}},
    ("v1", "ServiceAccount"): {},
    ("apps/v1", "ControllerRevision"): {"data": {"spec": {}}, "revision": 1},
    ("apps/v1", "DaemonSet"): {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    ("apps/v1", "Deployment"): {"spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}},
    ("apps/v1", "ReplicaSet"): {"spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}},
    ("apps/v1", "StatefulSet"): {
        "spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"}
    },
    ("batch/v1", "CronJob"): {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ENDING}}}},
    ("batch/v1", "Job"): {"spec": {"template": ENDING}},
    ("policy/v1", "PodDisruptionBudget"): {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    ("scheduling.k8s.io/v1", "PriorityClass"): {"value": 5},
    ("scheduling.k8s.io/v1beta1", "PodGroup"): {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
    ("scheduling.k8s.io/v1alpha2", "PodGroup"): {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"): {"spec": {"minMember": 2}},
    ("coordination.k8s.io/v1", "Lease"): {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
    ("events.k8s.io/v1", "Event"): {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "c.test/c",
        "reportingInstance": "i",
        "action": "Doing",
        "reason": "Because",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p"},
    },
    ("apiregistration.k8s.io/v1", "APIService"): {
        "spec": {"group": "g.test", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
    },
    ("storage.k8s.io/v1", "CSIDriver"): {"spec": {"attachRequired": False}},
    ("storage.k8s.io/v1", "CSINode"): {"spec": {"drivers": [{"name": "d.test", "nodeID": "n"}]}},
    ("storage.k8s.io/v1", "CSIStorageCapacity"): {"storageClassName": "s", "capacity": "1Gi"},
    ("storage.k8s.io/v1", "StorageClass"): {"provisioner": "p.test/p"},
    ("storage.k8s.io/v1", "VolumeAttachment"): {
        "spec": {"attacher": "a.test", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    ("storage.k8s.io/v1", "VolumeAttributesClass"): {"driverName": "d.test/d", "parameters": {"a": "b"}},
    ("resource.k8s.io/v1", "DeviceClass"): {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
    ("resource.k8s.io/v1", "ResourceClaim"): {"spec": DEVICES},
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): {"spec": {"spec": DEVICES}},
    ("resource.k8s.io/v1", "ResourceSlice"): {
        "spec": {
            "driver": "d.test",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "one"}],
        }
    },
    ("discovery.k8s.io/v1", "EndpointSlice"): {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]},
    ("node.k8s.io/v1", "RuntimeClass"): {"handler": "h"},
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): {"rules": RULES},
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): {"roleRef": ROLE, "subjects": SUBJECTS},
    ("rbac.authorization.k8s.io/v1", "Role"): {"rules": RULES},
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): {"roleRef": ROLE, "subjects": SUBJECTS},
    ("authentication.k8s.io/v1", "SelfSubjectReview"): {},
    ("authentication.k8s.io/v1", "TokenReview"): {"spec": {"token": "t"}},
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview"): {"spec": REVIEWED},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {"spec": {"resourceAttributes": {"verb": "get"}}},
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): {"spec": {"namespace": "default"}},
    ("authorization.k8s.io/v1", "SubjectAccessReview"): {"spec": REVIEWED},
}


def kinds() -> list[Resource]:
    """The kinds that clients may create, in a fixed order."""
    return [one for key, one in sorted(BY_KIND.items()) if "create" in one.verbs]


def _smallest(resource: Resource) -> Json:
    """An object of a kind that has no entry above: its required fields. It may not be valid."""
    whole = message_of(resource.api_version, resource.kind)
    fields = () if whole is None else fields_of(whole)
    return {field.name: minimal(field.type) for field in fields if field.name not in ("metadata", "status")}


def base(resource: Resource, name: str, namespace: str) -> Json:
    """A valid object of this kind."""
    key = (resource.api_version, resource.kind)
    metadata: Json = {"name": name, "labels": {"app": "a"}}
    if resource.namespaced:
        metadata["namespace"] = namespace
    found: Json = copy.deepcopy(_FIELDS.get(key) or _smallest(resource))
    if resource.kind == "LocalSubjectAccessReview":
        found["spec"]["resourceAttributes"]["namespace"] = namespace
    if resource.kind == "Event":
        for field in ("involvedObject", "regarding"):
            if field in found:
                found[field]["namespace"] = namespace
    return {"apiVersion": key[0], "kind": key[1], "metadata": metadata, **found}
