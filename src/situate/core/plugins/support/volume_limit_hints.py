"""Queueing hints of NodeVolumeLimits: the events that raise a limit or lower the count against it.

Not only pods count. While a claim is being bound, its volume may count twice, as one to provision and as one that is
attached already, until all the objects that link the two have arrived, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from situate.core.contract import Wake, WakeEvent
from situate.core.model.base import Model
from situate.core.model.claims import claim_class
from situate.core.model.csi_migration import in_tree_plugin
from situate.core.model.meta import controller_of
from situate.core.model.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from situate.core.model.volumes import Volume
from situate.core.plugins.support.claims import claim_uses, named_claims, uses_claim
from situate.core.state.classes import PodClass


def volume_limit_hint(pod: PodClass, event: WakeEvent) -> bool:
    """Whether the event could help a refused pod."""
    match event.kind:
        case Wake.POD_ADDED if event.pod is not None:
            return _may_share(pod, event.pod)
        case Wake.POD_DELETED if event.pod is not None:
            return bool(event.node_name) and any(map(is_attached, event.pod.spec.volumes))
        case Wake.CLAIM_ADDED:
            return uses_claim(pod, event.item)
        case Wake.VOLUME_ADDED if isinstance(event.item, PersistentVolume):
            return event.item.spec.claim_ref is not None
        case Wake.CLAIM_UPDATED | Wake.VOLUME_UPDATED | Wake.STORAGE_CLASS_UPDATED:
            return uses_claim(pod, event.item) or _attachment(event.item) != _attachment(event.item_before)
        case Wake.CSI_NODE_UPDATED if isinstance(event.item, CSINode) and isinstance(event.item_before, CSINode):
            return _raised(_limits(event.item_before), _limits(event.item))
        case Wake.VOLUME_ATTACHMENT_DELETED if isinstance(event.item, VolumeAttachment):
            return _may_be_attached_by(pod, event.item.spec.attacher)
        case _:
            return True


def is_attached(volume: Volume) -> bool:
    """Whether the volume may be one that a CSI driver attaches."""
    return (
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or in_tree_plugin(volume) is not None
    )


def is_required(driver: CSIDriver | None) -> bool:
    """Whether nodes without the driver cannot take pods that need it."""
    return driver is not None and driver.spec.prevent_pod_scheduling_if_missing


def brings_driver(event: WakeEvent) -> bool:
    """Whether a node has a driver now that it had not, or nodes do not need a driver any more."""
    match event.item, event.item_before:
        case CSINode() as node, CSINode() as before:
            had = _limits(before)
            return any(driver.name not in had for driver in node.spec.drivers)
        case CSIDriver() as driver, CSIDriver() as before:
            return is_required(before) and not is_required(driver)
        case CSIDriver() as gone, None:
            return is_required(gone)
        case _:
            return False


def _may_share(pod: PodClass, other: PodClass) -> bool:
    """Whether two pods may share a volume: an attached volume does not count again."""
    if pod.namespace == other.namespace and any(name in named_claims(pod) for name in named_claims(other)):
        return True
    return all(any(in_tree_plugin(volume) is not None for volume in each.spec.volumes) for each in (pod, other))


def _attachment(item: Model | None) -> object:
    """The part of an object that says which driver attaches a volume, and under which name."""
    match item:
        case PersistentVolumeClaim():
            return item.spec.volume_name, claim_class(item), controller_of(item.metadata)
        case PersistentVolume():
            # The handles of some in-tree volumes include the zone from their labels.
            return msgspec.structs.replace(item.spec, claim_ref=None), dict(item.metadata.labels)
        case StorageClass():
            return item.provisioner
        case _:
            return None


def _limits(node: CSINode) -> dict[str, int | None]:
    """Driver -> how many volumes it can attach; None: no limit."""
    return {
        driver.name: None if driver.allocatable is None else driver.allocatable.count for driver in node.spec.drivers
    }


def _raised(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> bool:
    """Whether some driver can attach more: its limit is higher, new (as Kubernetes sees it) or gone."""
    for driver in {**before, **after}:
        was, now = before.get(driver), after.get(driver)
        if (now is None and was is not None) or (now is not None and now > (was or 0)):
            return True
    return False


def _may_be_attached_by(pod: PodClass, driver: str) -> bool:
    """Whether a volume of the pod may be this driver's; the driver of a claim is not looked up."""
    if claim_uses(pod):
        return True
    plugins = [in_tree_plugin(volume) for volume in pod.spec.volumes]
    return any(plugin is not None and plugin.driver == driver for plugin in plugins)
