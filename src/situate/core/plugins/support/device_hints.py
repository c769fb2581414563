"""Which events may help a pod that DynamicResources refused: Kubernetes' queueing hints."""

from __future__ import annotations

from situate.core.contract import Wake, WakeEvent
from situate.core.devices.claims import ClaimProblemError, pod_claims
from situate.core.model.devices import ResourceClaim
from situate.core.model.meta import controller_of
from situate.core.state.classes import PodClass


def device_hint(pod: PodClass, event: WakeEvent) -> bool:
    match event.kind:
        case Wake.RESOURCE_CLAIM_ADDED | Wake.RESOURCE_CLAIM_UPDATED:
            return _after_claim(pod, event)
        case Wake.RESOURCE_CLAIM_DELETED:
            return isinstance(event.item, ResourceClaim) and _after_deletion(pod, event.item)
        case Wake.POD_RESOURCE_CLAIMS:
            return _claims_of(pod, event) is not None
        case _:
            return True


def _after_deletion(pod: PodClass, gone: ResourceClaim) -> bool:
    """Devices that a claim had help anybody; a claim that an earlier attempt left was in the way of its own pod."""
    owner = controller_of(gone.metadata)
    return gone.status.allocation is not None or (owner is not None and owner.uid == pod.pod.metadata.uid)


def _after_claim(pod: PodClass, event: WakeEvent) -> bool:
    """A claim that gives devices back helps anybody; any other helps only the pods that name it."""
    now, before = event.item, event.item_before
    claims = _claims_of(pod, event)
    if claims is None:
        return False
    if not isinstance(now, ResourceClaim):
        return False
    if isinstance(before, ResourceClaim) and before.status.allocation is not None and now.status.allocation is None:
        return True
    if all(claim.metadata.uid != now.metadata.uid for claim in claims):
        return False
    return not isinstance(before, ResourceClaim) or before.status != now.status


def _claims_of(pod: PodClass, event: WakeEvent) -> list[ResourceClaim] | None:
    """The claims of the pod; None if it has to wait for one of them."""
    if event.objects is None:
        return []
    try:
        return pod_claims(pod.pod, event.objects.devices.claims)
    except ClaimProblemError:
        return None
