"""Hollow nodes, many in one process: they register, renew their leases, and simulate their pods.

One watch each for pods, snapshots and nodes serves all of them. What goes wrong with one pod or one node is logged, and
the others go on. A heap holds the next transition of each pod; a failed status report is retried with backoff, as a
kubelet does. Lease renewals are spread over the renew interval. A node acknowledges a new snapshot with its lease, a
moment later, together with what came meanwhile. In the server's own process, what is due of many nodes is written
together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from situate.agent.control_plane import (
    BatchingControlPlane,
    ControlPlane,
    ControlPlaneError,
    LeaseLostError,
    LeaseRenewal,
    NodeUpdate,
    NotServedError,
    PodUpdate,
    SnapshotUpdate,
    StaleError,
    StatusOrigin,
    StatusReport,
)
from situate.agent.desired_state import DesiredState, NodeConfiguration, decode_snapshot
from situate.agent.events import event_body
from situate.agent.hollow_pods import PodTransition, decode_pod, next_transition, status_after
from situate.agent.hollow_transitions import Due, Key, PlannedTransitions, TrackedPod
from situate.agent.node_objects import NodeShape, hollow_node
from situate.agent.node_status import is_ready
from situate.agent.pod_claims import FAILED, UnpreparedError, check_claims, has_claims
from situate.core.reconcile.nodes.reports import AgentReport
from situate.loop.drive import describe_error
from situate.loop.logs import Log

REPORTS_AT_ONCE: Final = 32
REGISTERED_AT_ONCE: Final = 16
RENEWED_AT_ONCE: Final = 16
BATCH: Final = 32
"""How many statuses, or renewals, are written together."""
BATCHES_AT_ONCE: Final = 4
"""How many batches of statuses may be under way. One takes as long as its slowest status."""
TRIES: Final = 5
"""After so many, a report that fails is logged."""
ACK_S: Final = 0.1
"""Versions of this time are acknowledged together."""
TICK_S: Final = 0.05
"""Renewals of this time go together: a timer for each would cost as much again."""
RETRY_MS: Final = 500
RETRY_LAST_MS: Final = 5_000
"""The longest wait before a report is tried again."""
START_TRIES: Final = 2
"""How often a node tries to register before the others go on without it."""
LATE_S: Final = 5.0
"""How often those that could not register try again."""
SOON_MS: Final = 50

T = TypeVar("T")

_log = Log(__name__)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True)
class _HollowNode:
    name: str
    shape: NodeShape
    address: str
    term: int = 0
    reports: int = 0
    desired: DesiredState = field(default_factory=DesiredState)
    pods: dict[str, None] = field(default_factory=dict)
    """The uids of the pods that it has seen."""
    acknowledged: int = 0
    renewed_at: float = 0.0
    registered: bool = False
    lost: bool = False
    """Another agent has taken this node."""

    def next_report(self) -> AgentReport:
        self.reports += 1
        return AgentReport(self.term, self.reports)

    @property
    def complete(self) -> int:
        """The snapshot version of which it has seen every pod; if there is none, the acknowledged one."""
        held = self.desired.held
        return held.version if held is not None and held.bindings.keys() <= self.pods.keys() else self.acknowledged


class HollowNodes:
    """`run` it until it is cancelled."""

    def __init__(
        self,
        control_plane: ControlPlane,
        shapes: Sequence[tuple[str, NodeShape]],
        configuration: NodeConfiguration | None = None,
        ready: asyncio.Event | None = None,
        publish: Callable[[str], Awaitable[None]] | None = None,
        batching: BatchingControlPlane | None = None,
    ) -> None:
        """`configuration`: how to renew leases until the control plane sends its own. `publish` is called with the name
        of each node that has registered; it publishes the node's devices. `batching`: the control plane, if it takes
        several writes at once."""
        self.reports = 0
        self.ready = ready or asyncio.Event()
        """All nodes are registered that can be."""
        self._control_plane = control_plane
        self._batching = batching
        self._publish = publish
        self._configuration = configuration or NodeConfiguration()
        self._nodes = {name: _HollowNode(name, shape, _address(at)) for at, (name, shape) in enumerate(shapes)}
        self._only = shapes[0][0] if len(shapes) == 1 else ""
        """The name of the node, if there is one only."""
        self._transitions = PlannedTransitions()
        self._updates = 0
        self._unacknowledged: dict[str, float] = {}
        """Nodes with a snapshot to acknowledge, and when."""
        self._not_ready: dict[str, None] = {}
        """Nodes that the control plane takes for lost."""
        self._has_snapshots = True
        """The server serves NodeSnapshots."""

    async def run(self) -> None:
        while not any(node.registered for node in self._nodes.values()):
            await self._register_all()
        self.ready.set()
        plane, only = self._control_plane, self._only
        async with asyncio.TaskGroup() as group:
            group.create_task(self._register_late())
            group.create_task(self._renew())
            group.create_task(self._send_due())
            group.create_task(self._watch(lambda: plane.watch_pods(only), self._pod_updated))
            group.create_task(self._watch(lambda: plane.watch_nodes(only), self._node_updated))
            group.create_task(self._watch(lambda: plane.watch_snapshots(only), self._snapshot_updated))
            group.create_task(self._run_transitions() if self._batching is None else self._run_batches(self._batching))

    async def _watch(self, begin: Callable[[], AsyncIterator[T]], handle: Callable[[T], None]) -> None:
        while True:
            try:
                async for update in begin():
                    try:
                        handle(update)
                    except Exception as error:  # noqa: BLE001 - whatever it is, it is about this object
                        where = f"{getattr(update, 'namespace', '')}/{getattr(update, 'name', '')}"
                        _log.error("Hollow nodes cannot use an object", name=where, err=describe_error(error))
            except NotServedError:
                self._has_snapshots = False
                return
            except (ControlPlaneError, msgspec.DecodeError) as error:
                _log.warning("Hollow nodes cannot watch the control plane; retrying", err=str(error))
            await asyncio.sleep(RETRY_MS / 1_000)

    # -- nodes -------------------------------------------------------------------------------------------------------

    async def _register_all(self) -> None:
        await _each([one for one in self._nodes.values() if not one.registered], self._start, REGISTERED_AT_ONCE)

    async def _register_late(self) -> None:
        while not all(node.registered for node in self._nodes.values()):
            await asyncio.sleep(LATE_S)
            await self._register_all()

    async def _start(self, node: _HollowNode) -> None:
        """Take the node's lease, and register it. If it cannot be done, leave it for later."""
        for _ in range(START_TRIES):
            try:
                lease_s = self._configuration.lease_duration_seconds
                acquired = await self._control_plane.acquire_lease(node.name, lease_s, fenced=True)
                node.term, node.renewed_at = acquired.term, time.monotonic()
                await self._register(node)
                if self._publish is not None:
                    await self._publish(node.name)
                node.registered = True
                return
            except ControlPlaneError as error:
                _log.warning("A hollow node cannot register; retrying", node=node.name, err=str(error))
            await asyncio.sleep(RETRY_MS / 1_000)

    async def _register(self, node: _HollowNode) -> None:
        body = hollow_node(node.name, node.shape, time.time_ns(), node.address)
        await self._control_plane.register_node(body, node.next_report())

    async def _renew(self) -> None:
        """Renew every node once per interval, spread over it. An acknowledgement counts as a renewal."""
        nodes = list(self._nodes.values())
        begun, at = time.monotonic(), 0
        while True:
            period_s = self._configuration.renew_interval_seconds
            await asyncio.sleep(TICK_S)
            elapsed = time.monotonic() - begun
            until = min(len(nodes), int(len(nodes) * elapsed / period_s))
            due = [one for one in nodes[at:until] if time.monotonic() - one.renewed_at > period_s / 2]
            await self._renew_all(due)
            at = until
            if at == len(nodes) and elapsed >= period_s:
                begun = max(begun + period_s, time.monotonic() - TICK_S)

    async def _renew_all(self, nodes: Sequence[_HollowNode]) -> None:
        if self._batching is None:
            await _each(nodes, self._renew_one, RENEWED_AT_ONCE)
            return
        for start in range(0, len(nodes), BATCH):
            await self._renew_batch(nodes[start : start + BATCH], self._batching)

    async def _renew_batch(self, nodes: Sequence[_HollowNode], control_plane: BatchingControlPlane) -> None:
        due = [node for node in nodes if node.registered and not node.lost]
        renewals = [(node.name, self._renewal(node)) for node in due]
        outcomes = await control_plane.renew_leases(renewals)
        for node, (_, renewal), outcome in zip(due, renewals, outcomes, strict=True):
            self._renewed(node, renewal.acknowledged, outcome)

    async def _renew_one(self, node: _HollowNode) -> None:
        if node.lost or not node.registered:
            return
        renewal, problem = self._renewal(node), None
        try:
            await self._control_plane.renew_lease(node.name, renewal)
        except ControlPlaneError as error:
            problem = error
        self._renewed(node, renewal.acknowledged, problem)

    def _renewal(self, node: _HollowNode) -> LeaseRenewal:
        return LeaseRenewal(node.term, self._configuration.lease_duration_seconds, node.complete, True)

    def _renewed(self, node: _HollowNode, version: int, problem: ControlPlaneError | None) -> None:
        if problem is None:
            node.acknowledged, node.renewed_at = max(version, node.acknowledged), time.monotonic()
        elif isinstance(problem, LeaseLostError):
            node.lost = True
            _log.warning("Another agent has taken a hollow node", node=node.name, err=str(problem))
        else:
            _log.v(2).info("Cannot renew a lease", node=node.name, err=str(problem))
            if node.complete > node.acknowledged:
                self._unacknowledged[node.name] = time.monotonic() + RETRY_MS / 1_000

    def _node_updated(self, update: NodeUpdate) -> None:
        """A node that the control plane takes for lost reports its status at once."""
        node = self._nodes.get(update.name)
        if node is None or not node.registered or node.lost or update.body is None:
            return
        if not is_ready(_decode(update.body)):
            self._not_ready[update.name] = None

    async def _report_ready(self, node: _HollowNode) -> None:
        try:
            await self._register(node)
        except ControlPlaneError as error:
            _log.v(2).info("Cannot report a hollow node's status", node=node.name, err=str(error))
            self._not_ready[node.name] = None

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def _snapshot_updated(self, update: SnapshotUpdate) -> None:
        node = self._nodes.get(update.name)
        if node is None or update.body is None:
            return
        snapshot = decode_snapshot(update.body)
        if node.desired.update(snapshot) == "newer":
            self._configuration = snapshot.configuration
            self._acknowledge_soon(node)

    def _acknowledge_soon(self, node: _HollowNode) -> None:
        if node.complete > node.acknowledged:
            self._unacknowledged.setdefault(node.name, time.monotonic() + ACK_S)

    async def _send_due(self) -> None:
        """Send statuses and acknowledgements that cannot wait for the next renewal."""
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            not_ready, self._not_ready = [self._nodes[name] for name in self._not_ready], {}
            await _each(not_ready, self._report_ready, RENEWED_AT_ONCE)
            due = [name for name, at in self._unacknowledged.items() if at <= now]
            for name in due:
                del self._unacknowledged[name]
            await self._renew_all([self._nodes[name] for name in due])

    # -- pods --------------------------------------------------------------------------------------------------------

    def _pod_updated(self, update: PodUpdate) -> None:
        key = (update.namespace, update.name)
        if update.body is None:
            self._forget(self._transitions.pods.pop(key, None))
            return
        pod = decode_pod(update.body)
        node = self._nodes.get(pod["spec"].get("nodeName", ""))
        if node is None:
            return
        uid = pod["metadata"]["uid"]
        before = self._transitions.pods.get(key)
        if before is not None and before.uid != uid:
            self._forget(before)
        self._updates += 1
        tracked = self._transitions.pods[key] = TrackedPod(uid, node.name, self._updates)
        if uid not in node.pods:
            node.pods[uid] = None
            self._acknowledge_soon(node)
        transition = next_transition(pod)
        if transition is not None:
            tracked.pod = pod
            self._transitions.plan(key, transition, tracked, transition.after_ms)

    def _forget(self, tracked: TrackedPod | None) -> None:
        if tracked is not None:
            self._nodes[tracked.node].pods.pop(tracked.uid, None)

    async def _run_transitions(self) -> None:
        """Make what is due, so many at once. One task waits for it: each change would wake all that wait."""
        free = asyncio.Semaphore(REPORTS_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            while True:
                await free.acquire()
                group.create_task(self._run_transition(*await self._transitions.next(), free))

    async def _run_batches(self, control_plane: BatchingControlPlane) -> None:
        """The same, with as many statuses as are due in one write. Deletions, and pods with claims, run beside the
        batches."""
        batches, others = asyncio.Semaphore(BATCHES_AT_ONCE), asyncio.Semaphore(REPORTS_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            while True:
                await batches.acquire()
                due = [await self._transitions.next(), *self._transitions.more(BATCH - 1)]
                group.create_task(self._run_batch([one for one in due if _is_status(one)], control_plane, batches))
                for one in due:
                    if not _is_status(one):
                        await others.acquire()
                        group.create_task(self._run_transition(*one, others))

    async def _run_batch(
        self, due: Sequence[Due], control_plane: BatchingControlPlane, free: asyncio.Semaphore
    ) -> None:
        try:
            reports = [(one, report) for one in due if (report := self._batched(one)) is not None]
            if reports:
                await self._report_together(reports, control_plane)
        finally:
            free.release()

    def _batched(self, one: Due) -> StatusReport | None:
        """The report of a transition; None: not now."""
        _, transition, tracked = one
        try:
            return self._report(transition, tracked)
        except Exception as error:  # noqa: BLE001 - an odd pod
            self._transition_made(*one, error)
            return None

    async def _report_together(
        self, reports: Sequence[tuple[Due, StatusReport]], control_plane: BatchingControlPlane
    ) -> None:
        outcomes: Sequence[Exception | None]
        try:
            outcomes = await control_plane.report_statuses([report for _, report in reports])
        except Exception as error:  # noqa: BLE001 - whatever it is, each is tried again
            outcomes = [error] * len(reports)
        for (one, _), outcome in zip(reports, outcomes, strict=True):
            self._transition_made(*one, outcome)

    async def _run_transition(
        self, key: Key, transition: PodTransition, tracked: TrackedPod, free: asyncio.Semaphore
    ) -> None:
        try:
            await self._run_alone(key, transition, tracked)
        finally:
            free.release()

    async def _run_alone(self, key: Key, transition: PodTransition, tracked: TrackedPod) -> None:
        problem: Exception | None = None
        try:
            await self._make(transition, tracked)
        except Exception as error:  # noqa: BLE001 - refused, or an odd pod: either way, it is about this pod
            problem = error
        self._transition_made(key, transition, tracked, problem)

    def _transition_made(
        self, key: Key, transition: PodTransition, tracked: TrackedPod, problem: Exception | None
    ) -> None:
        if problem is None:
            self.reports += 1
        elif not isinstance(problem, StaleError):
            tracked.tries += 1
            wait_ms = min(RETRY_MS << min(tracked.tries, TRIES), RETRY_LAST_MS)
            self._transitions.plan(key, transition, tracked, wait_ms)
            if tracked.tries == TRIES:
                _log.warning("Cannot report a pod's status; retrying", pod="/".join(key), err=describe_error(problem))

    async def _make(self, transition: PodTransition, tracked: TrackedPod) -> None:
        pod = tracked.pod
        if transition.to == "deleted":
            await self._control_plane.delete_pod(pod)
            return
        known = not self._has_snapshots or self._nodes[tracked.node].desired.binding(tracked.uid) is not None
        if transition.to == "running" and known and has_claims(pod):
            await self._prepare_claims(pod, self._nodes[tracked.node])
        report = self._report(transition, tracked)
        if report is not None:
            await self._control_plane.report_status(*report)

    def _report(self, transition: PodTransition, tracked: TrackedPod) -> StatusReport | None:
        """None: the snapshot with the pod's binding is on its way, and the report is planned again."""
        pod, node = tracked.pod, self._nodes[tracked.node]
        version = node.desired.binding(tracked.uid)
        if version is None and self._has_snapshots:
            self._transitions.plan(
                (pod["metadata"]["namespace"], pod["metadata"]["name"]), transition, tracked, SOON_MS
            )
            return None
        status = status_after(transition, pod, time.time_ns(), node.address)
        return StatusReport(pod, status, StatusOrigin(version, node.next_report()))

    async def _prepare_claims(self, pod: dict[str, Any], node: _HollowNode) -> None:
        """Raises UnpreparedError, and reports it as an event: the pod starts later, as with a kubelet."""
        try:
            await check_claims(pod, self._control_plane)
        except UnpreparedError as error:
            text = f"Failed to prepare dynamic resources: {error}"
            event = event_body(pod, node.name, "Warning", FAILED, text, "", time.time_ns())
            await self._control_plane.record_event(event)
            raise


def _is_status(one: Due) -> bool:
    """Whether all that is to be done is to write a status."""
    _, transition, tracked = one
    return transition.to != "deleted" and not has_claims(tracked.pod)


def _address(number: int) -> str:
    return f"10.{number >> 16 & 63}.{number >> 8 & 255}.{number & 255}"


async def _each(items: Sequence[T], do: Callable[[T], Awaitable[None]], at_once: int) -> None:
    """Run `do` for all items, at most `at_once` at a time."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(work())
