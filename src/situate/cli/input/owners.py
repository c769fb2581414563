"""Which workload a pod belongs to: by its owner reference, its template hash and its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.gang.naming import GangSource, gang_of
from situate.core.model.meta import controller_of
from situate.core.model.pod import Pod
from situate.core.reconcile.naming import TEMPLATE_HASH

POD: Final = "Pod"
POD_GROUP: Final = "PodGroup"


@dataclass(frozen=True, slots=True, order=True)
class OwningWorkload:
    """A workload by its kind, namespace and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


def owner_of(pod: Pod) -> OwningWorkload:
    """The Deployment behind a ReplicaSet, else the controller, else the pod itself."""
    meta, owner = pod.metadata, controller_of(pod.metadata)
    if owner is None:
        return OwningWorkload(POD, meta.namespace, meta.name)
    digest = meta.labels.get(TEMPLATE_HASH)
    if owner.kind == "ReplicaSet" and digest and owner.name.endswith(f"-{digest}"):
        return OwningWorkload("Deployment", meta.namespace, owner.name.removesuffix(f"-{digest}"))
    return OwningWorkload(owner.kind, meta.namespace, owner.name)


def group_of(pod: Pod) -> OwningWorkload | None:
    """The PodGroup of a member of a gang, of whatever kind."""
    gang = gang_of(pod)
    if gang is None or gang.source is GangSource.LABELS:
        return None
    return OwningWorkload(POD_GROUP, gang.namespace, gang.name)


def belongs_to(pod: Pod, whose: OwningWorkload) -> bool:
    if whose in (owner_of(pod), group_of(pod)):
        return True
    owner = controller_of(pod.metadata)
    return owner is not None and OwningWorkload(owner.kind, pod.metadata.namespace, owner.name) == whose
