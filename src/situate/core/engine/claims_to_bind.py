"""The devices of a pod, as the effect that has them written asks for it."""

from __future__ import annotations

from situate.core.devices.extended import IN_MEMORY_NAME
from situate.core.effects import ClaimToBind, ClaimToCreate, ExtendedResource
from situate.core.plugins.support.device_demand import DeviceDecision


def claims_to_bind(devices: DeviceDecision) -> tuple[tuple[ClaimToBind, ...], ClaimToCreate | None]:
    """The claims to write and to reserve; and the claim to create for extended resources."""
    claims = [ClaimToBind(claim.metadata.name, claim.metadata.uid) for claim in devices.reserved]
    create: ClaimToCreate | None = None
    for claim, allocation in devices.allocations:
        if claim.metadata.name != IN_MEMORY_NAME:
            claims.append(ClaimToBind(claim.metadata.name, claim.metadata.uid, allocation))
        elif devices.extended is not None:
            mappings = tuple(
                ExtendedResource(one.container, one.resource, one.request) for one in devices.extended.mappings
            )
            create = ClaimToCreate(claim.spec.devices.requests, allocation, mappings)
    return tuple(claims), create
