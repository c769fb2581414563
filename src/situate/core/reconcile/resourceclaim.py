"""Claims for devices: made for pods from templates, released when their pods are over.

Two controllers share this file. `pod_claims` makes the claims of one pod, writes their names to the pod's status, and
reserves allocated claims for a pod that is bound without a scheduler's help. `resource_claim` looks at one claim: it
drops the reservations of pods that are over, takes back the devices when nobody uses them any more, and deletes a claim
that was made for a pod which is over. That includes the claim that a scheduler makes for a pod's extended resources.

An allocated claim keeps its finalizer until it is being deleted and nobody uses it: a scheduler may reserve it for
another pod at any moment. A claim that was given back keeps it, too: a scheduler may be about to allocate it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from situate.core.model.managed import GeneratedClaim, ManagedPod
from situate.core.model.managed_devices import ClaimConsumer, ManagedResourceClaim, ManagedResourceClaimTemplate
from situate.core.model.pod import PodResourceClaim
from situate.core.model.refs import Millis
from situate.core.model.stored import Owner, controller_of
from situate.core.reconcile.effects import (
    CreateObject,
    DeleteObject,
    Effect,
    ObjectRef,
    PatchStatus,
    ReconcileError,
    ReconcileResult,
)
from situate.core.reconcile.naming import fresh_names
from situate.core.reconcile.objects import KINDS, ObjectLister, ref_of, to_json, update_metadata
from situate.core.reconcile.pods import is_finished

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a generated claim: the name of the entry in the pod's `resourceClaims`."""
MAX_RESERVED: Final = 256
"""The limit of `reservedFor`."""
FAILED_CREATION: Final = "FailedResourceClaimCreation"
_BASE_MAX: Final = 57


# -- the claims of a pod -----------------------------------------------------------------------------------------------


def pod_claims(pod: ManagedPod, objects: ObjectLister) -> ReconcileResult:
    """Raises ReconcileError if a template does not exist."""
    if not pod.spec.resource_claims or pod.metadata.deletion_timestamp is not None or is_finished(pod):
        return ReconcileResult()
    made = {one.name: one for one in pod.status.resource_claim_statuses}
    creates: list[CreateObject] = []
    missing = ""
    for entry in pod.spec.resource_claims:
        if not _needs_claim(pod, entry, made.get(entry.name), objects):
            continue
        found = _made_before(pod, entry, objects)
        if found is None:
            template = objects.get(
                ManagedResourceClaimTemplate, pod.metadata.namespace, entry.resource_claim_template_name or ""
            )
            if template is None:
                missing = missing or _no_template(entry)
                continue
            create = _new_claim(pod, entry, template, objects, [one.ref.name for one in creates])
            creates.append(create)
            found = create.ref.name
        made[entry.name] = GeneratedClaim(name=entry.name, resource_claim_name=found)
    effects: list[Effect] = [*creates]
    statuses = tuple(made.values())
    if statuses != pod.status.resource_claim_statuses:
        patch = {"resourceClaimStatuses": [to_json(one) for one in statuses]}
        effects.append(PatchStatus(ref_of(pod), pod.metadata.resource_version, patch))
    if not effects and missing:
        raise ReconcileError(FAILED_CREATION, missing)
    if not effects and pod.spec.node_name:
        effects += _reservations(pod, objects)
    return ReconcileResult(tuple(effects))


def _needs_claim(pod: ManagedPod, entry: PodResourceClaim, made: GeneratedClaim | None, objects: ObjectLister) -> bool:
    if entry.resource_claim_template_name is None:
        return False  # it names a claim, which a user creates
    if made is None:
        return True
    if made.resource_claim_name is None:
        return False
    claim = objects.get(ManagedResourceClaim, pod.metadata.namespace, made.resource_claim_name)
    return claim is None or not is_owner(pod, claim)


def _made_before(pod: ManagedPod, entry: PodResourceClaim, objects: ObjectLister) -> str | None:
    """The claim that was created for this entry, if its name was not written to the pod."""
    for claim in objects.controlled(ManagedResourceClaim, pod.metadata.namespace, pod.metadata.uid):
        if claim.metadata.annotations.get(POD_CLAIM) == entry.name:
            return claim.metadata.name
    return None


def is_owner(pod: ManagedPod, claim: ManagedResourceClaim) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid


def _no_template(entry: PodResourceClaim) -> str:
    name = entry.resource_claim_template_name
    return (
        f'PodResourceClaim {entry.name}: resource claim template "{name}":'
        f' resourceclaimtemplate.resource.k8s.io "{name}" not found'
    )


