"""The claims a pod names, and what the volume plugins all ask of claims and volumes.

Facts about single objects only: which node they allow is for the plugins to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.model.meta import controller_of
from situate.core.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from situate.core.state.classes import PodClass
from situate.core.state.objects import StorageObjects

BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named the class before there was a field; it still goes first."""
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A volume of a pod that stands for a claim. `generated` is one that is made for the pod, named after it."""

    name: str
    generated: bool


def claim_uses(pod: PodClass) -> list[ClaimUse]:
    """The claims a pod needs, in the order of its volumes; one that is named twice is there twice."""
    uses = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            uses.append(ClaimUse(volume.persistent_volume_claim.claim_name, generated=False))
        elif volume.ephemeral is not None:
            uses.append(ClaimUse(generated_name(pod, volume.name), generated=True))
    return uses


def named_claims(pod: PodClass) -> list[str]:
    """The claims a pod names itself: those of its ephemeral volumes are left out."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def generated_name(pod: PodClass, volume_name: str) -> str:
    return f"{pod.pod.metadata.name}-{volume_name}"


def ownership_problem(pod: PodClass, claim: PersistentVolumeClaim) -> str:
    """What is wrong with a claim that is to be an ephemeral volume's: it must be the pod's own. Empty if nothing."""
    owner = controller_of(claim.metadata)
    if owner is not None and owner.uid == pod.pod.metadata.uid:
        return ""
    mine, its = pod.pod.metadata, claim.metadata
    return f"PVC {its.namespace}/{its.name} was not created for pod {mine.namespace}/{mine.name} (pod is not owner)"


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The name of the class a claim asks for; empty if it asks for none."""
    return claim.metadata.annotations.get(BETA_STORAGE_CLASS, claim.spec.storage_class_name or "")


def volume_class(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(BETA_STORAGE_CLASS, volume.spec.storage_class_name)


def binds_late(claim: PersistentVolumeClaim, storage: StorageObjects) -> bool:
    """Whether the claim gets its volume only when a pod that uses it is placed."""
    found = class_of(claim, storage)
    return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def class_of(claim: PersistentVolumeClaim, storage: StorageObjects) -> StorageClass | None:
    name = claim_class(claim)
    return storage.classes.get(name) if name else None


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'
