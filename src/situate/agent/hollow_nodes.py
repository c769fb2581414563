"""Hollow nodes, many in one process: they register, renew their leases, and simulate their pods.

One watch each for pods, snapshots and nodes serves all of them. What goes wrong with one pod or one node is logged, and
the others go on. A heap holds the next transition of each pod; a failed status report is retried with backoff, as a
kubelet does. Lease renewals are spread over the renew interval. A node acknowledges a new snapshot with its lease, a
moment later, together with what came meanwhile.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from situate.agent.control_plane import (
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
)
from situate.agent.desired_state import DesiredState, NodeConfiguration, decode_snapshot
from situate.agent.hollow_pods import PodTransition, next_transition, status_after
from situate.agent.node_objects import NodeShape, hollow_node
from situate.agent.node_status import is_ready
from situate.core.reconcile.nodes.reports import AgentReport
from situate.loop.drive import describe_error
from situate.loop.fair_queue import FairQueue
from situate.loop.logs import Log

REPORTS_AT_ONCE: Final = 32
REGISTERED_AT_ONCE: Final = 16
RENEWED_AT_ONCE: Final = 16
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

Key: TypeAlias = tuple[str, str]
T = TypeVar("T")

_log = Log(__name__)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True)
class _TrackedPod:
    """A pod as last seen. Every update gets a new number, which voids the transitions planned before."""

    pod: dict[str, Any]
    number: int
    tries: int = 0


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
    ) -> None:
        """`configuration`: how to renew leases until the control plane sends its own."""
        self.reports = 0
        self.ready = ready or asyncio.Event()
        """All nodes are registered that can be."""
        self._control_plane = control_plane
        self._configuration = configuration or NodeConfiguration()
        self._nodes = {name: _HollowNode(name, shape, _address(at)) for at, (name, shape) in enumerate(shapes)}
        self._only = shapes[0][0] if len(shapes) == 1 else ""
        """The name of the node, if there is one only."""
        self._pods: dict[Key, _TrackedPod] = {}
        self._due: list[tuple[float, int, Key, PodTransition, int]] = []
        self._ready: FairQueue[tuple[Key, PodTransition, int]] = FairQueue()
        """Transitions that are due, by node: nodes take turns, as if each had a kubelet of its own."""
        self._planned = self._updates = 0
        self._woken = asyncio.Event()
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
            for _ in range(REPORTS_AT_ONCE):
                group.create_task(self._run_transitions())

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
                acquired = await self._control_plane.acquire_lease(node.name, lease_s)
                node.term, node.renewed_at = acquired.term, time.monotonic()
                await self._register(node)
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
            await _each(due, self._renew_one, RENEWED_AT_ONCE)
            at = until
            if at == len(nodes) and elapsed >= period_s:
                begun, at = max(begun + period_s, time.monotonic() - TICK_S), 0

    async def _renew_one(self, node: _HollowNode) -> None:
        if node.lost or not node.registered:
            return
        version, lease_s = node.complete, self._configuration.lease_duration_seconds
        try:
            await self._control_plane.renew_lease(node.name, LeaseRenewal(node.term, lease_s, version))
        except LeaseLostError as error:
            node.lost = True
            _log.warning("Another agent has taken a hollow node", node=node.name, err=str(error))
        except ControlPlaneError as error:
            _log.v(2).info("Cannot renew a lease", node=node.name, err=str(error))
            if node.complete > node.acknowledged:
                self._unacknowledged[node.name] = time.monotonic() + RETRY_MS / 1_000
        else:
            node.acknowledged, node.renewed_at = max(version, node.acknowledged), time.monotonic()

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
            await _each([self._nodes[name] for name in due], self._renew_one, RENEWED_AT_ONCE)

    # -- pods --------------------------------------------------------------------------------------------------------

    def _pod_updated(self, update: PodUpdate) -> None:
        key = (update.namespace, update.name)
        if update.body is None:
            self._forget(self._pods.pop(key, None))
            return
        pod = _decode(update.body)
        node = self._nodes.get(pod["spec"].get("nodeName", ""))
        if node is None:
            return
        uid = pod["metadata"]["uid"]
        before = self._pods.get(key)
        if before is not None and before.pod["metadata"]["uid"] != uid:
            self._forget(before)
        self._updates += 1
        tracked = self._pods[key] = _TrackedPod(pod, self._updates)
        if uid not in node.pods:
            node.pods[uid] = None
            self._acknowledge_soon(node)
        transition = next_transition(pod)
        if transition is not None:
            self._plan(key, transition, tracked, transition.after_ms)

    def _forget(self, tracked: _TrackedPod | None) -> None:
        if tracked is not None:
            pod = tracked.pod
            self._nodes[pod["spec"]["nodeName"]].pods.pop(pod["metadata"]["uid"], None)

    def _plan(self, key: Key, transition: PodTransition, tracked: _TrackedPod, after_ms: int) -> None:
        self._planned += 1
        at = time.monotonic() + after_ms / 1_000
        heapq.heappush(self._due, (at, self._planned, key, transition, tracked.number))
        self._woken.set()

    async def _run_transitions(self) -> None:
        while True:
            key, transition, tracked = await self._next()
            try:
                await self._make(transition, tracked)
                self.reports += 1
            except StaleError:
                continue
            except Exception as error:  # noqa: BLE001 - refused, or an odd pod: either way, it is about this pod
                tracked.tries += 1
                wait_ms = min(RETRY_MS << min(tracked.tries, TRIES), RETRY_LAST_MS)
                self._plan(key, transition, tracked, wait_ms)
                if tracked.tries == TRIES:
                    _log.warning("Cannot report a pod's status; retrying", pod="/".join(key), err=describe_error(error))

    async def _next(self) -> tuple[Key, PodTransition, _TrackedPod]:
        """The next transition that is due, of a pod that has not changed since it was planned."""
        while True:
            now = time.monotonic()
            while self._due and self._due[0][0] <= now:
                _, _, key, transition, number = heapq.heappop(self._due)
                tracked = self._pods.get(key)
                if tracked is not None and tracked.number == number:
                    self._ready.push(tracked.pod["spec"]["nodeName"], (key, transition, number))
            while (found := self._ready.pop()) is not None:
                key, transition, number = found[1]
                tracked = self._pods.get(key)
                if tracked is not None and tracked.number == number:
                    return key, transition, tracked
            self._woken.clear()
            wait_s = self._due[0][0] - now if self._due else None
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):  # wait_for may lose a cancellation
                    await self._woken.wait()

    async def _make(self, transition: PodTransition, tracked: _TrackedPod) -> None:
        pod = tracked.pod
        node = self._nodes[pod["spec"]["nodeName"]]
        if transition.to == "deleted":
            await self._control_plane.delete_pod(pod)
            return
        version = node.desired.binding(pod["metadata"]["uid"])
        if version is None and self._has_snapshots:  # the snapshot is on its way
            self._plan((pod["metadata"]["namespace"], pod["metadata"]["name"]), transition, tracked, SOON_MS)
            return
        origin = StatusOrigin(version, node.next_report())
        status = status_after(transition, pod, time.time_ns(), node.address)
        await self._control_plane.report_status(pod, status, origin)


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
