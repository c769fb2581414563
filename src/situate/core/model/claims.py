"""Functions of one claim or volume: its class, its owner, and Kubernetes' texts for a missing one."""

from __future__ import annotations

from typing import Final

from situate.core.model.meta import ObjectMeta, controller_of
from situate.core.model.storage import PersistentVolumeClaim
from situate.core.model.volume_claims import AnyClaim, AnyMetadata, AnyVolume

BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named the class before there was a field; it still takes precedence."""
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"


def claim_class(claim: AnyClaim) -> str:
    """The storage class that a claim requests; empty if none."""
    return claim.metadata.annotations.get(BETA_STORAGE_CLASS, claim.spec.storage_class_name or "")


def volume_class(volume: AnyVolume) -> str:
    return volume.metadata.annotations.get(BETA_STORAGE_CLASS, volume.spec.storage_class_name)


def generated_name(pod: AnyMetadata, volume_name: str) -> str:
    """The name of the claim of a pod's ephemeral volume."""
    return f"{pod.name}-{volume_name}"


def ownership_problem(pod: ObjectMeta, claim: PersistentVolumeClaim) -> str:
    """The problem if an ephemeral volume's claim is not owned by the pod; else empty."""
    owner, its = controller_of(claim.metadata), claim.metadata
    if owner is not None and owner.uid == pod.uid:
        return ""
    return f"PVC {its.namespace}/{its.name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def is_not_found(text: str) -> bool:
    """Whether the text reports a missing object, not an invalid one."""
    return text.endswith(" not found")


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'
