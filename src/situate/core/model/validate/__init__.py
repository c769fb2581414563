"""What is wrong with an object, where scheduling relies on it being right.

In Kubernetes' words, with the path of the field. The API server checks far more; nothing that it accepts is refused
here, but for numbers beyond all reason (see `quantity`). Changes nothing, raises nothing.
"""

from situate.core.model.base import Model
from situate.core.model.group import CoschedulingPodGroup, PodGroup
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
from situate.core.model.validate.group import group_problems
from situate.core.model.validate.meta import metadata_problems
from situate.core.model.validate.node import node_problems
from situate.core.model.validate.pod import pod_problems
from situate.core.model.validate.policy import budget_problems, priority_class_problems, workload_problems
from situate.core.model.validate.problem import Problem, Problems
from situate.core.model.validate.storage import capacity_problems, claim_problems, class_problems, volume_problems
from situate.core.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

__all__ = ["Problem", "first_problem", "problems_of"]


def first_problem(obj: Model) -> Problem | None:
    """The first problem, without looking for others."""
    return next(_problems(obj), None)


def problems_of(obj: Model) -> list[Problem]:
    """All problems, in the order of the object's fields; none for an object that can be scheduled with."""
    return list(_problems(obj))


def _problems(obj: Model) -> Problems:
    match obj:
        case Pod():
            yield from metadata_problems(obj.metadata)
            yield from pod_problems(obj)
        case Node():
            yield from metadata_problems(obj.metadata)
            yield from node_problems(obj)
        case PersistentVolume():
            yield from metadata_problems(obj.metadata)
            yield from volume_problems(obj.spec)
        case PersistentVolumeClaim():
            yield from metadata_problems(obj.metadata)
            yield from claim_problems(obj.spec)
        case StorageClass():
            yield from metadata_problems(obj.metadata)
            yield from class_problems(obj)
        case CSIStorageCapacity():
            yield from metadata_problems(obj.metadata)
            yield from capacity_problems(obj)
        case PodDisruptionBudget():
            yield from metadata_problems(obj.metadata)
            yield from budget_problems(obj)
        case PriorityClass():
            yield from metadata_problems(obj.metadata)
            yield from priority_class_problems(obj)
        case PodGroup() | CoschedulingPodGroup():
            yield from metadata_problems(obj.metadata)
            yield from group_problems(obj)
        case ReplicaSet() | StatefulSet():
            yield from metadata_problems(obj.metadata)
            yield from workload_problems(obj)
        case Namespace() | Service() | ReplicationController() | CSINode() | VolumeAttachment():
            yield from metadata_problems(obj.metadata)
        case CSIDriver():
            yield from metadata_problems(obj.metadata, any_case=True)
