"""What a claim needs when a pod is not bound after all, and the name of the claim for extended resources."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from situate.core.changes import PodRef
from situate.core.devices.claims import can_be_deallocated
from situate.core.devices.extended import CLAIM_ANNOTATION
from situate.core.model.devices import ResourceClaim
from situate.core.model.meta import controller_of
from situate.core.model.pod import Pod
from situate.loop.scheduling.port import ClaimWrite, DeallocateClaim, DeleteClaim, UnreserveClaim

NAME_BASE_CHARS: Final = 58
SUFFIX_CHARS: Final = 5


def extended_claim_name(pod: PodRef, attempt: int, salt: str) -> str:
    """The name of the claim for a pod's extended resources, as if the server had generated it."""
    digest = blake2b(f"{pod.uid}/{attempt}/{salt}".encode(), digest_size=8).digest()
    suffix = "".join("bcdfghjklmnpqrstvwxz2456789"[byte % 27] for byte in digest[:SUFFIX_CHARS])
    return extended_claim_base(pod)[:NAME_BASE_CHARS] + suffix


def extended_claim_base(pod: PodRef) -> str:
    """The generateName of such a claim."""
    return f"{pod.name}-extended-resources-"


def unreserved(pod: PodRef, claim: ResourceClaim) -> ClaimWrite | None:
    is_ours = claim.status.allocation is not None and any(one.uid == pod.uid for one in claim.status.reserved_for)
    return UnreserveClaim(claim, pod) if is_ours else None


def deleted(pod: PodRef, claim: ResourceClaim) -> ClaimWrite | None:
    return DeleteClaim(claim) if is_for(claim, pod) else None


def deallocated(pod: PodRef, uid: str, claim: ResourceClaim) -> ClaimWrite | None:
    if claim.metadata.uid != uid or claim.status.allocation is None or not can_be_deallocated(claim, pod.uid):
        return None
    return DeallocateClaim(claim)


def holds(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether a pod is on a node with this claim, so that nobody may take the claim from it."""
    if not pod.spec.node_name:
        return False
    named = pod.status.extended_resource_claim_status
    is_extended = claim.metadata.annotations.get(CLAIM_ANNOTATION) == "true"
    return not is_extended or named is None or named.resource_claim_name == claim.metadata.name


def is_for(claim: ResourceClaim, pod: PodRef) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.uid
