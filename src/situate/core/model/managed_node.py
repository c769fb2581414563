"""A node as those who look after it read it: whether it lives, what it repels and since when.

What scheduling asks of a node is in `node`.
"""

from situate.core.model.base import Model
from situate.core.model.stored import StoredMeta
from situate.core.model.tolerations import Taint

__all__ = ["ManagedNode", "ManagedNodeSpec", "ManagedNodeStatus", "NodeReport", "TimedTaint"]


class TimedTaint(Taint, frozen=True, kw_only=True):
    time_added: str | None = None


class ManagedNodeSpec(Model, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[TimedTaint, ...] = ()


class NodeReport(Model, frozen=True, kw_only=True):
    """A condition of a node, whole: conditions are written back as one list."""

    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class ManagedNodeStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[NodeReport, ...] = ()


class ManagedNode(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ManagedNodeSpec = ManagedNodeSpec()
    status: ManagedNodeStatus = ManagedNodeStatus()
