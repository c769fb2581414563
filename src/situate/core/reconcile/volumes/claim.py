"""One claim: finds its volume, or has one provisioned; completes the binding; and keeps it while pods use it.

The events have Kubernetes' words. They repeat what the claim waits for whenever it is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from situate.core.model.claims import WAIT_FOR_FIRST_CONSUMER, claim_class, volume_class
from situate.core.model.labels import EVERYTHING, parse_selector
from situate.core.model.managed_volumes import ManagedClaim, ManagedStorageClass, ManagedVolume
from situate.core.model.refs import Millis
from situate.core.model.volume_claims import STORAGE, claim_size, is_made_for, is_usable, volume_capacity
from situate.core.reconcile.effects import Effect, ObjectRef, PatchStatus, ReconcileResult, RecordEvent, UpdateObject
from situate.core.reconcile.objects import KINDS, ObjectLister, normal_event, ref_of, to_json, update_metadata
from situate.core.reconcile.pods import is_finished
from situate.core.reconcile.volumes.provisioner import FAILED, PROVISIONER, SELECTED_NODE, provision

PROTECTION: Final = "kubernetes.io/pvc-protection"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONER_OF: Final = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
NO_VOLUME: Final = "no persistent volumes available for this claim and no storage class is set"
FIRST_CONSUMER: Final = "waiting for first consumer to be created before binding"
POD_SCHEDULED: Final = "waiting for pod {} to be scheduled"
EXTERNAL: Final = (
    "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system "
    "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
    "registered."
)
NO_CLASS: Final = 'storageclass.storage.k8s.io "{}" not found'
NO_PLUGIN: Final = "no volume plugin matched name: {}"
TAKEN: Final = 'volume "{}" already bound to a different claim.'
UNSUITABLE: Final = 'Cannot bind to requested volume "{}": {}'
LOST_REFERENCE: Final = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
LOST: Final = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
MISBOUND: Final = "Two claims are bound to the same volume, this one is bound incorrectly"


def persistent_volume_claim(claim: ManagedClaim, objects: ObjectLister, now: Millis) -> ReconcileResult:
    """The caller confirms first that the volume which `unseen_volume` names is gone."""
    meta = claim.metadata
    ending = meta.deletion_timestamp is not None
    if ending and PROTECTION in meta.finalizers and not _is_used(claim, objects):
        return ReconcileResult((_with_finalizers(claim, [one for one in meta.finalizers if one != PROTECTION]),))
    if not ending and PROTECTION not in meta.finalizers:
        return ReconcileResult((_with_finalizers(claim, [*meta.finalizers, PROTECTION]),))
    if BIND_COMPLETED in meta.annotations:
        return _bound(claim, objects)
    if ending:
        return ReconcileResult()
    return _requested(claim, objects) if claim.spec.volume_name else _unbound(claim, objects)


def unseen_volume(claim: ManagedClaim, objects: ObjectLister) -> ObjectRef | None:
    """The volume of a bound claim, if it is not seen."""
    name = claim.spec.volume_name
    if not name or BIND_COMPLETED not in claim.metadata.annotations or objects.get(ManagedVolume, "", name) is not None:
        return None
    return ObjectRef(*KINDS[ManagedVolume], "", name)


def _with_finalizers(claim: ManagedClaim, finalizers: list[str]) -> UpdateObject:
    return update_metadata(claim, {"finalizers": finalizers or None})


def _is_used(claim: ManagedClaim, objects: ObjectLister) -> bool:
    """By a pod with a node, even one that has finished. A pod without one will not get any, once the claim ends."""
    meta = claim.metadata
    return any(pod.spec.node_name for pod in objects.naming(ManagedClaim, meta.namespace, meta.name))


# -- a claim that is bound ---------------------------------------------------------------------------------------------


def _bound(claim: ManagedClaim, objects: ObjectLister) -> ReconcileResult:
    name = claim.spec.volume_name
    if not name:
        return _lost(claim, "ClaimLost", LOST_REFERENCE)
    volume = objects.get(ManagedVolume, "", name)
    if volume is None:
        return _lost(claim, "ClaimLost", LOST)
    if volume.spec.claim_ref is None or (is_made_for(volume, claim) and not volume.spec.claim_ref.uid):
        return ReconcileResult((_reserve(volume, claim),))
    if not is_made_for(volume, claim):
        return _lost(claim, "ClaimMisbound", MISBOUND)
    return ReconcileResult(tuple(_complete(claim, volume)))


def _lost(claim: ManagedClaim, reason: str, message: str) -> ReconcileResult:
    if claim.status.phase == "Lost":
        return ReconcileResult()
    patch = {"phase": "Lost", "accessModes": None, "capacity": None}
    event = RecordEvent(ref_of(claim), "Warning", reason, message)
    return ReconcileResult((_status(claim, patch), event))


def _complete(claim: ManagedClaim, volume: ManagedVolume) -> list[Effect]:
    """The status of a claim whose volume names it. The capacity is that of the first binding: resizing changes it."""
    was = claim.status
    first = was.phase != "Bound" or STORAGE not in was.capacity
    wanted = replace(
        was,
        phase="Bound",
        access_modes=volume.spec.access_modes,
        capacity=volume.spec.capacity if first else was.capacity,
        current_volume_attributes_class_name=volume.spec.volume_attributes_class_name
        if first
        else was.current_volume_attributes_class_name,
    )
    return [] if wanted == was else [_status(claim, to_json(wanted))]


def _status(claim: ManagedClaim, patch: Mapping[str, Any]) -> PatchStatus:
    return PatchStatus(ref_of(claim), claim.metadata.resource_version, patch)


# -- a claim that is not ---------------------------------------------------------------------------------------------


def _requested(claim: ManagedClaim, objects: ObjectLister) -> ReconcileResult:
    """A claim that names its volume."""
    name = claim.spec.volume_name
    volume = objects.get(ManagedVolume, "", name)
    if volume is None:
        return ReconcileResult()
    if is_made_for(volume, claim):
        return _bind(claim, volume)
    if volume.spec.claim_ref is not None:
        return _warn(claim, "FailedBinding", TAKEN.format(name))
    if why := _mismatch(claim, volume):
        return _warn(claim, "VolumeMismatch", UNSUITABLE.format(name, why))
    return _bind(claim, volume)


def _mismatch(claim: ManagedClaim, volume: ManagedVolume) -> str:
    spec = claim.spec
    if volume_capacity(volume) < claim_size(claim):
        return "requested PV is too small"
    if volume_class(volume) != claim_class(claim):
        return "storageClassName does not match"
    if (volume.spec.volume_attributes_class_name or "") != (spec.volume_attributes_class_name or ""):
        return "volumeAttributesClassName does not match"
    if volume.spec.volume_mode != spec.volume_mode:
        return "incompatible volumeMode"
    return "" if _has_modes(volume, claim) else "incompatible accessMode"


def _has_modes(volume: ManagedVolume, claim: ManagedClaim) -> bool:
    return all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)


def _unbound(claim: ManagedClaim, objects: ObjectLister) -> ReconcileResult:
    named = claim_class(claim)
    made = objects.get(ManagedStorageClass, "", named) if named else None
    late = made is not None and made.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    volume = _best(claim, objects, late=late)
    if volume is not None:
        return _bind(claim, volume)
    if late and SELECTED_NODE not in claim.metadata.annotations:
        return ReconcileResult((_waits(claim, objects),))
    if not named:
        return ReconcileResult((normal_event(claim, "FailedBinding", NO_VOLUME),))
    return _warn(claim, FAILED, NO_CLASS.format(named)) if made is None else _provision(claim, made, objects)


def _best(claim: ManagedClaim, objects: ObjectLister, *, late: bool) -> ManagedVolume | None:
    """The volume that is reserved for the claim, or else the smallest free one. The scheduler chooses for a claim that
    waits for its first pod."""
    meta = claim.metadata
    for volume in objects.volumes_for(meta.namespace, meta.name):
        if is_made_for(volume, claim) and is_usable(volume, claim):
            return volume
    if late:
        return None
    selector = EVERYTHING if claim.spec.selector is None else parse_selector(claim.spec.selector)
    free = [
        volume
        for volume in objects.free_volumes(claim_class(claim))
        if volume.status.phase == "Available"
        and is_usable(volume, claim)
        and _has_modes(volume, claim)
        and selector.matches(volume.metadata.labels)
    ]
    return min(free, key=lambda volume: (volume_capacity(volume), volume.metadata.name), default=None)


def _waits(claim: ManagedClaim, objects: ObjectLister) -> RecordEvent:
    meta = claim.metadata
    pods = [one for one in objects.naming(ManagedClaim, meta.namespace, meta.name) if not is_finished(one)]
    if not pods:
        return normal_event(claim, "WaitForFirstConsumer", FIRST_CONSUMER)
    return normal_event(claim, "WaitForPodScheduled", POD_SCHEDULED.format(pods[0].metadata.name))


def _provision(claim: ManagedClaim, made: ManagedStorageClass, objects: ObjectLister) -> ReconcileResult:
    if made.provisioner == NO_PROVISIONER:
        return _warn(claim, FAILED, NO_PLUGIN.format(made.provisioner))
    annotations = claim.metadata.annotations
    if any(annotations.get(key) != made.provisioner for key in PROVISIONER_OF):
        update = update_metadata(claim, {"annotations": dict.fromkeys(PROVISIONER_OF, made.provisioner)})
        return ReconcileResult((update,))
    if made.provisioner == PROVISIONER:
        return provision(claim, made, objects)
    return ReconcileResult((normal_event(claim, "ExternalProvisioning", EXTERNAL.format(made.provisioner)),))


def _warn(claim: ManagedClaim, reason: str, message: str) -> ReconcileResult:
    return ReconcileResult((RecordEvent(ref_of(claim), "Warning", reason, message),))


# -- binding -----------------------------------------------------------------------------------------------------------


def _bind(claim: ManagedClaim, volume: ManagedVolume) -> ReconcileResult:
    """The volume names its claim first, which settles whose it is."""
    effects: list[Effect] = []
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        effects.append(_reserve(volume, claim))
    annotations = {BIND_COMPLETED: "yes"}
    patch: dict[str, Any] = {"metadata": {"annotations": annotations}}
    if not claim.spec.volume_name:
        annotations[BOUND_BY_CONTROLLER] = "yes"
        patch["spec"] = {"volumeName": volume.metadata.name}
    effects.append(UpdateObject(ref_of(claim), claim.metadata.resource_version, patch))
    return ReconcileResult(tuple(effects))


def _reserve(volume: ManagedVolume, claim: ManagedClaim) -> UpdateObject:
    ref = ref_of(claim)
    said = {
        "kind": ref.kind,
        "apiVersion": ref.api_version,
        "namespace": ref.namespace,
        "name": ref.name,
        "uid": ref.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
    patch: dict[str, Any] = {"spec": {"claimRef": said}}
    if volume.spec.claim_ref is None:
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return UpdateObject(ref_of(volume), volume.metadata.resource_version, patch)
