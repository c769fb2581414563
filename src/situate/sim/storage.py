"""Volumes and claims of a world: drawn from a seed, bound on request, released when unused."""

from __future__ import annotations

from random import Random
from typing import Final

from msgspec.structs import replace

from situate.core.effects import BindVolumes
from situate.core.model.meta import ObjectMeta
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import Pod, ResourceRequirements
from situate.core.model.storage import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from situate.core.model.volumes import CSISource, PersistentVolumeClaimSource, Volume
from situate.core.plugins.volume_binding import BIND_COMPLETED
from situate.sim.store import ObjectStore

STATIC: Final = "static"
"""The class of pre-provisioned volumes."""
DYNAMIC: Final = "dynamic"
"""The class of dynamically provisioned volumes."""
NAMESPACE: Final = "default"
MODES: Final = ("ReadWriteOnce",)
ZONE: Final = "topology.kubernetes.io/zone"
TAKEN: Final = 'volume "{}" already bound to a different claim.'


def storage_classes() -> tuple[StorageClass, StorageClass]:
    """Both bind on first use, because the volume depends on the node."""

    def late(name: str, provisioner: str) -> StorageClass:
        metadata = ObjectMeta(name=name)
        return StorageClass(metadata=metadata, provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer")

    return late(STATIC, "kubernetes.io/no-provisioner"), late(DYNAMIC, "disk.example.com")


def make_volume(name: str, zone: str, class_name: str) -> PersistentVolume:
    """A volume that is reachable from one zone."""
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=ZONE, operator="In", values=(zone,)),))
    return PersistentVolume(
        metadata=ObjectMeta(name=name),
        spec=PersistentVolumeSpec(
            capacity={"storage": "10Gi"},
            access_modes=MODES,
            storage_class_name=class_name,
            node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,))),
            csi=CSISource(driver="disk.example.com", volume_handle=name),
        ),
        status=PersistentVolumeStatus(phase="Available"),
    )


def draw_claim(rng: Random, name: str, uid: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE, uid=uid),
        spec=PersistentVolumeClaimSpec(
            access_modes=MODES,
            resources=ResourceRequirements(requests={"storage": "1Gi"}),
            storage_class_name=rng.choice((STATIC, STATIC, DYNAMIC)),
        ),
    )


def with_claim(pod: Pod, claim: str) -> Pod:
    source = PersistentVolumeClaimSource(claim_name=claim)
    return replace(pod, spec=replace(pod.spec, volumes=(Volume(name="data", persistent_volume_claim=source),)))


def bind_volumes(store: ObjectStore, ask: BindVolumes) -> str:
    """Bind and provision a pod's volumes; return the problem, or "". Work before the problem stays done."""
    for claim_name, volume_name in ask.static:
        volume = store.others.get(("PersistentVolume", volume_name))
        if not isinstance(volume, PersistentVolume):
            return f'persistentvolumes "{volume_name}" not found'
        if volume.spec.claim_ref is not None and volume.spec.claim_ref.name != claim_name:
            return TAKEN.format(volume_name)
        if problem := _bind(store, claim_name, volume):
            return problem
    for claim_name in ask.provision:
        node = store.nodes.get(ask.node)
        zone = "" if node is None else node.metadata.labels.get(ZONE, "")
        if problem := _bind(store, claim_name, make_volume(f"pvc-{claim_name}", zone or "a", DYNAMIC)):
            return problem
    return ""


def _bind(store: ObjectStore, claim_name: str, volume: PersistentVolume) -> str:
    claim = store.others.get(("PersistentVolumeClaim", f"{NAMESPACE}/{claim_name}"))
    if not isinstance(claim, PersistentVolumeClaim):
        return f'persistentvolumeclaims "{claim_name}" not found'
    if claim.spec.volume_name and claim.spec.volume_name != volume.metadata.name:
        return f'claim "{claim_name}" is bound to {claim.spec.volume_name}'
    for item in bound(claim, volume):
        store.put_other(item)
    return ""


def bound(claim: PersistentVolumeClaim, volume: PersistentVolume) -> tuple[PersistentVolume, PersistentVolumeClaim]:
    """The two after they are bound to each other."""
    meta = claim.metadata
    ref = ObjectReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
    return (
        replace(volume, spec=replace(volume.spec, claim_ref=ref), status=replace(volume.status, phase="Bound")),
        replace(
            claim,
            metadata=replace(meta, annotations={**meta.annotations, BIND_COMPLETED: "yes"}),
            spec=replace(claim.spec, volume_name=volume.metadata.name),
            status=replace(claim.status, phase="Bound"),
        ),
    )


def give_back(store: ObjectStore) -> None:
    """Delete unused claims; their volumes become available again."""
    named = {
        volume.persistent_volume_claim.claim_name
        for pod in store.pods.values()
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    for item in list(store.others.values()):
        if isinstance(item, PersistentVolumeClaim) and item.metadata.name not in named:
            store.drop_other(item)
            volume = store.others.get(("PersistentVolume", item.spec.volume_name))
            if isinstance(volume, PersistentVolume):
                _wipe(store, volume)


def _wipe(store: ObjectStore, volume: PersistentVolume) -> None:
    if volume.spec.storage_class_name == DYNAMIC:
        store.drop_other(volume)
    else:
        free = replace(volume.spec, claim_ref=None)
        store.put_other(replace(volume, spec=free, status=replace(volume.status, phase="Available")))
