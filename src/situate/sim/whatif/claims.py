"""Claims for devices in a what-if world: made from templates when pods come, written at once, given back when they go.

Every device is ready at once. The book has the claims as the world knows them: several may change at one moment, before
the engine sees any of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from situate.core.changes import Change, ObjectGone, ObjectSeen
from situate.core.devices.extended import CLAIM_ANNOTATION
from situate.core.devices.template_claims import NO_TEMPLATES, Templates, lacks_claims, with_template_claims
from situate.core.effects import BindClaims, ReleaseClaim
from situate.core.model.devices import (
    DeviceClaim,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from situate.core.model.meta import ObjectMeta, OwnerReference, controller_of
from situate.core.model.named import NamedObject
from situate.core.model.pod import Pod
from situate.core.state.device_objects import cleared


class ClaimBook:
    def __init__(self, named: Iterable[NamedObject], templates: Templates = NO_TEMPLATES) -> None:
        self._templates = templates
        self._claims = {
            (one.metadata.namespace, one.metadata.name): one for one in named if isinstance(one, ResourceClaim)
        }
        self._own: dict[str, list[tuple[str, str]]] = {}
        """Uid of a pod -> the claims that were made for it."""
        for key, claim in self._claims.items():
            self._note_owner(key, claim)

    def _note_owner(self, key: tuple[str, str], claim: ResourceClaim) -> None:
        owner = controller_of(claim.metadata)
        if owner is not None and owner.kind == "Pod":
            self._own.setdefault(owner.uid, []).append(key)

    def _put(self, claim: ResourceClaim) -> Change:
        key = (claim.metadata.namespace, claim.metadata.name)
        if key not in self._claims:
            self._note_owner(key, claim)
        self._claims[key] = claim
        return ObjectSeen(claim)

    def arrived(self, pod: Pod, changes: list[Change]) -> Pod:
        """A pod that comes, with the claims that its templates ask for."""
        if not lacks_claims(pod):
            return pod
        made, claims = with_template_claims(pod, self._templates, self._claims)
        changes += [self._put(claim) for claim in claims]
        return made

    def bound(self, ask: BindClaims) -> list[Change]:
        """The claims of a pod with its devices, reserved for it."""
        ref = ask.pod
        user = ResourceClaimConsumerReference(resource="pods", name=ref.name, uid=ref.uid)
        changes: list[Change] = []
        for one in ask.claims:
            claim = self._claims.get((ref.namespace, one.name))
            if claim is None:
                continue
            status = claim.status
            users = status.reserved_for if user in status.reserved_for else (*status.reserved_for, user)
            allocation = one.allocation or status.allocation
            changes.append(self._put(replace(claim, status=replace(status, allocation=allocation, reserved_for=users))))
        if ask.create is not None:
            owner = OwnerReference(api_version="v1", kind="Pod", name=ref.name, uid=ref.uid, controller=True)
            metadata = ObjectMeta(
                name=f"{ref.name}-extended-resources",
                namespace=ref.namespace,
                uid=f"{ref.uid}-extended-resources",
                annotations={CLAIM_ANNOTATION: "true"},
                owner_references=(owner,),
            )
            spec = ResourceClaimSpec(devices=DeviceClaim(requests=ask.create.requests))
            status = ResourceClaimStatus(allocation=ask.create.allocation, reserved_for=(user,))
            changes.append(self._put(ResourceClaim(metadata=metadata, spec=spec, status=status)))
        return changes

    def released(self, ask: ReleaseClaim) -> list[Change]:
        claim = self._claims.get((ask.pod.namespace, ask.claim))
        if claim is None or claim.metadata.uid != ask.uid:
            return []
        return self._delete(claim) if ask.delete else [self._put(cleared(claim))]

    def gone(self, pod: Pod) -> list[Change]:
        """A pod is over: its claims give their devices back, unless others use them; its own are deleted."""
        meta = pod.metadata
        changes: list[Change] = []
        for entry in pod.spec.resource_claims:
            claim = self._claims.get((meta.namespace, entry.resource_claim_name or ""))
            if claim is None:
                continue
            users = claim.status.reserved_for
            others = tuple(user for user in users if user.uid != meta.uid)
            if len(others) < len(users):
                left = replace(claim, status=replace(claim.status, reserved_for=others)) if others else cleared(claim)
                changes.append(self._put(left))
        for key in self._own.pop(meta.uid, ()):
            if key in self._claims:
                changes += self._delete(self._claims[key])
        return changes

    def _delete(self, claim: ResourceClaim) -> list[Change]:
        """As controllers do it: the devices first, then the claim."""
        del self._claims[claim.metadata.namespace, claim.metadata.name]
        empty = cleared(claim)
        return [*([ObjectSeen(empty)] if claim.status.allocation is not None else []), ObjectGone(empty)]
