"""What a scheduler lists and watches: the kinds, where the API server has them, and which a configuration needs.

PriorityClass is not among them: a pod's priority is resolved when the pod is created, so nobody here asks for it.
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

__all__ = ["ALL_KINDS", "NODES", "PODS", "Kind", "needed_kinds"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object, in all namespaces."""

    model: type[Model]
    resource: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    """Of the API group, the best first."""
    field_selector: str = ""
    """Which of them; empty: all."""
    optional: bool = False
    """A server may not have it: whether it does, and in which version, is found out. Nothing waits for it."""

    @property
    def name(self) -> str:
        """As `kubectl get` understands it: `pods`, `podgroups.scheduling.k8s.io`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def params(self) -> dict[str, str]:
        """What every list and watch of it asks for."""
        return {"fieldSelector": self.field_selector} if self.field_selector else {}

    def path(self, version: str) -> str:
        return f"{self.group_path(version)}/{self.resource}"

    def group_path(self, version: str) -> str:
        return f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"


PODS: Final = Kind(
    Pod,
    "pods",
    # As kube-scheduler: a pod that has finished holds nothing. To a watch, one that finishes is one that is deleted.
    field_selector="status.phase!=Succeeded,status.phase!=Failed",
)
NODES: Final = Kind(Node, "nodes")
NAMESPACES: Final = Kind(Namespace, "namespaces")
SERVICES: Final = Kind(Service, "services")
REPLICATION_CONTROLLERS: Final = Kind(ReplicationController, "replicationcontrollers")
REPLICA_SETS: Final = Kind(ReplicaSet, "replicasets", "apps")
STATEFUL_SETS: Final = Kind(StatefulSet, "statefulsets", "apps")
VOLUMES: Final = Kind(PersistentVolume, "persistentvolumes")
CLAIMS: Final = Kind(PersistentVolumeClaim, "persistentvolumeclaims")
STORAGE_CLASSES: Final = Kind(StorageClass, "storageclasses", "storage.k8s.io")
CSI_NODES: Final = Kind(CSINode, "csinodes", "storage.k8s.io")
CSI_DRIVERS: Final = Kind(CSIDriver, "csidrivers", "storage.k8s.io")
CSI_CAPACITIES: Final = Kind(CSIStorageCapacity, "csistoragecapacities", "storage.k8s.io")
VOLUME_ATTACHMENTS: Final = Kind(VolumeAttachment, "volumeattachments", "storage.k8s.io")
BUDGETS: Final = Kind(PodDisruptionBudget, "poddisruptionbudgets", "policy")
POD_GROUPS: Final = Kind(PodGroup, "podgroups", "scheduling.k8s.io", ("v1beta1", "v1alpha2"), optional=True)
COSCHEDULING_POD_GROUPS: Final = Kind(
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
    POD_GROUPS,
    COSCHEDULING_POD_GROUPS,
    PODS,
)

ALWAYS: Final = (NODES, POD_GROUPS, COSCHEDULING_POD_GROUPS, PODS)
"""Gangs are no plugin's: any pod may name the group it belongs to."""

_SPREAD: Final = "PodTopologySpread"
_BOUND: Final = (VOLUMES, CLAIMS, STORAGE_CLASSES)
_READ_BY: Final[Mapping[str, tuple[Kind, ...]]] = MappingProxyType(
    {
        "DefaultPreemption": (BUDGETS,),
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
) -> tuple[Kind, ...]:
    """The kinds that the profiles of a configuration can read; no right is needed to any other.

    The configuration has its defaults set. `others` are the plugins that are not ours, with their extension points.
    What they read is not known, so a profile that has one needs everything.
    """
    known = {**BUILT_IN_POINTS, **(others or {})}
    needed = [*ALWAYS]
    for profile in resolve(config, known):
        needed.extend(_read_by(profile))
    return tuple(kind for kind in ALL_KINDS if kind in needed)


def _read_by(profile: ResolvedProfile) -> Iterator[Kind]:
    for name in dict.fromkeys(name for names in profile.points.values() for name in names):
        if name not in BUILT_IN_POINTS:
            yield from ALL_KINDS
        elif name != _SPREAD or _spreads_by_default(profile):
            yield from _READ_BY.get(name, ())


def _spreads_by_default(profile: ResolvedProfile) -> bool:
    """Whether pods that say nothing of spreading are spread; only then does it matter whose they are."""
    args = profile.args_of(PodTopologySpreadArgs)
    return args.defaulting_type == "System" or bool(args.default_constraints)
