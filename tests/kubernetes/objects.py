"""Kubernetes objects as JSON, for tests to create: only the fields a test is about; the server defaults the rest."""

from typing import Any

from kubernetes import parts

Json = dict[str, Any]

# kwok runs nodes that carry this; it never touches others.
KWOK_ANNOTATION = "kwok.x-k8s.io/node"
GROUPS_VERSION = "v1beta1" if parts.minor() >= 37 else "v1alpha2"
GROUPS_API = f"scheduling.k8s.io/{GROUPS_VERSION}"
GROUP_CONDITION = "PodGroupInitiallyScheduled" if parts.minor() >= 37 else "PodGroupScheduled"


def node(name: str, *, cpu: str = "8", memory: str = "32Gi", pods: int = 110, **more: Any) -> Json:
    """A Ready node for kwok's kubelets. `more`: labels, annotations, taints, unschedulable, extended (resources)."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods), **more.get("extended", {})}
    spec = {key: more[key] for key in ("taints", "unschedulable") if key in more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "type": "kwok", **more.get("labels", {})},
            "annotations": {KWOK_ANNOTATION: "fake", **more.get("annotations", {})},
        },
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "addresses": [{"type": "Hostname", "address": name}],
        },
    }


def pod(name: str, *, cpu: str = "100m", memory: str = "64Mi", scheduler: str = "", **more: Any) -> Json:
    """A pod of one container. `more`: labels, annotations, namespace, group, and any field of its spec."""
    metadata: Json = {
        "name": name,
        **{key: more.pop(key) for key in ("labels", "annotations", "namespace") if key in more},
    }
    asked = {"requests": {"cpu": cpu, "memory": memory}}
    spec: Json = {"containers": [{"name": "main", "image": "registry.test/pause", "resources": asked}]}
    if scheduler:
        spec["schedulerName"] = scheduler
    if "group" in more:
        spec["schedulingGroup"] = {"podGroupName": more.pop("group")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | more}


def pod_group(name: str, min_count: int, **spec: Any) -> Json:
    """A gang: nobody of it is bound until `min_count` fit."""
    policy = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    return {"apiVersion": GROUPS_API, "kind": "PodGroup", "metadata": {"name": name}, "spec": policy | spec}


def priority_class(name: str, value: int, **fields: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }
