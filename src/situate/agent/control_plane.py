"""All that an agent asks of the control plane, whether over HTTP or in its own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple, Protocol

from situate.core.reconcile.nodes.reports import AgentReport

__all__ = [
    "NO_ORIGIN",
    "StatusOrigin",
    "NodeUpdate",
    "ControlPlane",
    "ControlPlaneError",
    "PodUpdate",
    "LeaseRenewal",
    "SnapshotUpdate",
    "StaleError",
    "AcquiredLease",
    "LeaseLostError",
    "NotServedError",
]


class PodUpdate(NamedTuple):
    """A pod that is bound to a node was seen; `body` None: it is gone. `listed` alone: all that there is was told."""

    namespace: str
    name: str
    body: bytes | None
    listed: bool = False
    version: int = 0
    """The revision at which it became so; 0: that is not known."""


class SnapshotUpdate(NamedTuple):
    """A node's snapshot was seen, in this version; `body` None: it is gone."""

    name: str
    version: int
    body: bytes | None


class NodeUpdate(NamedTuple):
    """A Node was seen; `body` None: it is gone."""

    name: str
    body: bytes | None


class AcquiredLease(NamedTuple):
    """A node's lease was taken."""

    term: int
    before: int = 0
    """The term that it was in; 0: there was none."""
    lease_s: int = 0
    """For how long whoever had it may not know that it is not theirs any more."""


class LeaseRenewal(NamedTuple):
    """A node is alive."""

    term: int
    """In which its agent took the lease."""
    lease_s: int
    """For how long."""
    acknowledged: int = 0
    """The version of its snapshot that it has taken over; 0: nothing is said of that."""


class StatusOrigin(NamedTuple):
    """What a pod's status is about, and which report it is."""

    version: int | None = None
    """Of the pod's binding; None: the server does not count them."""
    report: AgentReport | None = None


NO_ORIGIN: Final = StatusOrigin()


class ControlPlaneError(Exception):
    """The control plane did not do it; trying again may help."""


class StaleError(ControlPlaneError):
    """It was about a pod that is gone or bound anew, or from an agent that was replaced: trying again cannot help."""


class LeaseLostError(ControlPlaneError):
    """Another agent has taken the node."""


class NotServedError(ControlPlaneError):
    """The server has no such kind."""


class ControlPlane(Protocol):
    """Every call raises PlaneError."""

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0) -> AcquiredLease:
        """Take the node's lease, in a new term: greater than its last, and at least this. Who had it has it no more."""

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        """The node is alive. Raises TakenError."""

    async def register_node(self, node: dict[str, Any], report: AgentReport | None = None) -> None:
        """Create the node; one that is there keeps what is not the agent's to say. StaleError: a newer was taken."""

    def watch_pods(self, node: str = "") -> AsyncIterator[PodUpdate]:
        """All pods that are bound, to this node or to any; then what changes, for ever."""

    def watch_snapshots(self, node: str = "", since: int = 0) -> AsyncIterator[SnapshotUpdate]:
        """What changed of the snapshot of this node, or of any, after that version; then what changes, for ever.

        If the server cannot tell any more what changed, or 0: as they are. Raises UnservedError.
        """

    def watch_nodes(self, node: str = "") -> AsyncIterator[NodeUpdate]:
        """This Node, or all; then what changes, for ever."""

    async def report_status(self, pod: dict[str, Any], status: dict[str, Any], about: StatusOrigin = NO_ORIGIN) -> None:
        """What became of a pod, as it was last seen."""

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """A ConfigMap, a Secret or a Node; None: there is none."""

    async def record_event(self, event: dict[str, Any]) -> None:
        """Keep an Event of core/v1; one that is there by that name counts one more."""

    async def delete_pod(self, pod: dict[str, Any]) -> None:
        """A pod that was being deleted has ended."""
