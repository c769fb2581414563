"""The claims of a pod: named by it, or made for it from a template; and why they may not be used. Kubernetes' texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from situate.core.devices.inventory import NodeFacts, selects
from situate.core.model.devices import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceCondition,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from situate.core.model.labels import SelectorError
from situate.core.model.meta import controller_of
from situate.core.model.pod import Pod

Claims = Mapping[tuple[str, str], ResourceClaim]
"""(namespace, name) -> claim."""


class ClaimProblemError(ValueError):
    """The pod has to wait for its claims."""

    def __init__(self, text: str, claim: tuple[str, str] | None = None) -> None:
        super().__init__(text)
        self.claim = claim
        """(namespace, name) of the claim that it waits for; None: it waits for a change of its own."""


def pod_claims(pod: Pod, claims: Claims) -> list[ResourceClaim]:
    """The claims of a pod, in order. Raises ClaimProblemError; the first problem decides."""
    namespace = pod.metadata.namespace
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    key = f"{namespace}/{pod.metadata.name}"
    found = []
    for entry in pod.spec.resource_claims:
        name, generated = entry.resource_claim_name, False
        if name is None:
            if entry.resource_claim_template_name is None:
                told = f'spec.resourceClaim "{entry.name}": none of the supported fields are set'
                raise ClaimProblemError(f'pod "{key}", {told}')
            if entry.name not in made:
                raise ClaimProblemError(f'pod "{key}": ResourceClaim not created yet')
            name, generated = made[entry.name], True
            if name is None:
                continue
        claim = claims.get((namespace, name))
        if claim is None:
            raise ClaimProblemError(f'could not find ResourceClaim "{namespace}/{name}"', (namespace, name))
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimProblemError(f'resourceclaim "{name}" is being deleted', (namespace, name))
        owner = controller_of(claim.metadata) if generated else None
        if generated and (owner is None or owner.uid != pod.metadata.uid):
            told = f"was not created for Pod {key} (Pod is not owner)"
            raise ClaimProblemError(f"ResourceClaim {namespace}/{name} {told}", (namespace, name))
        found.append(claim)
    return found


def reaches(claim: ResourceClaim, node: NodeFacts) -> bool:
    """Whether the devices of an allocated claim can be used on a node. Raises SelectorError."""
    allocation = claim.status.allocation
    if allocation is None or allocation.node_selector is None:
        return True
    return selects(allocation.node_selector, node)


def selector_problem(claim: ResourceClaim) -> str:
    """Why the node selector of an allocation cannot be read; empty if it can."""
    try:
        reaches(claim, NodeFacts("", {}))
    except SelectorError as error:
        return str(error)
    return ""


def binding_failed(claim: ResourceClaim) -> bool:
    """Whether a device of an allocated claim reports that it could not be prepared."""
    return binding_failure(claim) is not None


def binding_failure(claim: ResourceClaim) -> DeviceCondition | None:
    """The condition in which a device of an allocated claim reports that it could not be prepared."""
    found = (
        condition
        for result in _with_conditions(claim)
        for status in _statuses(claim.status.devices, result)
        for condition in status.conditions
        if condition.status == "True" and condition.type in result.binding_failure_conditions
    )
    return next(found, None)


def is_prepared(claim: ResourceClaim) -> bool:
    """Whether all devices of an allocated claim report that they are ready, where they have to."""
    for result in _with_conditions(claim):
        found = _statuses(claim.status.devices, result)
        true = {one.type for status in found for one in status.conditions if one.status == "True"}
        if not true.issuperset(result.binding_conditions):
            return False
    return True


def _with_conditions(claim: ResourceClaim) -> list[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    return [] if allocation is None else [one for one in allocation.devices.results if one.binding_conditions]


def _statuses(
    devices: Sequence[AllocatedDeviceStatus], result: DeviceRequestAllocationResult
) -> list[AllocatedDeviceStatus]:
    wanted = (result.driver, result.pool, result.device)
    return [one for one in devices if (one.driver, one.pool, one.device) == wanted]


def has_shares(claim: ResourceClaim) -> bool:
    """Whether a claim has devices that others may use, too."""
    allocation = claim.status.allocation
    return allocation is not None and any(one.share_id is not None for one in allocation.devices.results)


def is_same(one: AllocationResult, other: AllocationResult) -> bool:
    """Whether two allocations give the same devices. The server may write amounts in another form."""
    return [_device(each) for each in one.devices.results] == [_device(each) for each in other.devices.results]


def _device(one: DeviceRequestAllocationResult) -> tuple[str | None, ...]:
    return one.request, one.driver, one.pool, one.device, one.share_id


def can_be_deallocated(claim: ResourceClaim, pod_uid: str) -> bool:
    """Whether no other pod has an allocated claim."""
    return all(user.uid == pod_uid for user in claim.status.reserved_for) and len(claim.status.reserved_for) <= 1
