"""Node: allocatable resources, labels, taints, images."""

from situate.core.model.base import EMPTY, Int64, Model
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import ResourceList
from situate.core.model.tolerations import Taint


class NodeSpec(Model, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(Model, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeCondition(Model, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""


class NodeStatus(Model, frozen=True, kw_only=True):
    allocatable: ResourceList = EMPTY
    capacity: ResourceList = EMPTY
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
