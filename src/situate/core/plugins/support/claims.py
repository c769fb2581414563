"""The claims of a pod, for the volume plugins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from situate.core.model.base import Model
from situate.core.model.claims import WAIT_FOR_FIRST_CONSUMER, claim_class, generated_name
from situate.core.model.storage import PersistentVolumeClaim
from situate.core.state.classes import PodClass
from situate.core.state.objects import StorageObjects


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A pod's volume that refers to a claim. `generated`: an ephemeral volume's claim, named after the pod."""

    name: str
    generated: bool


def claim_uses(pod: PodClass) -> list[ClaimUse]:
    """The claims a pod needs, in the order of its volumes, with repetitions."""
    uses = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            uses.append(ClaimUse(volume.persistent_volume_claim.claim_name, generated=False))
        elif volume.ephemeral is not None:
            uses.append(ClaimUse(generated_name(pod.pod.metadata, volume.name), generated=True))
    return uses


def named_claims(pod: PodClass) -> list[str]:
    """The claims a pod names itself, without those of ephemeral volumes."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def names_claim(pod: PodClass, item: Model | None) -> bool:
    """Whether an object is a claim that the pod names itself."""
    return _is_of(item, pod) and item.metadata.name in named_claims(pod)


def uses_claim(pod: PodClass, item: Model | None) -> bool:
    """Whether an object is a claim that the pod needs, named by it or made for it."""
    return _is_of(item, pod) and any(use.name == item.metadata.name for use in claim_uses(pod))


def _is_of(item: Model | None, pod: PodClass) -> TypeGuard[PersistentVolumeClaim]:
    return isinstance(item, PersistentVolumeClaim) and item.metadata.namespace == pod.namespace


def binds_late(claim: PersistentVolumeClaim, storage: StorageObjects) -> bool:
    """Whether the claim waits for its first consumer."""
    found = storage.classes.get(claim_class(claim))
    return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
