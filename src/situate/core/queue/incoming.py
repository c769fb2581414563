"""The events that bring a pod to a part of the queue, by their names in the metrics of kube-scheduler 1.36.

For counting only: no decision depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from situate.core.contract import Wake

Incoming: TypeAlias = dict[tuple[str, str], int]
"""How many pods came, by (part of the queue, event)."""

ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
UNSCHEDULABLE: Final = "unschedulable"

POD_ADDED: Final = "UnschedulablePodAdd"
POD_CHANGED: Final = "UnschedulablePodUpdate"
GATES_GONE: Final = "UnschedulablePodUpdatePodSchedulingGatesEliminated"
CLAIMS_MADE: Final = "UnschedulablePodUpdatePodGeneratedResourceClaim"
ATTEMPT_FAILED: Final = "ScheduleAttemptFailure"
BACKOFF_OVER: Final = "BackoffComplete"
POPPED_EARLY: Final = "PopFromBackoffQ"
ACTIVATED: Final = "ForceActivate"
"""The scheduler itself brought it back: its gang did, or the end of a nomination."""
TIMED_OUT: Final = "UnschedulableTimeout"

CAUSES: Final[Mapping[Wake, str]] = MappingProxyType(
    {
        Wake.NODE_ADDED: "NodeAdd",
        Wake.NODE_DELETED: "NodeDelete",
        Wake.NODE_ALLOCATABLE: "NodeUpdateNodeAllocatable",
        Wake.NODE_LABEL: "NodeUpdateNodeLabel",
        Wake.NODE_TAINT: "NodeUpdateNodeTaint",
        Wake.NODE_DECLARED_FEATURE: "NodeUpdateNodeDeclaredFeature",
        Wake.POD_ADDED: "AssignedPodAdd",
        Wake.POD_DELETED: "AssignedPodDelete",
        Wake.POD_LEAVING: "AssignedPodUpdate",
        Wake.POD_LABEL: "AssignedPodUpdatePodLabel",
        Wake.POD_SCALED_DOWN: "AssignedPodUpdatePodScaleDown",
        Wake.POD_TOLERATION: "UnschedulablePodUpdatePodToleration",
        Wake.POD_GATES_ELIMINATED: GATES_GONE,
        Wake.NAMESPACE_LABEL: "NamespaceUpdate",
        Wake.WORKLOAD_CHANGED: "WorkloadUpdate",
        Wake.CLAIM_ADDED: "PersistentVolumeClaimAdd",
        Wake.CLAIM_UPDATED: "PersistentVolumeClaimUpdate",
        Wake.CLAIM_DELETED: "PersistentVolumeClaimDelete",
        Wake.VOLUME_ADDED: "PersistentVolumeAdd",
        Wake.VOLUME_UPDATED: "PersistentVolumeUpdate",
        Wake.VOLUME_DELETED: "PersistentVolumeDelete",
        Wake.STORAGE_CLASS_ADDED: "storage.k8s.io/StorageClassAdd",
        Wake.STORAGE_CLASS_UPDATED: "storage.k8s.io/StorageClassUpdate",
        Wake.STORAGE_CLASS_DELETED: "storage.k8s.io/StorageClassDelete",
        Wake.CSI_NODE_ADDED: "storage.k8s.io/CSINodeAdd",
        Wake.CSI_NODE_UPDATED: "storage.k8s.io/CSINodeUpdate",
        Wake.CSI_NODE_DELETED: "storage.k8s.io/CSINodeDelete",
        Wake.CSI_DRIVER_UPDATED: "storage.k8s.io/CSIDriverUpdate",
        Wake.CSI_DRIVER_DELETED: "storage.k8s.io/CSIDriverDelete",
        Wake.CSI_CAPACITY_ADDED: "storage.k8s.io/CSIStorageCapacityAdd",
        Wake.CSI_CAPACITY_UPDATED: "storage.k8s.io/CSIStorageCapacityUpdate",
        Wake.VOLUME_ATTACHMENT_DELETED: "storage.k8s.io/VolumeAttachmentDelete",
        Wake.LATENCY_CHANGED: "LatencyTableUpdate",
        Wake.RESOURCE_CLAIM_ADDED: "resource.k8s.io/ResourceClaimAdd",
        Wake.RESOURCE_CLAIM_UPDATED: "resource.k8s.io/ResourceClaimUpdate",
        Wake.RESOURCE_CLAIM_DELETED: "resource.k8s.io/ResourceClaimDelete",
        Wake.RESOURCE_SLICE_ADDED: "resource.k8s.io/ResourceSliceAdd",
        Wake.RESOURCE_SLICE_UPDATED: "resource.k8s.io/ResourceSliceUpdate",
        Wake.RESOURCE_SLICE_DELETED: "resource.k8s.io/ResourceSliceDelete",
        Wake.DEVICE_CLASS_ADDED: "resource.k8s.io/DeviceClassAdd",
        Wake.DEVICE_CLASS_UPDATED: "resource.k8s.io/DeviceClassUpdate",
        Wake.DEVICE_CLASS_DELETED: "resource.k8s.io/DeviceClassDelete",
        Wake.POD_RESOURCE_CLAIMS: CLAIMS_MADE,
    }
)
"""The names of wake events. kube-scheduler has none for namespaces, workloads and latencies: those are ours."""


def came(incoming: Incoming, part: str, cause: str, pods: int = 1) -> None:
    key = (part, cause)
    incoming[key] = incoming.get(key, 0) + pods
