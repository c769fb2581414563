"""Changes told as wake-ups: what a parked pod may have waited for."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from situate.core.contract import Wake
from situate.core.model.base import Model
from situate.core.model.node import Node
from situate.core.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from situate.core.queue.waking import WakeEvent
from situate.core.state.classes import PodClass

ADDED: Final = MappingProxyType(
    {
        PersistentVolumeClaim: Wake.CLAIM_ADDED,
        PersistentVolume: Wake.VOLUME_ADDED,
        StorageClass: Wake.STORAGE_CLASS_ADDED,
        CSINode: Wake.CSI_NODE_ADDED,
        CSIStorageCapacity: Wake.CSI_CAPACITY_ADDED,
    }
)
UPDATED: Final = MappingProxyType(
    {
        PersistentVolumeClaim: Wake.CLAIM_UPDATED,
        PersistentVolume: Wake.VOLUME_UPDATED,
        StorageClass: Wake.STORAGE_CLASS_UPDATED,
        CSINode: Wake.CSI_NODE_UPDATED,
        CSIDriver: Wake.CSI_DRIVER_UPDATED,
        CSIStorageCapacity: Wake.CSI_CAPACITY_UPDATED,
    }
)


def node_events(before: Node | None, after: Node) -> Iterator[WakeEvent]:
    """A node that came is one event; one that changed, an event for each way in which it did."""
    if before is None:
        yield WakeEvent(Wake.NODE_ADDED, node=after)
        return
    if before.status.allocatable != after.status.allocatable:
        yield WakeEvent(Wake.NODE_ALLOCATABLE, after, before)
    if before.metadata.labels != after.metadata.labels:
        yield WakeEvent(Wake.NODE_LABEL, after, before)
    if before.spec.taints != after.spec.taints or before.spec.unschedulable != after.spec.unschedulable:
        yield WakeEvent(Wake.NODE_TAINT, after, before)
    if before.status.declared_features != after.status.declared_features:
        yield WakeEvent(Wake.NODE_DECLARED_FEATURE, after, before)


def bound_pod_events(before: PodClass | None, after: PodClass, node: str) -> Iterator[WakeEvent]:
    """A bound pod that came, or changed its labels, or asks for less than it did."""
    if before is None:
        yield WakeEvent(Wake.POD_ADDED, pod=after, node_name=node)
        return
    if before.labels != after.labels:
        yield WakeEvent(Wake.POD_LABEL, pod=after, pod_before=before, node_name=node)
    if _asks_for_less(before, after):
        yield WakeEvent(Wake.POD_SCALED_DOWN, pod=after, pod_before=before, node_name=node)


def _asks_for_less(before: PodClass, after: PodClass) -> bool:
    now = dict(after.takes)
    return any(now.get(column, 0) < amount for column, amount in before.takes)


def pod_left(kind: PodClass, node: str) -> WakeEvent:
    return WakeEvent(Wake.POD_DELETED, pod=kind, node_name=node)


def object_event(item: Model, *, known: bool) -> WakeEvent | None:
    kind = (UPDATED if known else ADDED).get(type(item))
    return None if kind is None else WakeEvent(kind, item=item)


def object_left(item: Model) -> WakeEvent | None:
    return WakeEvent(Wake.VOLUME_ATTACHMENT_DELETED, item=item) if isinstance(item, VolumeAttachment) else None