def _new_claim(
    pod: ManagedPod,
    entry: PodResourceClaim,
    template: ManagedResourceClaimTemplate,
    objects: ObjectLister,
    chosen: Sequence[str],
) -> CreateObject:
    space = pod.metadata.namespace

    def taken(name: str) -> bool:
        return name in chosen or objects.get(ManagedResourceClaim, space, name) is not None

    base = generated_base(pod.metadata.name, entry.name)
    name = next(fresh_names(base, pod.metadata, taken))
    owner = Owner(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    meta: dict[str, Any] = {
        "name": name,
        "generateName": base,
        "namespace": space,
        "annotations": {**template.spec.metadata.annotations, POD_CLAIM: entry.name},
        "ownerReferences": [to_json(owner)],
    }
    if template.spec.metadata.labels:
        meta["labels"] = dict(template.spec.metadata.labels)
    api_version, kind = KINDS[ManagedResourceClaim]
    body = {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": template.spec.spec}
    return CreateObject(ObjectRef(api_version, kind, space, name), body)


def generated_base(pod: str, entry: str) -> str:
    """The beginning of a generated name. Of long names, both parts lose in proportion to their length."""
    base = f"{pod}-{entry}-"
    if len(base) <= _BASE_MAX:
        return base
    return f"{pod[: len(pod) * _BASE_MAX // len(base)]}-{entry[: len(entry) * _BASE_MAX // len(base)]}"


def _reservations(pod: ManagedPod, objects: ObjectLister) -> Iterator[Effect]:
    """Of a bound pod whose claims are allocated and not reserved for it: it was bound without a scheduler."""
    for name in claim_names(pod):
        claim = objects.get(ManagedResourceClaim, pod.metadata.namespace, name)
        if claim is None or claim.status.allocation is None:
            continue
        holders = claim.status.reserved_for
        if len(holders) >= MAX_RESERVED or any(one.uid == pod.metadata.uid for one in holders):
            continue
        own = ClaimConsumer(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
        patch = {"reservedFor": [to_json(one) for one in (*holders, own)]}
        yield PatchStatus(ref_of(claim), claim.metadata.resource_version, patch)


def claim_names(pod: ManagedPod) -> list[str]:
    """The claims that the pod's `resourceClaims` stand for, as far as they are known."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    names = (one.resource_claim_name or made.get(one.name) for one in pod.spec.resource_claims)
    return list(dict.fromkeys(name for name in names if name))


# -- one claim ---------------------------------------------------------------------------------------------------------


def resource_claim(claim: ManagedResourceClaim, objects: ObjectLister, _now: Millis) -> ReconcileResult:
    """The caller confirms first that the pods which `unseen_pods` names are gone."""
    meta, holders = claim.metadata, claim.status.reserved_for
    kept = [one for one in holders if not _is_over(one, meta.namespace, objects)]
    ending = meta.deletion_timestamp is not None
    effects: list[Effect] = []
    if not kept and not ending and _owner_is_over(claim, objects):
        effects.append(DeleteObject(ref_of(claim)))
    elif not kept and ending and FINALIZER in meta.finalizers:
        finalizers = [name for name in meta.finalizers if name != FINALIZER]
        effects.append(update_metadata(claim, {"finalizers": finalizers or None}))
    elif len(kept) < len(holders):
        patch: dict[str, Any] = {"reservedFor": [to_json(one) for one in kept] or None}
        if not kept:
            patch |= {"allocation": None, "devices": None}
        effects.append(PatchStatus(ref_of(claim), meta.resource_version, patch))
    return ReconcileResult(tuple(effects))


def unseen_pods(claim: ManagedResourceClaim, objects: ObjectLister) -> list[ObjectRef]:
    """The pods that `resource_claim` takes for gone because it does not see them."""
    space = claim.metadata.namespace
    named = [(one.name, one.uid) for one in claim.status.reserved_for if is_pod(one)]
    owner = _owning_pod(claim)
    if owner is not None:
        named.append((owner.name, owner.uid))
    return [ObjectRef("v1", "Pod", space, *pod) for pod in dict.fromkeys(named) if _find(*pod, space, objects) is None]


def is_pod(consumer: ClaimConsumer) -> bool:
    return not consumer.api_group and consumer.resource == "pods"


def _find(name: str, uid: str, namespace: str, objects: ObjectLister) -> ManagedPod | None:
    pod = objects.get(ManagedPod, namespace, name)
    return pod if pod is not None and pod.metadata.uid == uid else None


def _is_over(consumer: ClaimConsumer, namespace: str, objects: ObjectLister) -> bool:
    """Consumers of other kinds keep the claim."""
    if not is_pod(consumer):
        return False
    pod = _find(consumer.name, consumer.uid, namespace, objects)
    return pod is None or is_done(pod)


def is_done(pod: ManagedPod) -> bool:
    """None of its containers runs, and none ever will."""
    return is_finished(pod) or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def _owning_pod(claim: ManagedResourceClaim) -> Owner | None:
    owner = controller_of(claim.metadata)
    return owner if owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod") else None


def _owner_is_over(claim: ManagedResourceClaim, objects: ObjectLister) -> bool:
    """Whether the pod that the claim was made for is over, or replaced. The garbage collector handles one that is
    gone."""
    owner = _owning_pod(claim)
    pod = None if owner is None else objects.get(ManagedPod, claim.metadata.namespace, owner.name)
    return owner is not None and pod is not None and (pod.metadata.uid != owner.uid or is_done(pod))
