"""Reads and writes ResourceClaims on an API server, and the status of pods that get one for extended resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

import msgspec

from situate.core.changes import PodRef
from situate.core.effects import ExtendedResource
from situate.core.model.devices import ResourceClaim
from situate.core.model.meta import ObjectMeta
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.pods import READ_S, pod_path, read_pod
from situate.loop.scheduling.claim_changes import extended_claim_base
from situate.loop.scheduling.port import (
    ASSIGNED,
    AllocateClaim,
    ClaimError,
    ClaimOutcome,
    ClaimWrite,
    CreateClaim,
    DeallocateClaim,
    DeleteClaim,
    ExtendedStatus,
    ProtectClaim,
    ReserveClaim,
    UnreserveClaim,
)
from situate.wire import claim_patches as bodies
from situate.wire.bodies import delete_options
from situate.wire.errors import InputError
from situate.wire.objects import decode
from situate.wire.patches import STRATEGIC

WRITE_S: Final = 15.0
DEVICE_TAKEN: Final = "DeviceTaken"
"""The cause of a 409 of situate's own server that is not about a change of the claim."""
NOT_WRITTEN: Final = "the pod is gone"


async def read_resource_claim(client: Client, namespace: str, name: str) -> ResourceClaim | None:
    """None: there is none. Raises ClaimError."""
    path = claim_path(namespace, name)
    try:
        return decode(ResourceClaim, await client.request("GET", path, timeout_s=READ_S))
    except ApiError as error:
        if error.not_found:
            return None
        raise ClaimError(error.message) from None
    except InputError as error:
        raise ClaimError(f"{path} cannot be read: {error}") from None


async def write_resource_claim(client: Client, write: ClaimWrite, now_ns: Callable[[], int]) -> ClaimOutcome:
    try:
        return await _write(client, write, now_ns)
    except ApiError as error:
        is_conflict = error.conflict and DEVICE_TAKEN not in error.causes
        return ClaimOutcome(error.message, retry=is_conflict or error.temporary, lost=error.lost)


async def _write(client: Client, write: ClaimWrite, now_ns: Callable[[], int]) -> ClaimOutcome:
    """Raises ApiError."""
    match write:
        case ProtectClaim(claim):
            return await _patch(client, claim.metadata, "", bodies.protect_claim(claim.metadata))
        case AllocateClaim(claim, allocation, pod):
            body = bodies.allocate_claim(claim.metadata, allocation, pod, now_ns())
            return await _patch(client, claim.metadata, "/status", body)
        case ReserveClaim(claim, pod):
            return await _patch(client, claim.metadata, "/status", bodies.reserve_claim(claim.metadata, pod))
        case UnreserveClaim(claim, pod):
            return await _patch(client, claim.metadata, "/status", bodies.unreserve_claim(claim.metadata, pod))
        case DeallocateClaim(claim):
            return await _patch(client, claim.metadata, "/status", bodies.deallocate_claim(claim.metadata))
        case CreateClaim(pod, name, requests):
            made = msgspec.json.encode(bodies.extended_claim(pod, name, extended_claim_base(pod), requests))
            path = f"/apis/{bodies.API_VERSION}/namespaces/{pod.namespace}/resourceclaims"
            return _written(await client.request("POST", path, body=made, timeout_s=WRITE_S))
        case DeleteClaim(claim):
            return await _delete(client, claim.metadata)
        case ExtendedStatus(pod, name, mappings):
            return await _note(client, pod, name, mappings)
        case _:
            assert_never(write)


async def _patch(client: Client, claim: ObjectMeta, subresource: str, body: bytes) -> ClaimOutcome:
    path = claim_path(claim.namespace, claim.name) + subresource
    return _written(await client.request("PATCH", path, body=body, content_type=STRATEGIC, timeout_s=WRITE_S))


async def _delete(client: Client, claim: ObjectMeta) -> ClaimOutcome:
    """The finalizer goes first. Whoever deletes the claim before us has done our work."""
    try:
        await _patch(client, claim, "", bodies.unprotect_claim(claim))
        path = claim_path(claim.namespace, claim.name)
        await client.request("DELETE", path, body=delete_options(claim.uid), timeout_s=WRITE_S)
    except ApiError as error:
        if not error.not_found:
            raise
    return ClaimOutcome()


async def _note(client: Client, pod: PodRef, name: str, mappings: tuple[ExtendedResource, ...]) -> ClaimOutcome:
    found = await read_pod(client, pod)
    if found is None or found.metadata.uid != pod.uid:
        return ClaimOutcome(NOT_WRITTEN)
    if found.spec.node_name:
        return ClaimOutcome(ASSIGNED.format(pod.name, found.spec.node_name))
    body = bodies.extended_status_patch(pod, found.metadata.resource_version, name, mappings)
    try:
        await client.request("PATCH", f"{pod_path(pod)}/status", body=body, content_type=STRATEGIC, timeout_s=WRITE_S)
    except ApiError as error:
        if not error.not_found:
            raise
        return ClaimOutcome(NOT_WRITTEN)
    return ClaimOutcome()


def _written(answer: bytes) -> ClaimOutcome:
    try:
        return ClaimOutcome(claim=decode(ResourceClaim, answer))
    except InputError as error:
        return ClaimOutcome(f"the answer cannot be read: {error}", retry=True, lost=True)


def claim_path(namespace: str, name: str) -> str:
    return f"/apis/{bodies.API_VERSION}/namespaces/{namespace}/resourceclaims/{name}"
