"""Bodies for an API server that write ResourceClaims, as JSON bytes: strategic merge patches, and a new claim.

Each patch names the uid and the version it holds for. Users of a claim and finalizers are merged with those that are
there. Opens nothing and knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from situate.core.changes import PodRef
from situate.core.devices.extended import CLAIM_ANNOTATION
from situate.core.effects import ExtendedResource
from situate.core.model.devices import AllocationResult, DeviceRequest
from situate.core.model.meta import ObjectMeta
from situate.core.reconcile.resourceclaim import FINALIZER
from situate.wire.bodies import seconds_time

API_VERSION: Final = "resource.k8s.io/v1"

_encode: Final = msgspec.json.Encoder().encode


def protect_claim(claim: ObjectMeta) -> bytes:
    """Add the finalizer of allocated claims."""
    return _patch(claim, {"finalizers": [FINALIZER]})


def unprotect_claim(claim: ObjectMeta) -> bytes:
    return _patch(claim, {"$deleteFromPrimitiveList/finalizers": [FINALIZER]})


def allocate_claim(claim: ObjectMeta, allocation: AllocationResult, pod: PodRef, now_ns: int) -> bytes:
    """Give a claim its devices, and reserve it for a pod."""
    return _patch(claim, {}, {"allocation": allocation_of(allocation, now_ns), "reservedFor": [consumer(pod)]})


def reserve_claim(claim: ObjectMeta, pod: PodRef) -> bytes:
    return _patch(claim, {}, {"reservedFor": [consumer(pod)]})


def unreserve_claim(claim: ObjectMeta, pod: PodRef) -> bytes:
    return _patch(claim, {}, {"reservedFor": [{"$patch": "delete", "uid": pod.uid}]})


def deallocate_claim(claim: ObjectMeta) -> bytes:
    return _patch(claim, {}, {"allocation": None, "reservedFor": None, "devices": None})


def extended_claim(pod: PodRef, name: str, base: str, requests: Sequence[DeviceRequest]) -> dict[str, Any]:
    """The claim for a pod's extended resources; `base` is its generateName."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    meta = {
        "name": name,
        "generateName": base,
        "namespace": pod.namespace,
        "annotations": {CLAIM_ANNOTATION: "true"},
        "ownerReferences": [owner],
    }
    spec = {"devices": {"requests": msgspec.to_builtins(tuple(requests))}}
    return {"apiVersion": API_VERSION, "kind": "ResourceClaim", "metadata": meta, "spec": spec}


def extended_status(claim: str, mappings: Iterable[ExtendedResource]) -> dict[str, Any]:
    """What a pod's status says of the claim for its extended resources."""
    named = [
        {"containerName": one.container, "resourceName": one.resource, "requestName": one.request} for one in mappings
    ]
    return {"extendedResourceClaimStatus": {"resourceClaimName": claim, "requestMappings": named}}


def extended_status_patch(pod: PodRef, version: str, claim: str, mappings: Iterable[ExtendedResource]) -> bytes:
    held = {"uid": pod.uid, "resourceVersion": version}
    return _encode({"metadata": held, "status": extended_status(claim, mappings)})


def allocation_of(allocation: AllocationResult, now_ns: int) -> dict[str, Any]:
    """As it is written: with the time, unless it has one."""
    body: dict[str, Any] = msgspec.to_builtins(allocation)
    body.setdefault("allocationTimestamp", seconds_time(now_ns))
    return body


def consumer(pod: PodRef) -> dict[str, str]:
    return {"resource": "pods", "name": pod.name, "uid": pod.uid}


def _patch(claim: ObjectMeta, metadata: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> bytes:
    held = {"uid": claim.uid, "resourceVersion": claim.resource_version}
    guarded = {name: value for name, value in held.items() if value}
    return _encode({"metadata": {**guarded, **metadata}, **({"status": status} if status is not None else {})})
