"""Copies of a pod's claims with one thing changed, as a person would edit them, and what to call the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from situate.core.explain.device_reasons import DeviceRequestState
from situate.core.model.devices import DeviceSubRequest, ResourceClaim
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod

Claims: TypeAlias = tuple[ResourceClaim, ...]
Edit: TypeAlias = Callable[[Claims], Claims]


def subject_of(pod: Pod, claim: ResourceClaim) -> str:
    """What to change: a claim is made from its template again and again."""
    template = template_of(pod, claim)
    if template:
        return f"ResourceClaimTemplate {pod.metadata.namespace}/{template}"
    return f"ResourceClaim {key_of(claim.metadata)}"


def whose_of(pod: Pod, claim: ResourceClaim) -> str:
    template = template_of(pod, claim)
    return f" of template {template}" if template else f" of claim {claim.metadata.name}"


def template_of(pod: Pod, claim: ResourceClaim) -> str:
    made = {one.resource_claim_name: one.name for one in pod.status.resource_claim_statuses}
    entry = made.get(claim.metadata.name)
    return next((one.resource_claim_template_name or "" for one in pod.spec.resource_claims if one.name == entry), "")


def path_of(claim: ResourceClaim, state: DeviceRequestState) -> str:
    request = claim.spec.devices.requests[state.name.request]
    which = f"firstAvailable[{state.name.alternative}]" if request.first_available else "exactly"
    return f"spec.devices.requests[{state.name.request}].{which}"


def edit_of(state: DeviceRequestState, **fields: Any) -> Edit:
    """Changes some fields of one request."""

    def edit(claims: Claims) -> Claims:
        claim = claims[state.name.claim]
        devices = claim.spec.devices
        request = devices.requests[state.name.request]
        if request.first_available:
            before: DeviceSubRequest = request.first_available[state.name.alternative]
            alternatives = list(request.first_available)
            alternatives[state.name.alternative] = replace(before, **fields)
            request = replace(request, first_available=tuple(alternatives))
        else:
            request = replace(request, exactly=replace(request.exactly or DeviceSubRequest(), **fields))
        requests = tuple(request if at == state.name.request else one for at, one in enumerate(devices.requests))
        made = replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=requests)))
        return (*claims[: state.name.claim], made, *claims[state.name.claim + 1 :])

    return edit


def dropped(state: DeviceRequestState) -> Edit:
    """Drops one request."""

    def edit(claims: Claims) -> Claims:
        claim = claims[state.name.claim]
        devices = claim.spec.devices
        kept = tuple(one for at, one in enumerate(devices.requests) if at != state.name.request)
        made = replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=kept)))
        return (*claims[: state.name.claim], made, *claims[state.name.claim + 1 :])

    return edit
