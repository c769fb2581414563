"""The kinds that a scheduler lists and watches, and which of them a configuration needs.

PriorityClass is not among them: the API server resolves a pod's priority when the pod is created.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from situate.core.config.defaults import BUILT_IN_POINTS
from situate.core.config.resolve import ResolvedProfile, resolve
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.model.base import Model
from situate.core.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from situate.core.model.group import CoschedulingPodGroup, PodGroup
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
from situate.core.plugins.pod_topology_spread import PodTopologySpreadArgs


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
COSCHEDULING_POD_GROUPS: Final = WatchedKind(
    CoschedulingPodGroup, "podgroups", "scheduling.x-k8s.io", ("v1alpha1",), optional=True
)

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
    COSCHEDULING_POD_GROUPS,
    PODS,
)

ALWAYS: Final = (NODES, POD_GROUPS, COSCHEDULING_POD_GROUPS, PODS)
"""Gangs belong to no plugin: any pod may name its group."""

_SPREAD: Final = "PodTopologySpread"
_BOUND: Final = (VOLUMES, CLAIMS, STORAGE_CLASSES)
_READ_BY: Final[Mapping[str, tuple[WatchedKind, ...]]] = MappingProxyType(
    {
        "DefaultPreemption": (BUDGETS,),
        "DynamicResources": (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIMS, DEVICE_TAINT_RULES),
        "InterPodAffinity": (NAMESPACES,),
        "NodeVolumeLimits": (*_BOUND, CSI_NODES, CSI_DRIVERS, VOLUME_ATTACHMENTS),
        _SPREAD: (SERVICES, REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS),
        "VolumeBinding": (*_BOUND, CSI_NODES, CSI_DRIVERS, CSI_CAPACITIES),
        "VolumeRestrictions": (CLAIMS,),
        "VolumeZone": _BOUND,
    }
)


def needed_kinds(
    config: KubeSchedulerConfiguration, others: Mapping[str, frozenset[str]] | None = None
) -> tuple[WatchedKind, ...]:
    """The kinds that the profiles of a configuration read; the scheduler needs no right to any other.

    The configuration has its defaults set. `others` are third-party plugins with their extension points. What these
    read is unknown, so a profile with one needs every kind.
    """
    known = {**BUILT_IN_POINTS, **(others or {})}
    needed = [*ALWAYS]
    for profile in resolve(config, known):
        needed.extend(_read_by(profile))
    return tuple(kind for kind in ALL_KINDS if kind in needed)


def _read_by(profile: ResolvedProfile) -> Iterator[WatchedKind]:
    for name in dict.fromkeys(name for names in profile.points.values() for name in names):
        if name not in BUILT_IN_POINTS:
            yield from ALL_KINDS
        elif name != _SPREAD or _spreads_by_default(profile):
            yield from _READ_BY.get(name, ())


def _spreads_by_default(profile: ResolvedProfile) -> bool:
    """Whether pods without constraints are spread, too; only then do their owners matter."""
    args = profile.args_of(PodTopologySpreadArgs)
    return args.defaulting_type == "System" or bool(args.default_constraints)
