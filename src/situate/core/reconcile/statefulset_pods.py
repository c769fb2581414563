"""The identity of StatefulSet pods: ordinal, names and claims."""

import re
from collections.abc import Iterator
from typing import Any

from situate.core.model.apps import ClaimRetention, ControllerRevision, ManagedStatefulSet
from situate.core.model.managed import ManagedPod
from situate.core.model.managed_volumes import ManagedClaim
from situate.core.model.stored import Owner
from situate.core.reconcile.effects import CreateObject, Effect, ObjectRef, UpdateObject
from situate.core.reconcile.history import HASH_LABEL, template_in
from situate.core.reconcile.objects import ObjectLister, controller_ref, normal_event, to_json, update_metadata
from situate.core.reconcile.pods import new_pod

POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
_MEMBER = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})", re.ASCII)


def member_ordinal(one: ManagedStatefulSet, name: str) -> int | None:
    """The ordinal in a pod's name; None if it is not a pod of this set."""
    shape = _MEMBER.fullmatch(name)
    return int(shape[2]) if shape is not None and shape[1] == one.metadata.name else None


def _claim_names(one: ManagedStatefulSet, ordinal: int) -> Iterator[tuple[dict[str, Any], str]]:
    for said in one.spec.volume_claim_templates:
        yield dict(said), f"{said['metadata']['name']}-{one.metadata.name}-{ordinal}"


def stateful_pod(one: ManagedStatefulSet, ordinal: int, revision: ControllerRevision) -> CreateObject:
    """The pod of an ordinal, with the template of a revision."""
    name, namespace = f"{one.metadata.name}-{ordinal}", one.metadata.namespace
    template = template_in(revision)
    volumes = {said["name"]: said for said in template.spec.get("volumes") or ()}
    for said, claim in _claim_names(one, ordinal):
        volume = said["metadata"]["name"]
        volumes[volume] = {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
    spec: dict[str, Any] = {"hostname": name}
    if one.spec.service_name:
        spec["subdomain"] = one.spec.service_name
    if volumes:
        spec["volumes"] = list(volumes.values())
    labels = {POD_NAME: name, POD_INDEX: str(ordinal), HASH_LABEL: revision.metadata.name}
    return new_pod(namespace, name, template, controller_ref(one), labels=labels, spec=spec)


def identity_repair(one: ManagedStatefulSet, ordinal: int, pod: ManagedPod) -> UpdateObject | None:
    """Restore the identity labels of a pod."""
    wanted = {POD_NAME: pod.metadata.name, POD_INDEX: str(ordinal)}
    missing = {key: value for key, value in wanted.items() if pod.metadata.labels.get(key) != value}
    if not missing:
        return None
    return update_metadata(pod, {"labels": missing})


# Claims


def claims_awaited(one: ManagedStatefulSet, ordinal: int, objects: ObjectLister) -> bool:
    """Whether a claim of this ordinal is being deleted: a new pod would lose it."""
    for _, name in _claim_names(one, ordinal):
        claim = objects.get(ManagedClaim, one.metadata.namespace, name)
        if claim is not None and (claim.metadata.deletion_timestamp is not None or _of_a_pod(claim, "")):
            return True
    return False


def _of_a_pod(claim: ManagedClaim, uid: str) -> bool:
    """Whether another pod owns the claim."""
    return any(owner.kind == "Pod" and owner.uid != uid for owner in claim.metadata.owner_references)


def missing_claims(one: ManagedStatefulSet, ordinal: int, objects: ObjectLister) -> list[Effect]:
    effects: list[Effect] = []
    namespace, pod = one.metadata.namespace, f"{one.metadata.name}-{ordinal}"
    for said, name in _claim_names(one, ordinal):
        if objects.get(ManagedClaim, namespace, name) is not None:
            continue
        selector = one.spec.selector
        labels = {**(said["metadata"].get("labels") or {}), **({} if selector is None else selector.match_labels)}
        meta: dict[str, Any] = {**said["metadata"], "name": name, "namespace": namespace, "labels": labels}
        if _retention(one).when_deleted == "Delete":
            meta["ownerReferences"] = [to_json(controller_ref(one))]
        body = {**said, "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
        body.pop("status", None)
        effects.append(CreateObject(ObjectRef("v1", "PersistentVolumeClaim", namespace, name), body))
        text = f"create Claim {name} Pod {pod} in StatefulSet {one.metadata.name} success"
        effects.append(normal_event(one, "SuccessfulCreate", text))
    return effects


def _retention(one: ManagedStatefulSet) -> ClaimRetention:
    return one.spec.persistent_volume_claim_retention_policy or ClaimRetention()


def retention_repairs(
    one: ManagedStatefulSet, ordinal: int, pod: ManagedPod, objects: ObjectLister, *, condemned: bool
) -> list[Effect]:
    """The owner of the claims decides when they are deleted: the set, the pod that is scaled down, or none."""
    rule, uids = _retention(one), (one.metadata.uid, pod.metadata.uid)
    wanted: Owner | None = None
    if condemned and rule.when_scaled == "Delete":
        wanted = Owner(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid)
    elif rule.when_deleted == "Delete":
        wanted = controller_ref(one)
    effects: list[Effect] = []
    for _, name in _claim_names(one, ordinal):
        claim = objects.get(ManagedClaim, one.metadata.namespace, name)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            continue
        held = claim.metadata.owner_references
        ours = [owner.uid for owner in held if owner.uid in uids]
        if ours == ([] if wanted is None else [wanted.uid]):
            continue
        kept = [to_json(owner) for owner in held if owner.uid not in uids]
        owners = kept if wanted is None else [*kept, to_json(wanted)]
        effects.append(update_metadata(claim, {"ownerReferences": owners or None}))
    return effects
