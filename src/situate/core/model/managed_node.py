"""A node as controllers read it: its conditions, and its taints with their times. Scheduling reads `node`."""

from situate.core.model.base import Model
from situate.core.model.stored import Condition, StoredMeta
from situate.core.model.tolerations import Taint


class TimedTaint(Taint, frozen=True, kw_only=True):
    time_added: str | None = None


class ManagedNodeSpec(Model, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[TimedTaint, ...] = ()


class ManagedNodeInfo(Model, frozen=True, kw_only=True):
    container_runtime_version: str = ""


class ManagedNodeStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()
    node_info: ManagedNodeInfo = ManagedNodeInfo()


class ManagedNode(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ManagedNodeSpec = ManagedNodeSpec()
    status: ManagedNodeStatus = ManagedNodeStatus()
