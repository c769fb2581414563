"""The objects that are neither nodes nor pods, by name: storage, services and controllers, budgets, namespaces.

They are few and read by name, so they are dictionaries; each family has a version that moves when one of its objects
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from situate.core.model.base import Labels
from situate.core.model.claims import volume_class
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.core.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from situate.core.model.group import PodGroup
from situate.core.model.latency import LatencyTable
from situate.core.model.named import NamedObject
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
from situate.core.state.device_objects import DeviceObjects

Key = tuple[str, str]
"""(namespace, name); the namespace of cluster-scoped objects is empty."""


class StorageObjects:
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


class WorkloadObjects:
    """What default spreading reads: by namespace, in order of arrival."""

    def __init__(self) -> None:
        self.services: dict[str, dict[str, Service]] = {}
        self.replication_controllers: dict[str, dict[str, ReplicationController]] = {}
        self.replica_sets: dict[str, dict[str, ReplicaSet]] = {}
        self.stateful_sets: dict[str, dict[str, StatefulSet]] = {}
        self.version = 0


class ObjectTable:
    """Everything that is kept by name. Only the Cluster writes this."""

    def __init__(self) -> None:
        self.storage = StorageObjects()
        self.workloads = WorkloadObjects()
        self.devices = DeviceObjects()
        self.budgets: dict[Key, PodDisruptionBudget] = {}
        self.pod_groups: dict[Key, PodGroup] = {}
        self.custom_pod_groups: dict[str, dict[Key, CustomPodGroup]] = {one.group: {} for one in CUSTOM_GROUP_KINDS}
        """By API group."""
        self.namespaces: dict[str, Namespace] = {}
        self.namespace_labels: dict[str, Labels] = {}
        """By name. A namespace without labels is here too: a selector that matches everything matches it."""
        self.namespaces_version = 0
        self.latencies: dict[str, LatencyTable] = {}
        self.latencies_version = 0

    def put(self, item: NamedObject) -> bool:
        """Add or update an object; whether anything changed."""
        return self._file(item, item)

    def forget(self, item: NamedObject) -> bool:
        """Remove an object by its kind and name; whether it was there."""
        return self._file(item, None)

    def find(self, item: NamedObject) -> NamedObject | None:
        bucket, key = self._table_of(item)
        found: NamedObject | None = bucket.get(key)
        return found

    def _file(self, item: NamedObject, after: NamedObject | None) -> bool:
        bucket, key = self._table_of(item)
        before = bucket.get(key)
        if before == after:
            return False
        if after is None:
            del bucket[key]
        else:
            bucket[key] = after
        self._changed(item, before, after)
        return True

    def _table_of(self, item: NamedObject) -> tuple[dict[Any, Any], str | Key]:
        namespace, name = item.metadata.namespace, item.metadata.name
        storage, workloads, devices = self.storage, self.workloads, self.devices
        by_name: dict[type, dict[str, Any]] = {
            Namespace: self.namespaces,
            LatencyTable: self.latencies,
            PersistentVolume: storage.volumes,
            StorageClass: storage.classes,
            CSINode: storage.csi_nodes,
            CSIDriver: storage.csi_drivers,
            VolumeAttachment: storage.attachments,
            DeviceClass: devices.classes,
            ResourceSlice: devices.slices,
            DeviceTaintRule: devices.taint_rules,
        }
        by_key: dict[type, dict[Key, Any]] = {
            PodDisruptionBudget: self.budgets,
            PodGroup: self.pod_groups,
            **{one.model: self.custom_pod_groups[one.group] for one in CUSTOM_GROUP_KINDS},
            PersistentVolumeClaim: storage.claims,
            CSIStorageCapacity: storage.capacities,
            ResourceClaim: devices.claims,
        }
        by_namespace: dict[type, dict[str, dict[str, Any]]] = {
            Service: workloads.services,
            ReplicationController: workloads.replication_controllers,
            ReplicaSet: workloads.replica_sets,
            StatefulSet: workloads.stateful_sets,
        }
        kind = type(item)
        if kind in by_name:
            return by_name[kind], name
        if kind in by_key:
            return by_key[kind], (namespace, name)
        return by_namespace[kind].setdefault(namespace, {}), name

    def _changed(self, item: NamedObject, before: Any, after: Any) -> None:
        """Move the version of the family, and update secondary indexes."""
        match item:
            case Namespace():
                self._relabel(item.metadata.name, None if after is None else item.metadata.labels)
            case Service() | ReplicationController() | ReplicaSet() | StatefulSet():
                self.workloads.version += 1
            case LatencyTable():
                self.latencies_version += 1
            case DeviceClass() | ResourceSlice() | ResourceClaim() | DeviceTaintRule():
                self.devices.changed(before, after)
            case PodDisruptionBudget() | PodGroup() | CustomPodGroup():
                pass  # read only for evictions and gangs, and no cached verdict depends on it
            case _:
                self.storage.version += 1
        if isinstance(item, PersistentVolume):
            _refile(self.storage.volumes_of_class, volume_class, before, after)
        elif isinstance(item, VolumeAttachment):
            _refile(self.storage.attachments_on, _attached_to, before, after)

    def _relabel(self, namespace: str, labels: Labels | None) -> None:
        """A namespace has these labels now, or is gone. Nothing else of it is read."""
        if self.namespace_labels.get(namespace) == labels:
            return
        self.namespaces_version += 1
        if labels is None:
            del self.namespace_labels[namespace]
        else:
            self.namespace_labels[namespace] = labels


Filed = TypeVar("Filed", PersistentVolume, VolumeAttachment)


def _refile(
    groups: dict[str, dict[str, Filed]], group_of: Callable[[Filed], str], before: Filed | None, after: Filed | None
) -> None:
    """Move an object to its current group; None: it was or is in none."""
    if before is not None:
        bucket = groups[group_of(before)]
        del bucket[before.metadata.name]
        if not bucket:
            del groups[group_of(before)]
    if after is not None:
        groups.setdefault(group_of(after), {})[after.metadata.name] = after


def _attached_to(attachment: VolumeAttachment) -> str:
    return attachment.spec.node_name
