"""Hollow nodes, many in one process: they register, renew their leases, and let their pods live as data says.

One stream each tells all of them of pods, snapshots and nodes. One heap has what happens next to each pod; a report
that fails is tried again, TRIES times, and after that the pod waits for its next change. Leases are renewed one after
the other, spread over the time that a renewal lasts; a node that has taken over a new snapshot says so with its lease,
a moment later, with all that came meanwhile.
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
from situate.agent.node_objects import NodeShape, node_body
from situate.core.reconcile.nodes.reports import AgentReport
from situate.loop.logs import Log

__all__ = ["HollowNodes"]

REPORTS_AT_ONCE: Final = 32
REGISTERED_AT_ONCE: Final = 16
RENEWED_AT_ONCE: Final = 16
TRIES: Final = 5
ACK_S: Final = 0.1
"""Versions that a node takes over within this time are acknowledged together."""
TICK_S: Final = 0.05
"""Renewals that are due within this time go together: a timer for each would cost as much again."""
RETRY_MS: Final = 500
SOON_MS: Final = 50

Key: TypeAlias = tuple[str, str]
T = TypeVar("T")

_log = Log(__name__)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True)
class _Living:
    """A pod as it was last seen; each time it is seen it has another number, and what was planned before is void."""

    pod: dict[str, Any]
    number: int
    tries: int = 0


@dataclass(slots=True)
class _Member:
    """One node."""

    name: str
    shape: NodeShape
    address: str
    term: int = 0
    number: int = 0
    """Of its last report."""
    wanted: DesiredState = field(default_factory=DesiredState)
    pods: dict[str, None] = field(default_factory=dict)
    """The uids of those that it knows."""
    acknowledged: int = 0
    """What it has said that it has taken over."""
    renewed_at: float = 0.0
    taken: bool = False
    """Another agent is this node."""

    def next_report(self) -> AgentReport:
        self.number += 1
        return AgentReport(self.term, self.number)

    @property
    def complete(self) -> int:
        """The version that it has taken over, if it knows all that is in it; else what it has said."""
        held = self.wanted.held
        return held.version if held is not None and held.bindings.keys() <= self.pods.keys() else self.acknowledged


class HollowNodes:
    """`run` it until it is cancelled."""

    def __init__(
        self,
        plane: ControlPlane,
        shapes: Sequence[tuple[str, NodeShape]],
        configuration: NodeConfiguration | None = None,
    ) -> None:
        """`configuration`: how leases are renewed, until the control plane says how."""
        self.reports = 0
        self.ready = asyncio.Event()
        """All nodes are registered."""
        self._plane = plane
        self._configuration = configuration or NodeConfiguration()
        self._members = {name: _Member(name, shape, _address(number)) for number, (name, shape) in enumerate(shapes)}
        self._only = shapes[0][0] if len(shapes) == 1 else ""
        """The one node that there is, if it is one."""
        self._living: dict[Key, _Living] = {}
        self._due: list[tuple[float, int, Key, PodTransition, int]] = []
        self._count = self._seen = 0
        self._told = asyncio.Event()
        self._behind: dict[str, float] = {}
        """Nodes that have taken over more than they have said, and when each is to say so."""
        self._unwell: dict[str, None] = {}
        """Nodes that are held to be lost, and are not."""
        self._counts = True
        """The server has snapshots."""

    async def run(self) -> None:
        await _each(list(self._members.values()), self._begin, REGISTERED_AT_ONCE)
        self.ready.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._renew())
            group.create_task(self._speak())
            group.create_task(self._follow(lambda: self._plane.watch_pods(self._only), self._heard))
            group.create_task(self._follow(lambda: self._plane.watch_nodes(self._only), self._thought))
            group.create_task(self._follow(lambda: self._plane.watch_snapshots(self._only), self._wants))
            for _ in range(REPORTS_AT_ONCE):
                group.create_task(self._live())

    async def _follow(self, begin: Callable[[], AsyncIterator[T]], tell: Callable[[T], None]) -> None:
        while True:
            try:
                async for read in begin():
                    tell(read)
            except NotServedError:
                self._counts = False
                return
            except (ControlPlaneError, msgspec.DecodeError) as error:
                _log.warning("Hollow nodes do not see what there is; trying again", err=str(error))
            await asyncio.sleep(RETRY_MS / 1_000)

    # -- nodes -------------------------------------------------------------------------------------------------------

    async def _begin(self, member: _Member) -> None:
        async def take() -> None:
            taken = await self._plane.acquire_lease(member.name, self._configuration.lease_duration_seconds)
            member.term, member.renewed_at = taken.term, time.monotonic()

        await self._until_done(take)
        await self._until_done(lambda: self._register(member))

    async def _register(self, member: _Member) -> None:
        body = node_body(member.name, member.shape, time.time_ns(), member.address)
        await self._plane.register_node(body, member.next_report())

    async def _until_done(self, call: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await call()
            except ControlPlaneError as error:
                _log.warning("A hollow node waits for the control plane", err=str(error))
                await asyncio.sleep(RETRY_MS / 1_000)

    async def _renew(self) -> None:
        """Every node once in a period, spread over it. Who has acknowledged something lately was renewed by that."""
        members = list(self._members.values())
        begun, at = time.monotonic(), 0
        while True:
            period_s = self._configuration.renew_interval_seconds
            await asyncio.sleep(TICK_S)
            elapsed = time.monotonic() - begun
            until = min(len(members), int(len(members) * elapsed / period_s))
            due = [one for one in members[at:until] if time.monotonic() - one.renewed_at > period_s / 2]
            await _each(due, self._renew_one, RENEWED_AT_ONCE)
            at = until
            if at == len(members) and elapsed >= period_s:
                begun, at = max(begun + period_s, time.monotonic() - TICK_S), 0

    async def _renew_one(self, member: _Member) -> None:
        if member.taken:
            return
        version, lease_s = member.complete, self._configuration.lease_duration_seconds
        try:
            await self._plane.renew_lease(member.name, LeaseRenewal(member.term, lease_s, version))
        except LeaseLostError as error:
            member.taken = True
            _log.warning("Another agent has taken a hollow node", node=member.name, err=str(error))
        except ControlPlaneError as error:
            _log.v(2).info("A lease was not renewed", node=member.name, err=str(error))
            if member.complete > member.acknowledged:
                self._behind[member.name] = time.monotonic() + RETRY_MS / 1_000
        else:
            member.acknowledged, member.renewed_at = max(version, member.acknowledged), time.monotonic()

    def _thought(self, read: NodeUpdate) -> None:
        """A node that is held to be lost says at once that it is not."""
        member = self._members.get(read.name)
        if member is not None and not member.taken and read.body is not None and not _is_ready(_decode(read.body)):
            self._unwell[read.name] = None

    async def _say_well(self, member: _Member) -> None:
        try:
            await self._register(member)
        except ControlPlaneError as error:
            _log.v(2).info("A hollow node is not heard", node=member.name, err=str(error))
            self._unwell[member.name] = None

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def _wants(self, read: SnapshotUpdate) -> None:
        member = self._members.get(read.name)
        if member is None or read.body is None:
            return
        told = decode_snapshot(read.body)
        if member.wanted.told(told) == "newer":
            self._configuration = told.configuration
            self._may_acknowledge(member)

    def _may_acknowledge(self, member: _Member) -> None:
        if member.complete > member.acknowledged:
            self._behind.setdefault(member.name, time.monotonic() + ACK_S)

    async def _speak(self) -> None:
        """For nodes that have something to say before their lease is to be renewed."""
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            unwell, self._unwell = [self._members[name] for name in self._unwell], {}
            await _each(unwell, self._say_well, RENEWED_AT_ONCE)
            due = [name for name, at in self._behind.items() if at <= now]
            for name in due:
                del self._behind[name]
            await _each([self._members[name] for name in due], self._renew_one, RENEWED_AT_ONCE)

    # -- pods --------------------------------------------------------------------------------------------------------

    def _heard(self, read: PodUpdate) -> None:
        key = (read.namespace, read.name)
        if read.body is None:
            self._forget(self._living.pop(key, None))
            return
        pod = _decode(read.body)
        member = self._members.get(pod["spec"].get("nodeName", ""))
        if member is None:
            return
        uid = pod["metadata"]["uid"]
        before = self._living.get(key)
        if before is not None and before.pod["metadata"]["uid"] != uid:
            self._forget(before)
        self._seen += 1
        living = self._living[key] = _Living(pod, self._seen)
        if uid not in member.pods:
            member.pods[uid] = None
            self._may_acknowledge(member)
        step = next_transition(pod)
        if step is not None:
            self._plan(key, step, living, step.after_ms)

    def _forget(self, living: _Living | None) -> None:
        if living is not None:
            pod = living.pod
            self._members[pod["spec"]["nodeName"]].pods.pop(pod["metadata"]["uid"], None)

    def _plan(self, key: Key, step: PodTransition, living: _Living, after_ms: int) -> None:
        self._count += 1
        heapq.heappush(self._due, (time.monotonic() + after_ms / 1_000, self._count, key, step, living.number))
        self._told.set()

    async def _live(self) -> None:
        while True:
            key, step, living = await self._next()
            try:
                await self._take(step, living)
                self.reports += 1
            except StaleError:
                continue
            except ControlPlaneError as error:
                living.tries += 1
                if living.tries < TRIES:
                    self._plan(key, step, living, RETRY_MS << living.tries)
                else:
                    _log.warning("A pod's status is not taken", pod="/".join(key), err=str(error))

    async def _next(self) -> tuple[Key, PodTransition, _Living]:
        """The next step that is due, of a pod that has not changed since it was planned."""
        while True:
            now = time.monotonic()
            while self._due and self._due[0][0] <= now:
                _, _, key, step, planned = heapq.heappop(self._due)
                living = self._living.get(key)
                if living is not None and living.number == planned:
                    return key, step, living
            self._told.clear()
            wait_s = self._due[0][0] - now if self._due else None
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):  # wait_for may lose a cancellation
                    await self._told.wait()

    async def _take(self, step: PodTransition, living: _Living) -> None:
        pod = living.pod
        member = self._members[pod["spec"]["nodeName"]]
        if step.then == "goes":
            await self._plane.delete_pod(pod)
            return
        version = member.wanted.binding(pod["metadata"]["uid"])
        if version is None and self._counts:  # its snapshot is on the way
            self._plan((pod["metadata"]["namespace"], pod["metadata"]["name"]), step, living, SOON_MS)
            return
        about = StatusOrigin(version, member.next_report())
        await self._plane.report_status(pod, status_after(step, pod, time.time_ns(), member.address), about)


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _address(number: int) -> str:
    return f"10.{number >> 16 & 63}.{number >> 8 & 255}.{number & 255}"


async def _each(items: Sequence[T], do: Callable[[T], Awaitable[None]], at_once: int) -> None:
    """At most so many at a time."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(work())
