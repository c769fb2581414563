"""How a registry's ResourceClaims change when devices are given to them and taken back.

The finalizer, the devices and the reservation are one transaction, in which `placing/device_transaction` checks that
nobody else has the devices.
"""

from __future__ import annotations

from typing import Any, Final

from situate.core.changes import PodRef
from situate.core.model.devices import AllocationResult, ResourceClaim
from situate.core.model.meta import controller_of
from situate.core.model.pod import Pod
from situate.core.reconcile.resourceclaim import FINALIZER
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
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import PODS
from situate.server.placing.refusals import TAKEN
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, DeleteOptions, Object, Target
from situate.server.resources import BY_KIND
from situate.wire.claim_patches import allocation_of, consumer, extended_claim, extended_status
from situate.wire.errors import InputError
from situate.wire.objects import decode, decode_pod

CLAIMS: Final = BY_KIND["resource.k8s.io/v1", "ResourceClaim"]
EXTENDED: Final = "extendedResourceClaimStatus"
NOT_FOUND, CONFLICT, TOO_MANY, SERVER_ERRORS = 404, 409, 429, 500


def read_resource_claim(registry: Registry, namespace: str, name: str) -> ResourceClaim | None:
    """None: there is none. Raises ClaimError."""
    held = registry.cache.get(CLAIMS, namespace, name)
    return None if held is None else _decoded(held)


def read_pod(registry: Registry, ref: PodRef) -> Pod | None:
    """The pod with this uid. None: it is gone. Raises ClaimError."""
    held = registry.cache.get(PODS, ref.namespace, ref.name)
    if held is None or held.uid != ref.uid:
        return None
    try:
        return decode_pod(held.to_json(PODS))
    except InputError as error:
        raise ClaimError(f"pod {ref.key} cannot be read: {error}") from None


async def write_resource_claim(registry: Registry, write: ClaimWrite, caller: Caller, now_ns: int) -> ClaimOutcome:
    try:
        return await _write(registry, write, caller, now_ns)
    except ClaimError as error:
        return ClaimOutcome(str(error))
    except StatusError as error:
        is_conflict = error.code == CONFLICT and not any(cause.reason == TAKEN for cause in error.causes)
        return ClaimOutcome(error.message, retry=is_conflict or error.code >= SERVER_ERRORS or error.code == TOO_MANY)


async def _write(registry: Registry, write: ClaimWrite, caller: Caller, now_ns: int) -> ClaimOutcome:
    """Raises StatusError and ClaimError."""
    match write:
        case ProtectClaim(claim):
            return ClaimOutcome(claim=claim)  # its devices and its finalizer come together
        case CreateClaim(pod, name, requests):
            made = extended_claim(pod, name, extended_claim_base(pod), requests)
            return ClaimOutcome(claim=_decoded(await registry.create(Target(CLAIMS, pod.namespace), made, caller)))
        case DeleteClaim(claim):
            return await _delete(registry, claim, caller)
        case ExtendedStatus(pod, name, mappings):
            return await _note(registry, pod, extended_status(name, mappings), caller)
        case AllocateClaim() | ReserveClaim() | UnreserveClaim() | DeallocateClaim():
            return await _change(registry, write, caller, now_ns)


async def _change(
    registry: Registry,
    write: AllocateClaim | ReserveClaim | UnreserveClaim | DeallocateClaim,
    caller: Caller,
    now_ns: int,
) -> ClaimOutcome:
    def change(claim: Object, _held: StoredObject) -> Object:
        status: dict[str, Any] = claim.setdefault("status", {})
        match write:
            case AllocateClaim(_, allocation, pod):
                _allocate(claim, allocation, now_ns)
                _reserve(status, pod)
            case ReserveClaim(_, pod):
                _reserve(status, pod)
            case UnreserveClaim(_, pod):
                left = [one for one in status.get("reservedFor", ()) if one.get("uid") != pod.uid]
                status.pop("reservedFor", None)
                if left:
                    status["reservedFor"] = left
            case DeallocateClaim():
                for name in ("allocation", "reservedFor", "devices"):
                    status.pop(name, None)
        return claim

    return ClaimOutcome(claim=_decoded(await _modify(registry, write.claim, change, caller)))


def _allocate(claim: Object, allocation: AllocationResult, now_ns: int) -> None:
    finalizers = claim["metadata"].setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    claim["status"]["allocation"] = allocation_of(allocation, now_ns)


def _reserve(status: dict[str, Any], pod: PodRef) -> None:
    users = status.setdefault("reservedFor", [])
    if all(one.get("uid") != pod.uid for one in users):
        users.append(consumer(pod))


async def _delete(registry: Registry, claim: ResourceClaim, caller: Caller) -> ClaimOutcome:
    """The finalizer goes first. Whoever deletes the claim before us has done our work."""

    def change(held: Object, _stored: StoredObject) -> Object:
        left = [name for name in held["metadata"].pop("finalizers", ()) if name != FINALIZER]
        if left:
            held["metadata"]["finalizers"] = left
        return held

    meta = claim.metadata
    try:
        await _modify(registry, claim, change, caller)
        await registry.delete(Target(CLAIMS, meta.namespace, meta.name), caller, DeleteOptions(uid=meta.uid))
        await _forget(registry, claim, caller)
    except StatusError as error:
        if error.code != NOT_FOUND:
            raise
    return ClaimOutcome()


async def _forget(registry: Registry, claim: ResourceClaim, caller: Caller) -> None:
    """The pod does not name the claim any more: its extended resources are the node's again."""
    owner = controller_of(claim.metadata)
    if owner is None:
        return

    def change(pod: Object, _stored: StoredObject) -> Object:
        status = pod.get("status", {})
        if status.get(EXTENDED, {}).get("resourceClaimName") == claim.metadata.name:
            del status[EXTENDED]
        return pod

    await registry.modify(Target(PODS, claim.metadata.namespace, owner.name), change, caller, uid=owner.uid)


async def _note(registry: Registry, pod: PodRef, status: dict[str, Any], caller: Caller) -> ClaimOutcome:
    def change(held: Object, _stored: StoredObject) -> Object:
        if node := held["spec"].get("nodeName"):
            raise ClaimError(ASSIGNED.format(pod.name, node))
        held.setdefault("status", {}).update(status)
        return held

    await registry.modify(Target(PODS, pod.namespace, pod.name), change, caller, uid=pod.uid)
    return ClaimOutcome()


async def _modify(registry: Registry, claim: ResourceClaim, change: Any, caller: Caller) -> StoredObject:
    """Change a claim in the version that was read."""
    meta = claim.metadata
    target = Target(CLAIMS, meta.namespace, meta.name)
    return await registry.modify(target, change, caller, uid=meta.uid, resource_version=meta.resource_version)


def _decoded(held: StoredObject) -> ResourceClaim:
    """As a client would read it. Raises ClaimError."""
    try:
        return decode(ResourceClaim, held.to_json(CLAIMS))
    except InputError as error:
        raise ClaimError(f"ResourceClaim {held.namespace}/{held.name} cannot be read: {error}") from None
