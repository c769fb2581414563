"""The kinds that a scheduler lists and watches.

PriorityClass is not among them: the API server resolves a pod's priority when the pod is created.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.model.base import Model
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.core.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from situate.core.model.group import PodGroup
from situate.core.model.node import Node
from situate.core.model.pod import Pod
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


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """One kind of object, in all namespaces or in one."""

    model: type[Model]
    resource: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    """The API versions, best first."""
    field_selector: str = ""
    optional: bool = False
    """The server may not have it: discovery says whether, and in which version. Nothing waits for it."""
    namespace: str = ""
    """Only the objects in this namespace; empty: all."""

    @property
    def name(self) -> str:
        """As `kubectl get` understands it: `pods`, `podgroups.scheduling.k8s.io`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def params(self) -> dict[str, str]:
        return {"fieldSelector": self.field_selector} if self.field_selector else {}

    def path(self, version: str) -> str:
        within = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{self.group_path(version)}{within}/{self.resource}"

    def group_path(self, version: str) -> str:
        return f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"


PODS: Final = WatchedKind(
    Pod,
    "pods",
    # As kube-scheduler: a finished pod takes no room. To this watch, a pod that finishes is deleted.
    field_selector="status.phase!=Succeeded,status.phase!=Failed",
)
NODES: Final = WatchedKind(Node, "nodes")
NAMESPACES: Final = WatchedKind(Namespace, "namespaces")
SERVICES: Final = WatchedKind(Service, "services")
REPLICATION_CONTROLLERS: Final = WatchedKind(ReplicationController, "replicationcontrollers")
REPLICA_SETS: Final = WatchedKind(ReplicaSet, "replicasets", "apps")
STATEFUL_SETS: Final = WatchedKind(StatefulSet, "statefulsets", "apps")
VOLUMES: Final = WatchedKind(PersistentVolume, "persistentvolumes")
CLAIMS: Final = WatchedKind(PersistentVolumeClaim, "persistentvolumeclaims")
STORAGE_CLASSES: Final = WatchedKind(StorageClass, "storageclasses", "storage.k8s.io")
CSI_NODES: Final = WatchedKind(CSINode, "csinodes", "storage.k8s.io")
CSI_DRIVERS: Final = WatchedKind(CSIDriver, "csidrivers", "storage.k8s.io")
CSI_CAPACITIES: Final = WatchedKind(CSIStorageCapacity, "csistoragecapacities", "storage.k8s.io")
VOLUME_ATTACHMENTS: Final = WatchedKind(VolumeAttachment, "volumeattachments", "storage.k8s.io")
BUDGETS: Final = WatchedKind(PodDisruptionBudget, "poddisruptionbudgets", "policy")
DEVICE_CLASSES: Final = WatchedKind(DeviceClass, "deviceclasses", "resource.k8s.io", optional=True)
RESOURCE_SLICES: Final = WatchedKind(ResourceSlice, "resourceslices", "resource.k8s.io", optional=True)
RESOURCE_CLAIMS: Final = WatchedKind(ResourceClaim, "resourceclaims", "resource.k8s.io", optional=True)
DEVICE_TAINT_RULES: Final = WatchedKind(DeviceTaintRule, "devicetaintrules", "resource.k8s.io", optional=True)
POD_GROUPS: Final = WatchedKind(PodGroup, "podgroups", "scheduling.k8s.io", ("v1beta1", "v1alpha2"), optional=True)
CUSTOM_POD_GROUPS: Final = tuple(
    WatchedKind(one.model, "podgroups", one.group, one.versions, optional=True) for one in CUSTOM_GROUP_KINDS
)
"""Of schedulers that install a kind of their own."""

ALL_KINDS: Final = (
    NODES,
    NAMESPACES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    VOLUMES,
    CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_CAPACITIES,
    VOLUME_ATTACHMENTS,
    BUDGETS,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    RESOURCE_CLAIMS,
    DEVICE_TAINT_RULES,
    POD_GROUPS,
    *CUSTOM_POD_GROUPS,
    PODS,
)

ALWAYS: Final = (NODES, POD_GROUPS, *CUSTOM_POD_GROUPS, PODS)
"""Gangs belong to no plugin: any pod may name its group."""
