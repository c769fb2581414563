"""The kinds that are stored by name: all that scheduling reads except nodes, pods and priority classes."""

from typing import TypeAlias

from situate.core.model.custom_groups.coscheduling import CoschedulingPodGroup
from situate.core.model.custom_groups.kai import KaiPodGroup
from situate.core.model.custom_groups.volcano import VolcanoPodGroup
from situate.core.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from situate.core.model.group import PodGroup
from situate.core.model.latency import LatencyTable
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

StorageObject: TypeAlias = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
WorkloadObject: TypeAlias = Service | ReplicationController | ReplicaSet | StatefulSet
DeviceObject: TypeAlias = DeviceClass | ResourceSlice | ResourceClaim | DeviceTaintRule
GroupObject: TypeAlias = PodGroup | CoschedulingPodGroup | VolcanoPodGroup | KaiPodGroup
NamedObject: TypeAlias = (
    StorageObject | WorkloadObject | DeviceObject | GroupObject | PodDisruptionBudget | Namespace | LatencyTable
)
