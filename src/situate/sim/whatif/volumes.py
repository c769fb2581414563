"""What a cluster does when a scheduler asks for volumes: binds claims to them, and makes those that are missing.

Whatever is made is reachable from where the pod is: its zone, if its node has one, else its node alone.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from situate.core.changes import Change, ObjectSeen
from situate.core.effects import BindVolumes
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.nodeselector import METADATA_NAME, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.storage import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from situate.core.model.volumes import CSISource
from situate.core.plugins.volume_binding import BIND_COMPLETED
from situate.core.state.cluster import Cluster

__all__ = ["bind_volumes"]

ZONE: Final = "topology.kubernetes.io/zone"


def bind_volumes(cluster: Cluster, ask: BindVolumes) -> list[Change]:
    """What is seen of it. A claim or a volume that is gone by then is passed over: the pod's bind will tell."""
    storage = cluster.objects.storage
    seen: list[Change] = []
    for name, volume_name in ask.static:
        claim, volume = storage.claims.get((ask.pod.namespace, name)), storage.volumes.get(volume_name)
        if claim is not None and volume is not None:
            seen += _bound(claim, volume)
    row = cluster.nodes.rows.get(ask.node)
    node = None if row is None else cluster.nodes.objects[row]
    for name in ask.provision:
        claim = storage.claims.get((ask.pod.namespace, name))
        if claim is not None and node is not None:
            driver = storage.classes.get(claim.spec.storage_class_name or "")
            seen += _bound(claim, _made(claim, node, "" if driver is None else driver.provisioner))
    return seen


def _bound(claim: PersistentVolumeClaim, volume: PersistentVolume) -> list[Change]:
    meta = claim.metadata
    ref = ObjectReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
    taken = replace(volume, spec=replace(volume.spec, claim_ref=ref), status=replace(volume.status, phase="Bound"))
    told = replace(
        claim,
        metadata=replace(meta, annotations={**meta.annotations, BIND_COMPLETED: "yes"}),
        spec=replace(claim.spec, volume_name=volume.metadata.name),
        status=replace(claim.status, phase="Bound"),
    )
    return [ObjectSeen(taken), ObjectSeen(told)]


def _made(claim: PersistentVolumeClaim, node: Node, driver: str) -> PersistentVolume:
    name = f"pvc-{claim.metadata.namespace}-{claim.metadata.name}"
    return PersistentVolume(
        metadata=ObjectMeta(name=name),
        spec=PersistentVolumeSpec(
            capacity=claim.spec.resources.requests,
            access_modes=claim.spec.access_modes,
            storage_class_name=claim.spec.storage_class_name or "",
            volume_mode=claim.spec.volume_mode,
            node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(_reach(node),))),
            csi=CSISource(driver=driver, volume_handle=name),
        ),
        status=PersistentVolumeStatus(phase="Available"),
    )


def _reach(node: Node) -> NodeSelectorTerm:
    zone = node.metadata.labels.get(ZONE)
    if zone is not None:
        wanted = NodeSelectorRequirement(key=ZONE, operator="In", values=(zone,))
        return NodeSelectorTerm(match_expressions=(wanted,))
    name = NodeSelectorRequirement(key=METADATA_NAME, operator="In", values=(node.metadata.name,))
    return NodeSelectorTerm(match_fields=(name,))
