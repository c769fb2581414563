"""Validates the fields that scheduling relies on, with Kubernetes' field paths and texts.

The API server checks far more. Nothing that it accepts is refused here, except absurdly large numbers (see `quantity`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from situate.core.model.base import Model
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.core.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from situate.core.model.group import PodGroup
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import Namespace, PodDisruptionBudget, PriorityClass
from situate.core.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from situate.core.model.validate.devices import resource_claim_problems, slice_problems
from situate.core.model.validate.group import group_problems
from situate.core.model.validate.meta import metadata_problems
from situate.core.model.validate.node import node_problems
from situate.core.model.validate.pod import pod_problems
from situate.core.model.validate.policy import priority_class_problems, selector_problems
from situate.core.model.validate.problem import Problem, Problems
from situate.core.model.validate.storage import capacity_problems, claim_problems, class_problems, volume_problems
from situate.core.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

__all__ = ["Problem", "first_problem", "problems_of"]


_CHECKS: Final[Mapping[type[Model], Callable[[Any], Problems]]] = {
    Pod: pod_problems,
    Node: node_problems,
    PersistentVolume: volume_problems,
    PersistentVolumeClaim: claim_problems,
    StorageClass: class_problems,
    CSIStorageCapacity: capacity_problems,
    PodDisruptionBudget: selector_problems,
    PriorityClass: priority_class_problems,
    PodGroup: group_problems,
    **{one.model: group_problems for one in CUSTOM_GROUP_KINDS},
    ReplicaSet: selector_problems,
    StatefulSet: selector_problems,
    ResourceSlice: slice_problems,
    ResourceClaim: resource_claim_problems,
    **dict.fromkeys(
        (DeviceClass, DeviceTaintRule, Namespace, Service, ReplicationController, CSINode, CSIDriver, VolumeAttachment),
        lambda _: iter(()),
    ),
}


def first_problem(obj: Model) -> Problem | None:
    """The first problem, without looking for others."""
    return next(_problems(obj), None)


def problems_of(obj: Model) -> list[Problem]:
    """All problems, in the order of the object's fields."""
    return list(_problems(obj))


def _problems(obj: Any) -> Problems:
    check = _CHECKS.get(type(obj))
    if check is not None:
        yield from metadata_problems(obj.metadata, any_case=isinstance(obj, CSIDriver))
        yield from check(obj)
