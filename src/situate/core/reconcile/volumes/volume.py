"""One volume: its phase, what becomes of it when its claim is gone, and its protection while it is bound."""

from __future__ import annotations

from typing import Any, Final

from situate.core.model.managed_node import ManagedNode
from situate.core.model.managed_volumes import ManagedClaim, ManagedVolume
from situate.core.model.refs import Millis
from situate.core.reconcile.api_values import format_time
from situate.core.reconcile.effects import (
    DeleteObject,
    Effect,
    ObjectRef,
    PatchStatus,
    ReconcileResult,
    RecordEvent,
    UpdateObject,
)
from situate.core.reconcile.objects import KINDS, ObjectLister, ref_of, update_metadata
from situate.core.reconcile.volumes.claim import BOUND_BY_CONTROLLER
from situate.core.reconcile.volumes.provisioner import DIRECTORY, HOSTNAME, PROVISIONED_BY, hostnames, is_ours

PROTECTION: Final = "kubernetes.io/pv-protection"
NO_DELETER: Final = 'error getting deleter volume plugin for volume "{}": no volume plugin matched'
NO_RECYCLER: Final = "no volume plugin matched"


def persistent_volume(volume: ManagedVolume, objects: ObjectLister, now: Millis) -> ReconcileResult:
    """The caller confirms first that the claim which `unseen_claim` names is gone."""
    finalizers = _finalizers(volume, objects)
    if finalizers != volume.metadata.finalizers:
        return ReconcileResult((update_metadata(volume, {"finalizers": list(finalizers) or None}),))
    ref = volume.spec.claim_ref
    if ref is None or not ref.uid:
        return ReconcileResult(_phase(volume, "Available", now))
    claim = objects.get(ManagedClaim, ref.namespace, ref.name)
    if claim is None or claim.metadata.uid != ref.uid:
        return _released(volume, now)
    if not claim.spec.volume_name:
        return ReconcileResult()  # its controller completes the binding
    if claim.spec.volume_name == volume.metadata.name:
        return ReconcileResult(_phase(volume, "Bound", now))
    return _elsewhere(volume, now)


def unseen_claim(volume: ManagedVolume, objects: ObjectLister) -> ObjectRef | None:
    """The claim that a volume names, if it is not seen."""
    ref = volume.spec.claim_ref
    if ref is None or not ref.uid:
        return None
    claim = objects.get(ManagedClaim, ref.namespace, ref.name)
    if claim is not None and claim.metadata.uid == ref.uid:
        return None
    return ObjectRef(*KINDS[ManagedClaim], ref.namespace, ref.name, ref.uid)


def _finalizers(volume: ManagedVolume, objects: ObjectLister) -> tuple[str, ...]:
    meta = volume.metadata
    if meta.deletion_timestamp is None:
        return meta.finalizers if PROTECTION in meta.finalizers else (*meta.finalizers, PROTECTION)
    done = set[str]() if volume.status.phase == "Bound" else {PROTECTION}
    if DIRECTORY in meta.finalizers and not _has_node(volume, objects):
        done.add(DIRECTORY)  # the directory is gone with its node
    return tuple(one for one in meta.finalizers if one not in done)


def _has_node(volume: ManagedVolume, objects: ObjectLister) -> bool:
    names = hostnames(volume.spec)
    if any(objects.get(ManagedNode, "", name) is not None for name in names):
        return True
    return any(node.metadata.labels.get(HOSTNAME) in names for node in objects.among(ManagedNode))


def _phase(volume: ManagedVolume, phase: str, now: Millis) -> tuple[Effect, ...]:
    if volume.status.phase == phase:
        return ()
    patch = {"phase": phase, "lastPhaseTransitionTime": format_time(now), "message": None, "reason": None}
    return (PatchStatus(ref_of(volume), volume.metadata.resource_version, patch),)


def _released(volume: ManagedVolume, now: Millis) -> ReconcileResult:
    """The claim is gone."""
    if volume.status.phase not in ("Released", "Failed"):
        return ReconcileResult(_phase(volume, "Released", now))
    policy, meta = volume.spec.persistent_volume_reclaim_policy, volume.metadata
    if policy == "Recycle":
        return _failed(volume, "VolumeFailedRecycle", NO_RECYCLER, now)
    if policy != "Delete" or meta.deletion_timestamp is not None:
        return ReconcileResult()
    if is_ours(volume):
        return ReconcileResult((DeleteObject(ref_of(volume)),))
    if PROVISIONED_BY in meta.annotations:
        return ReconcileResult()  # its provisioner deletes it
    return _failed(volume, "VolumeFailedDelete", NO_DELETER.format(meta.name), now)


def _failed(volume: ManagedVolume, reason: str, why: str, now: Millis) -> ReconcileResult:
    if volume.status.phase == "Failed":
        return ReconcileResult()
    patch = {"phase": "Failed", "lastPhaseTransitionTime": format_time(now), "message": why}
    event = RecordEvent(ref_of(volume), "Warning", reason, why)
    return ReconcileResult((PatchStatus(ref_of(volume), volume.metadata.resource_version, patch), event))


def _elsewhere(volume: ManagedVolume, now: Millis) -> ReconcileResult:
    """Its claim has another volume."""
    meta = volume.metadata
    if PROVISIONED_BY in meta.annotations and volume.spec.persistent_volume_reclaim_policy == "Delete":
        return _released(volume, now)
    patch: dict[str, Any] = {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}}
    if BOUND_BY_CONTROLLER in meta.annotations:
        patch = {"spec": {"claimRef": None}, "metadata": {"annotations": {BOUND_BY_CONTROLLER: None}}}
    return ReconcileResult((UpdateObject(ref_of(volume), meta.resource_version, patch),))
