"""Queueing hints of VolumeBinding: the events that may make it accept a node that it refused."""

from __future__ import annotations

from situate.core.contract import Wake, WakeEvent
from situate.core.model.base import Model
from situate.core.model.csi_migration import MIGRATED_PLUGINS
from situate.core.model.quantity import value
from situate.core.model.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from situate.core.plugins.support.claims import uses_claim
from situate.core.state.classes import PodClass


def volume_binding_hint(pod: PodClass, event: WakeEvent) -> bool:
    """Whether the event could help a refused pod. As in Kubernetes, any node or volume may."""
    before, after = event.item_before, event.item
    match event.kind:
        case Wake.CLAIM_ADDED | Wake.CLAIM_UPDATED:
            return uses_claim(pod, after)
        case Wake.STORAGE_CLASS_UPDATED:
            return _makes(before) != _makes(after)
        case Wake.CSI_NODE_UPDATED:
            return _handed_over(before) != _handed_over(after)
        case Wake.CSI_DRIVER_UPDATED:
            return _tells_space(before) and not _tells_space(after)
        case Wake.CSI_CAPACITY_UPDATED:
            return _grown(before, after)
        case _:
            return True


def _makes(item: Model | None) -> object:
    """How and where a class provisions. Only `allowedTopologies` can change, but a class may be recreated."""
    if not isinstance(item, StorageClass):
        return None
    return item.allowed_topologies, item.volume_binding_mode, item.provisioner


def _handed_over(item: Model | None) -> str | None:
    return item.metadata.annotations.get(MIGRATED_PLUGINS) if isinstance(item, CSINode) else None


def _tells_space(item: Model | None) -> bool:
    return isinstance(item, CSIDriver) and item.spec.storage_capacity


def _grown(before: Model | None, after: Model | None) -> bool:
    """Whether the capacity grew, or covers other nodes or another class than before."""
    if not isinstance(before, CSIStorageCapacity) or not isinstance(after, CSIStorageCapacity):
        return True
    if (before.storage_class_name, before.node_topology) != (after.storage_class_name, after.node_topology):
        return True
    was, now = _largest(before), _largest(after)
    return now is not None and (was is None or now > was)


def _largest(capacity: CSIStorageCapacity) -> int | None:
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return None if limit is None else value(limit)
