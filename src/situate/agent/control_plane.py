"""What an agent asks of the control plane, over HTTP or in its own process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from situate.core.reconcile.nodes.reports import AgentReport


class PodUpdate(NamedTuple):
    """A pod that is bound to a node. `body` is None if it was deleted. `listed`: the initial list is complete."""

    namespace: str
    name: str
    body: bytes | None
    listed: bool = False
    version: int = 0
    """The revision of the change; 0: unknown."""


class SnapshotUpdate(NamedTuple):
    """A version of a node's snapshot. `body` is None if it was deleted."""

    name: str
    version: int
    body: bytes | None


class NodeUpdate(NamedTuple):
    """A Node. `body` is None if it was deleted."""

    name: str
    body: bytes | None


class AcquiredLease(NamedTuple):
    term: int
    before: int = 0
    """The term of the previous holder; 0: there was none."""
    lease_s: int = 0
    """For how long the previous holder may believe that it still has the lease."""


class LeaseRenewal(NamedTuple):
    term: int
    """The term in which the agent acquired the lease."""
    lease_s: int
    acknowledged: int = 0
    """The version of the node's snapshot that the agent has saved; 0: none."""
    fenced: bool = False
    """The agent promises to stop its pods before the lease can count as expired."""


class StatusOrigin(NamedTuple):
    """Which binding of the pod a status is about, and which report of the agent it is."""

    version: int | None = None
    """The version of the pod's binding; None: the server has no snapshots."""
    report: AgentReport | None = None


NO_ORIGIN: Final = StatusOrigin()


class StatusReport(NamedTuple):
    """A pod, and its status."""

    pod: dict[str, Any]
    status: dict[str, Any]
    origin: StatusOrigin = NO_ORIGIN


class ControlPlaneError(Exception):
    """The call failed; a retry may help."""


class StaleError(ControlPlaneError):
    """The pod is gone or bound again, or another agent has the node: a retry cannot help."""


class LeaseLostError(ControlPlaneError):
    """Another agent has taken the node."""


class NotServedError(ControlPlaneError):
    """The server does not serve this kind."""


class ControlPlane(Protocol):
    """Every method raises ControlPlaneError. A watch without a node name covers all nodes and never ends."""

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0, *, fenced: bool = False) -> AcquiredLease:
        """Take the node's lease in a new term: greater than the last one, and at least `least`. `fenced`: as in a
        renewal, unless another agent had the lease in the term before `least`."""

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        """Raises LeaseLostError."""

    async def register_node(self, node: dict[str, Any], report: AgentReport | None = None) -> None:
        """Create or update the Node; fields of other writers stay. Raises StaleError if a newer report was taken."""

    def watch_pods(self, node: str = "") -> AsyncIterator[PodUpdate]:
        """The pods bound to the node, then every change."""

    def watch_snapshots(self, node: str = "", since: int = 0) -> AsyncIterator[SnapshotUpdate]:
        """The changes after version `since`; all snapshots if it is 0 or too old. Raises NotServedError."""

    def watch_nodes(self, node: str = "") -> AsyncIterator[NodeUpdate]:
        """The Node, then every change."""

    async def report_status(
        self, pod: dict[str, Any], status: dict[str, Any], origin: StatusOrigin = NO_ORIGIN
    ) -> None: ...

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """An object of a kind that agents read; None: there is none."""

    async def set_finalizers(self, volume: dict[str, Any], finalizers: list[str]) -> None:
        """Write the finalizers of a PersistentVolume, if it has not changed since it was read."""

    async def request_token(self, pod: dict[str, Any], audience: str, life_s: int) -> str:
        """A token of the pod's ServiceAccount, bound to the pod. `audience`: "" for the server itself."""

    async def record_event(self, event: dict[str, Any]) -> None:
        """Create an Event, or increment the count of the one with the same name."""

    async def delete_pod(self, pod: dict[str, Any]) -> None:
        """Delete a pod that was being deleted and has stopped."""


class BatchingControlPlane(Protocol):
    """A control plane that takes several writes at once. Each has an outcome of its own: what the call for one would
    raise, or None."""

    async def renew_leases(
        self, renewals: Sequence[tuple[str, LeaseRenewal]]
    ) -> Sequence[ControlPlaneError | None]: ...

    async def report_statuses(self, reports: Sequence[StatusReport]) -> Sequence[ControlPlaneError | None]: ...
