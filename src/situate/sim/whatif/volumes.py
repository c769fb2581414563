"""Binds and provisions volumes when a scheduler asks for them.

A provisioned volume is reachable from the pod's zone, or from its node if that has no zone.
"""

from __future__ import annotations

from typing import Final

from situate.core.changes import Change, ObjectSeen
from situate.core.effects import BindVolumes
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.nodeselector import METADATA_NAME, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from situate.core.model.volumes import CSISource
from situate.core.state.cluster import Cluster
from situate.sim.storage import bound

ZONE: Final = "topology.kubernetes.io/zone"


def bind_volumes(cluster: Cluster, ask: BindVolumes) -> list[Change]:
    """The resulting changes. Missing claims and volumes are skipped."""
    storage = cluster.objects.storage
    seen: list[Change] = []
    for name, volume_name in ask.static:
        claim, volume = storage.claims.get((ask.pod.namespace, name)), storage.volumes.get(volume_name)
        if claim is not None and volume is not None:
            seen += [ObjectSeen(one) for one in bound(claim, volume)]
    row = cluster.nodes.rows.get(ask.node)
    node = None if row is None else cluster.nodes.objects[row]
    for name in ask.provision:
        claim = storage.claims.get((ask.pod.namespace, name))
        if claim is not None and node is not None:
            driver = storage.classes.get(claim.spec.storage_class_name or "")
            made = _made(claim, node, "" if driver is None else driver.provisioner)
            seen += [ObjectSeen(one) for one in bound(claim, made)]
    return seen


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
