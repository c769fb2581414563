"""Measures how far nodes are behind their snapshots: a metric for all nodes, a condition and an event for late ones.

    situate_snapshot_lag_seconds       from the commit of a snapshot to its acknowledgement on the node's lease
    situate_snapshot_lagging_nodes     nodes that are behind by more than the bound

A node that is behind by more than the bound has the condition SnapshotLagging. The condition changes nothing for the
node: leases tell which nodes are lost. If several servers share a store, each measures, and one of them writes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Final, Literal, TypeAlias

import msgspec
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

from situate.core.model.integers import parse_count
from situate.core.reconcile.effects import ObjectRef, RecordEvent
from situate.core.reconcile.nodes.cleanup import LEASES as NODE_LEASES
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED
from situate.loop.controllers.events import event_body
from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import LEASES, NODES
from situate.server.placing.binding import with_condition
from situate.server.placing.lag_tracker import LagTracker
from situate.server.placing.snapshots import NODE_SNAPSHOTS
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.watchers import WatchEvent
from situate.server.requests import SYSTEM, Object, Target, WatchOptions
from situate.server.resources import BY_KIND, Resource
from situate.wire.bodies import seconds_time

BOUND_S: Final = 5.0
LAGGING: Final = "SnapshotLagging"
MARK: Final = LAGGING.encode()
LOOK_S: Final = 1.0
WATCH: Final = WatchOptions(initial_events=True, resource_version_match="NotOlderThan")
AT_ONCE: Final = 50
"""How many nodes to mark at a time, in case all of them are late at once."""
AGAIN_S: Final = 1.0
BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
EVENTS: Final = BY_KIND["v1", "Event"]
EVENTS_NAMESPACE: Final = "default"
"""The namespace of events about nodes."""
SOURCE: Final = "situate-server"

EventType: TypeAlias = Literal["Normal", "Warning"]

_log = Log(__name__)


class _Meta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


_decode_lease: Final = msgspec.json.Decoder(_Lease).decode


class SnapshotLag:
    """`run` it until cancelled."""

    def __init__(
        self,
        registry: Registry,
        bound_s: float = BOUND_S,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._registry = registry
        self._bound_s = bound_s
        self._clock = clock
        self._wall_ns = wall_ns
        self._lags = LagTracker()
        self._marked: dict[str, None] = {}
        self.metrics = CollectorRegistry()
        self._seconds = Histogram(
            "situate_snapshot_lag_seconds",
            "From the commit of a node's snapshot to its acknowledgement by the node's agent.",
            registry=self.metrics,
            buckets=BUCKETS,
        )
        self._late = Gauge(
            "situate_snapshot_lagging_nodes",
            "Nodes that are behind their snapshot by more than the bound.",
            registry=self.metrics,
        )

    def render(self) -> bytes:
        return generate_latest(self.metrics)

    async def run(self) -> None:
        self._lags = LagTracker()  # since an earlier run, nodes may have been deleted
        for held in self._registry.cache.all(NODES):  # marked by an earlier server
            if MARK in held.value and (_condition(held.object(NODES)) or {}).get("status") == "True":
                self._marked[held.name] = None
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(LEASES, NODE_LEASES, self._leased))
            group.create_task(self._follow(NODE_SNAPSHOTS, "", self._snapped))
            group.create_task(self._look())

    # -- watches -----------------------------------------------------------------------------------------------------

    async def _follow(self, resource: Resource, namespace: str, take: Callable[[WatchEvent], None]) -> None:
        while True:
            try:
                async with aclosing(await self._registry.watch(Target(resource, namespace), WATCH)) as events:
                    async for event in events:
                        self._take(event, take)
            except StatusError as error:
                _log.warning("Cannot watch for snapshots' lag; trying again", kind=resource.plural, err=error.message)
            await asyncio.sleep(AGAIN_S)

    @staticmethod
    def _take(event: WatchEvent, take: Callable[[WatchEvent], None]) -> None:
        try:
            take(event)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is about this node
            name = getattr(event.stored, "key", "")
            _log.error("Cannot measure the lag of a node's snapshot", key=name, err=describe_error(error))

    def _leased(self, event: WatchEvent) -> None:
        held = event.stored
        if held is None:
            return
        if event.type == "DELETED":
            self._lags.gone(held.name)
            return
        version = parse_count(_decode_lease(held.value).metadata.annotations.get(ACKNOWLEDGED, ""))
        if version is None:
            return
        for seconds in self._lags.acknowledged(held.name, version, self._clock()):
            self._seconds.observe(seconds)
        newest = self._registry.cache.get(NODE_SNAPSHOTS, "", held.name)
        if newest is not None:  # committed before we saw the node's lease
            self._lags.begun(held.name, newest.revision, self._clock())

    def _snapped(self, event: WatchEvent) -> None:
        if event.stored is not None and event.type != "DELETED":
            self._lags.committed(event.stored.name, event.revision, self._clock())

    # -- late nodes --------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            late = {node: (version, by) for node, version, by in self._lags.behind(self._clock(), self._bound_s)}
            self._late.set(len(late))
            new = [node for node in late if node not in self._marked][:AT_ONCE]
            well = [node for node in self._marked if node not in late][:AT_ONCE]
            for node in new:
                version, by = late[node]
                text = f"snapshot {version} was committed {by:.1f} s ago, and the agent has not acknowledged it"
                if await self._mark(node, "True", "SnapshotNotAcknowledged", text, "Warning"):
                    self._marked[node] = None
            for node in well:
                if await self._mark(node, "False", "SnapshotAcknowledged", "the agent is up to date", "Normal"):
                    del self._marked[node]

    async def _mark(self, node: str, status: str, reason: str, message: str, kind: EventType) -> bool:
        """Whether the node is marked so, by us or by another server."""
        changed = False

        def change(found: Object, held: StoredObject) -> Object:
            nonlocal changed
            held_one = _condition(found)
            changed = (held_one is None and status == "True") or (held_one is not None and held_one["status"] != status)
            if changed:
                said = {"type": LAGGING, "status": status, "reason": reason, "message": message}
                with_condition(found.setdefault("status", {}), said, seconds_time(self._wall_ns()), probed=False)
            return found

        try:
            await self._registry.modify(Target(NODES, "", node, "status"), change, SYSTEM)
            if changed:
                await self._registry.create(Target(EVENTS, EVENTS_NAMESPACE), self._event(node, kind, message), SYSTEM)
        except StatusError as error:
            _log.v(2).info("Cannot write a node's lag", node=node, err=error.message)
            return error.code == HTTPStatus.NOT_FOUND
        return True

    def _event(self, node: str, kind: EventType, message: str) -> Object:
        now_ns = self._wall_ns()
        reason = LAGGING if kind == "Warning" else "SnapshotCurrent"
        event = RecordEvent(ObjectRef("v1", "Node", "", node, node), kind, reason, message)
        return event_body(event, f"{node[:200]}.{now_ns:x}", seconds_time(now_ns), SOURCE)


def _condition(node: Object) -> Object | None:
    conditions = node.get("status", {}).get("conditions", ())
    return next((one for one in conditions if one.get("type") == LAGGING), None)
