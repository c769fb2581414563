"""Devices, slices, classes and claims for tests."""

from __future__ import annotations

from typing import Any

from msgspec import convert

from situate.core.model.devices import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeStatus
from situate.core.model.pod import (
    Container,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)

DRIVER = "gpu.example.com"
MINE = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}


def device(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def model(value: str) -> dict[str, Any]:
    return {"model": {"string": value}}


def slice_of(
    node: str,
    *devices: dict[str, Any],
    name: str = "",
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> ResourceSlice:
    """A slice of a node's devices; an empty node leaves it to `spec` which nodes it is for."""
    where = {"nodeName": node} if node else {}
    made = {
        "metadata": {"name": name or f"{node}-slice"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": pool or node or "shared", "generation": generation, "resourceSliceCount": count},
            "devices": list(devices),
            **where,
            **spec,
        },
    }
    return convert(made, ResourceSlice)


def device_class(name: str = "gpu", **spec: Any) -> DeviceClass:
    return convert({"metadata": {"name": name}, "spec": {"selectors": [MINE], **spec}}, DeviceClass)


def exactly(name: str = "r", *, count: int = 1, selector: str = "", **fields: Any) -> dict[str, Any]:
    chosen = {"selectors": [{"cel": {"expression": selector}}]} if selector else {}
    return {"name": name, "exactly": {"deviceClassName": "gpu", "count": count, **chosen, **fields}}


def first_of(name: str, *alternatives: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "firstAvailable": [{"deviceClassName": "gpu", **one} for one in alternatives]}


def claim(name: str, *requests: dict[str, Any], constraints: tuple[Any, ...] = (), **meta: Any) -> ResourceClaim:
    made = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **meta},
        "spec": {"devices": {"requests": list(requests), "constraints": list(constraints)}},
    }
    return convert(made, ResourceClaim)


def node(name: str, **allocatable: str) -> Node:
    room = {
        "cpu": "8",
        "memory": "16Gi",
        "pods": "110",
        **{key.replace("__", "/"): v for key, v in allocatable.items()},
    }
    return Node(metadata=ObjectMeta(name=name, labels={"zone": name[-1]}), status=NodeStatus(allocatable=room))


def pod_with(name: str, *claims: str, requests: dict[str, str] | None = None, generated: bool = False) -> Pod:
    """A pod that names claims, or for which they were made from templates."""
    entries = tuple(
        PodResourceClaim(name=one, resource_claim_template_name="t")
        if generated
        else PodResourceClaim(name=one, resource_claim_name=one)
        for one in claims
    )
    made = tuple(PodResourceClaimStatus(name=one, resource_claim_name=one) for one in claims) if generated else ()
    container = Container(name="c", resources=ResourceRequirements(requests=requests or {"cpu": "100m"}))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=PodSpec(containers=(container,), resource_claims=entries),
        status=PodStatus(resource_claim_statuses=made),
    )


def owned_by(pod: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": f"uid-{pod}", "controller": True}]


def devices_of(allocation: AllocationResult) -> list[tuple[str, str]]:
    """(request, device) of an allocation."""
    return [(one.request, one.device) for one in allocation.devices.results]
