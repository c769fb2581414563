"""The devices that a pod's claims get when it is placed on a node, and give back when it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec.structs import replace

from situate.core.devices.extended import CLAIM_ANNOTATION, IN_MEMORY_NAME
from situate.core.devices.requests import alternatives
from situate.core.model.devices import ALL, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimSpec
from situate.core.model.pod import Pod
from situate.core.plugins.dynamic_resources import DynamicResources, decide
from situate.core.plugins.support.device_demand import written_claims
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.device_objects import cleared
from situate.core.state.view import View

ClaimChange: TypeAlias = tuple[ResourceClaim | None, ResourceClaim | None]
"""A claim before and after; None: it does not exist."""


def taken_devices(
    cluster: Cluster, filters: Iterable[object], kind: PodClass, pod: Pod, row: int
) -> list[ClaimChange] | None:
    """How the claims of a pod change when it is placed at this row; None if it cannot have its devices there."""
    devices = cluster.objects.devices
    if not kind.spec.resource_claims and not devices.extended.classes:
        return []
    plugin = next((one for one in filters if isinstance(one, DynamicResources)), None)
    if plugin is None:
        return []
    decision = decide(plugin, kind, View(cluster), row)
    if decision is None:
        return None
    changes: list[ClaimChange] = []
    for claim in written_claims(decision, pod.metadata):
        meta = claim.metadata
        if meta.name == IN_MEMORY_NAME:
            if claim.spec.devices.requests:
                named = replace(meta, name=f"{pod.metadata.name}-extended-resources")
                changes.append((None, replace(claim, metadata=named)))
            continue
        changes.append((devices.claims.get((meta.namespace, meta.name)), claim))
    return changes


def released_devices(cluster: Cluster, pod: Pod) -> list[ClaimChange]:
    """How its claims change when a pod is gone. A claim that nobody else uses gives its devices back."""
    devices = cluster.objects.devices
    if not devices.claims:
        return []
    changes: list[ClaimChange] = []
    for claim in claims_named_by(cluster, pod):
        users = claim.status.reserved_for
        others = tuple(user for user in users if not _is(user, pod))
        if claim.status.allocation is None or (users and len(others) == len(users)):
            continue
        kept = replace(claim, status=replace(claim.status, reserved_for=others)) if others else cleared(claim)
        changes.append((claim, kept))
    made = devices.extended_claims.get((pod.metadata.namespace, pod.metadata.uid), {})
    changes += ((devices.claims[name], None) for name in made)
    return changes


def fewest_devices(cluster: Cluster, pod: Pod) -> int:
    """At least how many devices a pod needs for itself."""
    return sum(
        min((0 if one.admin_access else 1 if one.allocation_mode == ALL else one.count or 1) for _, one in asks)
        for entry, claim in _claims_by_entry(cluster, pod)
        if any(one.name == entry and one.resource_claim_name is None for one in pod.spec.resource_claims)
        for asks in map(alternatives, claim.spec.devices.requests)
    )


def _is(user: ResourceClaimConsumerReference, pod: Pod) -> bool:
    """Hand-written files may leave out uids."""
    return user.uid == pod.metadata.uid if user.uid else user.name == pod.metadata.name


def claims_named_by(cluster: Cluster, pod: Pod) -> Iterator[ResourceClaim]:
    """The claims that a pod names, or that were made for it, as far as they exist."""
    for _, claim in _claims_by_entry(cluster, pod):
        yield claim


def claim_specs(cluster: Cluster, pod: Pod) -> dict[str, ResourceClaimSpec]:
    """What the claims ask for that were made for a pod, by entry."""
    return {name: claim.spec for name, claim in _claims_by_entry(cluster, pod)}


def _claims_by_entry(cluster: Cluster, pod: Pod) -> Iterator[tuple[str, ResourceClaim]]:
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or made.get(entry.name) or ""
        claim = cluster.objects.devices.claims.get((pod.metadata.namespace, name))
        if claim is not None:
            yield entry.name, claim


def given_back(claim: ResourceClaim) -> ClaimChange:
    """A claim gives its devices back. One that was made for extended resources goes with them."""
    extended = claim.metadata.annotations.get(CLAIM_ANNOTATION) == "true"
    return claim, None if extended else cleared(claim)


def change_claim(cluster: Cluster, change: ClaimChange) -> None:
    """Make a change; with both sides swapped, take it back."""
    before, after = change
    if after is not None:
        cluster.put_object(after)
    elif before is not None:
        cluster.forget_object(before)
