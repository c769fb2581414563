"""Objects for tests. Each function takes the fields that a case is about and makes up the rest.

Fields go by the structs' own names; `manifest` makes what a user would write, by Kubernetes' names.
"""

from collections.abc import Mapping
from typing import Any

from situate.core.model.labels import LabelSelector, LabelSelectorRequirement
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeSpec, NodeStatus
from situate.core.model.nodeselector import NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from situate.core.model.quantity import RawQuantity
from situate.core.model.tolerations import Taint, Toleration

__all__ = [
    "container",
    "expression",
    "manifest",
    "node",
    "pod",
    "selector",
    "taint",
    "term",
    "toleration",
]


def container(name: str = "c", **fields: Any) -> Container:
    """`requests` and `limits` may be given beside the container's own fields; so may cpu= and memory=."""
    requests: dict[str, RawQuantity] = {key: fields.pop(key) for key in ("cpu", "memory") if key in fields}
    requests.update(fields.pop("requests", {}))
    limits: Mapping[str, RawQuantity] = fields.pop("limits", {})
    if requests or limits:
        fields["resources"] = ResourceRequirements(requests=requests, limits=limits)
    return Container(name=name, **fields)


def pod(name: str = "web", *, namespace: str = "default", **fields: Any) -> Pod:
    """A pod with one container, unless `containers` says otherwise. cpu=, memory= and requests= go to that one.

    Other fields are those of its metadata (labels, uid, ...), status (phase, ...) or else spec.
    """
    meta = {key: fields.pop(key) for key in ObjectMeta.__struct_fields__ if key in fields}
    status = {key: fields.pop(key) for key in PodStatus.__struct_fields__ if key in fields and key != "resources"}
    asked = {key: fields.pop(key) for key in ("cpu", "memory", "requests", "limits") if key in fields}
    fields.setdefault("containers", (container(**asked),))
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, **meta),
        spec=PodSpec(**fields),
        status=PodStatus(**status),
    )


def node(name: str = "n1", **fields: Any) -> Node:
    """A node. cpu=, memory= and pods= are its allocatable room; other fields go where the structs have them."""
    meta = {key: fields.pop(key) for key in ObjectMeta.__struct_fields__ if key in fields}
    spec = {key: fields.pop(key) for key in NodeSpec.__struct_fields__ if key in fields}
    room = {key: fields.pop(key) for key in ("cpu", "memory", "pods") if key in fields}
    if room:
        fields["allocatable"] = {**room, **fields.get("allocatable", {})}
    return Node(metadata=ObjectMeta(name=name, **meta), spec=NodeSpec(**spec), status=NodeStatus(**fields))


def selector(*expressions: LabelSelectorRequirement, **labels: str) -> LabelSelector:
    return LabelSelector(match_labels=labels, match_expressions=expressions)


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def term(
    *expressions: tuple[str, str, tuple[str, ...]], fields: tuple[tuple[str, str, str], ...] = ()
) -> NodeSelectorTerm:
    """A node selector term of (key, operator, values); `fields` are (key, operator, value)."""
    return NodeSelectorTerm(
        match_expressions=tuple(
            NodeSelectorRequirement(key=key, operator=operator, values=values) for key, operator, values in expressions
        ),
        match_fields=tuple(
            NodeSelectorRequirement(key=key, operator=operator, values=(value,)) for key, operator, value in fields
        ),
    )


def taint(key: str = "dedicated", value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def toleration(key: str = "", operator: str = "", value: str = "", effect: str = "") -> Toleration:
    return Toleration(key=key, operator=operator, value=value, effect=effect)


_GROUPS = {
    "PodDisruptionBudget": "policy/v1",
    "PodGroup": "scheduling.k8s.io/v1beta1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    **dict.fromkeys(
        ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"), "storage.k8s.io/v1"
    ),
    **dict.fromkeys(("DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceSlice"), "resource.k8s.io/v1"),
}


def manifest(kind: str, name: str, *, namespace: str = "", **fields: Any) -> dict[str, Any]:
    """An object as a file would have it. A pod gets a container if it is given no spec."""
    meta: dict[str, Any] = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    meta.update(fields.pop("metadata", {}))
    if kind == "Pod":
        fields.setdefault("spec", {"containers": [{"name": "c"}]})
    return {"apiVersion": _GROUPS.get(kind, "v1"), "kind": kind, "metadata": meta, **fields}
