"""Which events may help a pod that DynamicResources refused: Kubernetes' queueing hints."""

from __future__ import annotations

from situate.core.contract import Wake, WakeEvent
from situate.core.devices.claims import ClaimProblemError, has_shares, is_same, pod_claims
from situate.core.devices.requests import alternatives
from situate.core.model.devices import ALL, ResourceClaim, ResourceSlice
from situate.core.model.meta import controller_of
from situate.core.plugins.support.extended_devices import serves_request
from situate.core.state.classes import PodClass
from situate.core.versions import DeviceRules


def device_hint(pod: PodClass, event: WakeEvent, rules: DeviceRules) -> bool:
    match event.kind:
        case Wake.RESOURCE_CLAIM_ADDED | Wake.RESOURCE_CLAIM_UPDATED:
            return _after_claim(pod, event, rules)
        case Wake.RESOURCE_CLAIM_DELETED:
            return isinstance(event.item, ResourceClaim) and _after_deletion(pod, event.item)
        case Wake.RESOURCE_SLICE_DELETED:
            return _after_slice(pod, event)
        case Wake.DEVICE_CLASS_DELETED:
            # Without it, only a node's device plugin serves the resource, and a claim that an earlier attempt left is
            # not in the way any more. Kubernetes has no hint for this, and finds out after minutes.
            return serves_request(pod, event)
        case Wake.POD_RESOURCE_CLAIMS:
            return _claims_of(pod, event) is not None
        case _:
            return True


def _after_deletion(pod: PodClass, gone: ResourceClaim) -> bool:
    """Devices that a claim had help anybody; a claim that an earlier attempt left was in the way of its own pod."""
    owner = controller_of(gone.metadata)
    return gone.status.allocation is not None or (owner is not None and owner.uid == pod.pod.metadata.uid)


def _after_claim(pod: PodClass, event: WakeEvent, rules: DeviceRules) -> bool:
    """A claim that gives devices back helps anybody, and so does one that got others than it was about to get: another
    scheduler was quicker. Any other helps the pods that name it, unless its devices are not written yet.

    A claim that gets shares of devices may help a pod that asks for all devices: all that are not used up, in some
    releases, so it may have the others now. Kubernetes has no hint for this, and finds out after minutes.
    """
    now, before = event.item, event.item_before
    claims = _claims_of(pod, event)
    if claims is None or not isinstance(now, ResourceClaim):
        return False
    had, has = before.status.allocation if isinstance(before, ResourceClaim) else None, now.status.allocation
    if had is not None and (has is None or not is_same(had, has)):
        return True
    if had is None and not rules.all_includes_used_up and has_shares(now) and any(map(_asks_for_all, claims)):
        return True
    if event.objects is not None and (now.metadata.namespace, now.metadata.name) in event.objects.devices.in_flight:
        return False
    if all(claim.metadata.uid != now.metadata.uid for claim in claims):
        return False
    return not isinstance(before, ResourceClaim) or _differs(before, now)


def _after_slice(pod: PodClass, event: WakeEvent) -> bool:
    """Without a slice, an older generation of its pool may count again, and a pod that asks for all devices no longer
    asks for those that were in use. Kubernetes has no hint for this, and finds out after minutes.
    """
    claims = _claims_of(pod, event)
    if claims is None or event.objects is None or not isinstance(event.item, ResourceSlice):
        return claims is not None
    return event.objects.devices.inventory.has_pool_of(event.item) or any(map(_asks_for_all, claims))


def _differs(before: ResourceClaim, now: ResourceClaim) -> bool:
    """Whether a claim has another status, or is another claim: it was replaced while no watch showed that."""
    return before.metadata.uid != now.metadata.uid or before.status != now.status


def _asks_for_all(claim: ResourceClaim) -> bool:
    requests = claim.spec.devices.requests
    return any(one.allocation_mode == ALL for request in requests for _, one in alternatives(request))


def _claims_of(pod: PodClass, event: WakeEvent) -> list[ResourceClaim] | None:
    """The claims of the pod; None if it has to wait for one of them."""
    if event.objects is None:
        return []
    try:
        return pod_claims(pod.pod, event.objects.devices.claims)
    except ClaimProblemError:
        return None
