"""The objects that are neither nodes nor pods, by name: storage, services and controllers, budgets, namespaces.

They are few and read by name, so they are dictionaries; each family has a version that moves when one of it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, assert_never

from situate.core.model.base import EMPTY
from situate.core.model.claims import volume_class
from situate.core.model.policy import Namespace, PodDisruptionBudget
from situate.core.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from situate.core.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

T = TypeVar("T")
Key = tuple[str, str]
"""(namespace, name); the namespace of what has none is empty."""


class StorageObjects:
    """What the volume plugins read."""

    def __init__(self) -> None:
        self.claims: dict[Key, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.csi_drivers: dict[str, CSIDriver] = {}
        self.capacities: dict[Key, CSIStorageCapacity] = {}
        self.attachments: dict[str, VolumeAttachment] = {}
        self.volumes_of_class: dict[str, dict[str, PersistentVolume]] = {}
        self.attachments_on: dict[str, dict[str, VolumeAttachment]] = {}
        """Node name -> its attachments by name."""
        self.version = 0

    def put_volume(self, item: PersistentVolume) -> bool:
        before = self.volumes.get(item.metadata.name)
        if not _store(self.volumes, item.metadata.name, item):
            return False
        _refile(self.volumes_of_class, volume_class, before, item)
        return True

    def forget_volume(self, name: str) -> bool:
        before = self.volumes.pop(name, None)
        _refile(self.volumes_of_class, volume_class, before, None)
        return before is not None

    def put_attachment(self, item: VolumeAttachment) -> bool:
        before = self.attachments.get(item.metadata.name)
        if not _store(self.attachments, item.metadata.name, item):
            return False
        _refile(self.attachments_on, _attached_to, before, item)
        return True

    def forget_attachment(self, name: str) -> bool:
        before = self.attachments.pop(name, None)
        _refile(self.attachments_on, _attached_to, before, None)
        return before is not None


class WorkloadObjects:
    """What default spreading reads: by namespace, in order of arrival."""

    def __init__(self) -> None:
        self.services: dict[str, dict[str, Service]] = {}
        self.replication_controllers: dict[str, dict[str, ReplicationController]] = {}
        self.replica_sets: dict[str, dict[str, ReplicaSet]] = {}
        self.stateful_sets: dict[str, dict[str, StatefulSet]] = {}
        self.version = 0


StorageObject = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
WorkloadObject = Service | ReplicationController | ReplicaSet | StatefulSet
NamedObject = StorageObject | WorkloadObject | PodDisruptionBudget | Namespace


class ObjectTable:
    """Everything that is kept by name. Written by the Cluster alone."""

    def __init__(self) -> None:
        self.storage = StorageObjects()
        self.workloads = WorkloadObjects()
        self.budgets: dict[Key, PodDisruptionBudget] = {}
        self.namespace_labels: dict[str, Mapping[str, str]] = {}
        self.namespaces_version = 0

    def put(self, item: NamedObject) -> bool:
        """Take an object in, new or changed; say whether anything changed."""
        match item:
            case Namespace():
                return self._put_namespace(item)
            case PodDisruptionBudget():
                return _store(self.budgets, (item.metadata.namespace, item.metadata.name), item)
            case Service() | ReplicationController() | ReplicaSet() | StatefulSet():
                return self._put_workload(item)
            case _:
                return self._put_storage(item)

    def forget(self, item: NamedObject) -> bool:
        """Let go of an object by its name; say whether it was there."""
        namespace, name = item.metadata.namespace, item.metadata.name
        match item:
            case Namespace():
                gone = self.namespace_labels.pop(name, None) is not None
                self.namespaces_version += gone
            case PodDisruptionBudget():
                gone = self.budgets.pop((namespace, name), None) is not None
            case Service() | ReplicationController() | ReplicaSet() | StatefulSet():
                gone = self._workload_shelf(item).get(namespace, {}).pop(name, None) is not None
                self.workloads.version += gone
            case _:
                gone = self._forget_storage(item)
        return gone

    def _put_namespace(self, item: Namespace) -> bool:
        # A namespace without labels is one all the same: a selector that matches everything matches it.
        if self.namespace_labels.get(item.metadata.name) == item.metadata.labels:
            return False
        self.namespace_labels[item.metadata.name] = item.metadata.labels or EMPTY
        self.namespaces_version += 1
        return True

    def _workload_shelf(self, item: WorkloadObject) -> dict[str, dict[str, WorkloadObject]]:
        shelves: dict[type, object] = {
            Service: self.workloads.services,
            ReplicationController: self.workloads.replication_controllers,
            ReplicaSet: self.workloads.replica_sets,
            StatefulSet: self.workloads.stateful_sets,
        }
        return shelves[type(item)]  # type: ignore[return-value]

    def _put_workload(self, item: WorkloadObject) -> bool:
        shelf = self._workload_shelf(item).setdefault(item.metadata.namespace, {})
        changed = _store(shelf, item.metadata.name, item)
        self.workloads.version += changed
        return changed

    def _put_storage(self, item: StorageObject) -> bool:
        namespace, name = item.metadata.namespace, item.metadata.name
        storage = self.storage
        match item:
            case PersistentVolumeClaim():
                changed = _store(storage.claims, (namespace, name), item)
            case PersistentVolume():
                changed = storage.put_volume(item)
            case StorageClass():
                changed = _store(storage.classes, name, item)
            case CSINode():
                changed = _store(storage.csi_nodes, name, item)
            case CSIDriver():
                changed = _store(storage.csi_drivers, name, item)
            case CSIStorageCapacity():
                changed = _store(storage.capacities, (namespace, name), item)
            case VolumeAttachment():
                changed = storage.put_attachment(item)
            case _:
                assert_never(item)
        storage.version += changed
        return changed

    def _forget_storage(self, item: StorageObject) -> bool:
        namespace, name = item.metadata.namespace, item.metadata.name
        storage = self.storage
        match item:
            case PersistentVolumeClaim():
                gone = storage.claims.pop((namespace, name), None) is not None
            case PersistentVolume():
                gone = storage.forget_volume(name)
            case StorageClass():
                gone = storage.classes.pop(name, None) is not None
            case CSINode():
                gone = storage.csi_nodes.pop(name, None) is not None
            case CSIDriver():
                gone = storage.csi_drivers.pop(name, None) is not None
            case CSIStorageCapacity():
                gone = storage.capacities.pop((namespace, name), None) is not None
            case VolumeAttachment():
                gone = storage.forget_attachment(name)
            case _:
                assert_never(item)
        storage.version += gone
        return gone


K = TypeVar("K")


def _store(shelf: dict[K, T], key: K, item: T) -> bool:
    if shelf.get(key) == item:
        return False
    shelf[key] = item
    return True


Filed = TypeVar("Filed", PersistentVolume, VolumeAttachment)


def _refile(
    shelves: dict[str, dict[str, Filed]], shelf_of: Callable[[Filed], str], before: Filed | None, after: Filed | None
) -> None:
    """Move an object to the shelf where it belongs now; None where it was or is nowhere."""
    if before is not None:
        shelf = shelves[shelf_of(before)]
        del shelf[before.metadata.name]
        if not shelf:
            del shelves[shelf_of(before)]
    if after is not None:
        shelves.setdefault(shelf_of(after), {})[after.metadata.name] = after


def _attached_to(attachment: VolumeAttachment) -> str:
    return attachment.spec.node_name
