"""The volumes that a pod's claims get when it is placed on a node."""

from __future__ import annotations

from msgspec.structs import replace

from situate.core.model.named import NamedObject
from situate.core.model.pod import Pod
from situate.core.model.storage import ObjectReference, PersistentVolumeClaim
from situate.core.plugins import volume_binding
from situate.core.plugins.support.volume_matching import SELECTED_NODE
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


def changed_volumes(cluster: Cluster, pod: Pod, row: int) -> list[NamedObject]:
    """The claims and volumes that change when the pod is placed at this row. Provisioned volumes are only announced."""
    if not any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes):
        return []
    kind = cluster.class_of(pod)
    volumes = volume_binding.decide(kind, View(cluster), row)
    if volumes is None:
        return []  # the profile does not run VolumeBinding
    storage = cluster.objects.storage
    changed: list[NamedObject] = []
    for claim_name, volume_name in volumes.bindings:
        claim, volume = storage.claims[kind.namespace, claim_name], storage.volumes[volume_name]
        meta = claim.metadata
        ref = ObjectReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
        status = replace(volume.status, phase="Bound")
        changed.append(replace(volume, spec=replace(volume.spec, claim_ref=ref), status=status))
        bound = replace(claim, spec=replace(claim.spec, volume_name=volume_name))
        changed.append(_annotated(bound, volume_binding.BIND_COMPLETED, "yes"))
    for claim_name in volumes.provisions:
        claim = storage.claims[kind.namespace, claim_name]
        changed.append(_annotated(claim, SELECTED_NODE, cluster.nodes.names[row]))
    return changed


def _annotated(claim: PersistentVolumeClaim, key: str, value: str) -> PersistentVolumeClaim:
    annotations = {**claim.metadata.annotations, key: value}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))
