"""Counts pods by workload, node and namespace, for the summaries.

Only readers pay for it: changes queue in a watch until the next read, which applies them a few at a time, yielding to
other tasks. After a while without reads, or with too many queued changes, the counts are dropped, and the next read
counts again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypeVar

from situate.core.model.ledger import Amounts, amounts_of
from situate.core.model.meta import controller_of
from situate.core.model.pod import Pod
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.watch import open_watch
from situate.server.registry.watchers import ObjectWatch, WatchEvent
from situate.server.requests import Target, WatchOptions
from situate.server.resources import BY_KIND
from situate.server.views.pace import Pace
from situate.wire.objects import decode_pod

PODS: Final = BY_KIND["v1", "Pod"]
EVENTS_PER_STEP: Final = 10
"""Events to apply between two calls of `Pace.pause`."""
IDLE_S: Final = 15.0
"""Drop the counts after so long without a read."""
BACKLOG: Final = 1 << 17
"""Changes that may queue for the next read. With more, it counts again."""

State: TypeAlias = Literal["waiting", "bound", "running", "succeeded", "failed", "leaving"]
STATES: Final[tuple[State, ...]] = ("waiting", "bound", "running", "succeeded", "failed", "leaving")
OVER: Final = ("succeeded", "failed")
K = TypeVar("K")
S = TypeVar("S", bound="PodTotals")


@dataclass(frozen=True, slots=True)
class WorkloadRef:
    """The workload of a pod: its controller, or the pod itself."""

    namespace: str
    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class _Record:
    """What one pod adds to the totals."""

    name: str
    owner: WorkloadRef
    node: str
    state: State
    ready: bool
    amounts: Amounts


@dataclass(slots=True, eq=False)
class PodTotals:
    """Totals over pods."""

    states: Counter[State] = field(default_factory=Counter)
    ready: int = 0
    requested: Counter[str] = field(default_factory=Counter)
    """By pods that are bound and not finished."""

    @property
    def pods(self) -> int:
        return self.states.total()

    def add(self, one: _Record, sign: int) -> None:
        self.states[one.state] += sign
        self.ready += sign * one.ready
        if one.node and one.state not in OVER:
            for resource, amount in one.amounts.items():
                self.requested[resource] += sign * amount

    def merge(self, other: PodTotals) -> None:
        self.states.update(other.states)
        self.ready += other.ready
        self.requested.update(other.requested)


@dataclass(slots=True, eq=False)
class WorkloadTotals(PodTotals):
    """Totals over the pods of one workload."""

    nodes: Counter[str] = field(default_factory=Counter)
    waiting: dict[str, None] = field(default_factory=dict)
    """Names of pending pods, oldest first."""

    def add(self, one: _Record, sign: int) -> None:
        PodTotals.add(self, one, sign)
        if one.node and one.state not in OVER:
            self.nodes[one.node] += sign
            if not self.nodes[one.node]:
                del self.nodes[one.node]
        if one.state == "waiting":
            if sign > 0:
                self.waiting[one.name] = None
            else:
                self.waiting.pop(one.name, None)


class PodCounter:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._watch: ObjectWatch | None = None
        self._lock = asyncio.Lock()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._clear()

    def _clear(self) -> None:
        self._records: dict[str, _Record] = {}
        self._workloads: dict[WorkloadRef, WorkloadTotals] = {}
        self._nodes: dict[str, PodTotals] = {}
        self._namespaces: dict[str, PodTotals] = {}

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[int]:
        """The counts are current, and do not change inside of the block; yields their revision."""
        async with self._lock:
            self._reset_idle_timer()
            await self._cache.wait_until_fresh()
            yield await self._catch_up()

    async def _catch_up(self) -> int:
        pace = Pace()
        while True:
            if self._watch is None:
                self._clear()
                options = WatchOptions(resource_version="0")
                self._watch = await open_watch(self._cache, Target(PODS), options, backlog=BACKLOG)
            events = list(self._watch.ready(EVENTS_PER_STEP))
            if any(event.type == "ERROR" for event in events) or (not events and self._watch.ended):
                await self._stop()  # the queue was full, or the history is gone
                await self._cache.wait_for(0)  # raises if the cache has failed, so that this loop ends
                continue
            for event in events:
                self._apply(event)
            if not events:
                return self._cache.revision
            await pace.pause()

    @property
    def workloads(self) -> Mapping[WorkloadRef, WorkloadTotals]:
        return self._workloads

    def on_node(self, name: str) -> PodTotals:
        return self._nodes.get(name) or PodTotals()

    def in_namespace(self, name: str) -> PodTotals:
        return self._namespaces.get(name) or PodTotals()

    async def aclose(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        await self._stop()

    async def _stop(self) -> None:
        watching, self._watch = self._watch, None
        if watching is not None:
            await watching.aclose()
        self._clear()

    def _reset_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = asyncio.get_running_loop().call_later(IDLE_S, self._drop)

    def _drop(self) -> None:
        if self._lock.locked():
            self._reset_idle_timer()
            return
        watching, self._watch = self._watch, None
        if watching is not None:
            watching.end()
        self._clear()

    # -- counting ------------------------------------------------------------------------------------------------------

    def _apply(self, event: WatchEvent) -> None:
        stored = event.stored
        if stored is None:
            return
        before = self._records.pop(stored.key, None)
        if before is not None:
            self._count(before, -1)
        if event.type != "DELETED":
            self._records[stored.key] = record = _record(stored)
            self._count(record, 1)

    def _count(self, one: _Record, sign: int) -> None:
        _add(self._workloads, one.owner, WorkloadTotals, one, sign)
        _add(self._namespaces, one.owner.namespace, PodTotals, one, sign)
        if one.node:
            _add(self._nodes, one.node, PodTotals, one, sign)


def _add(sums: dict[K, S], key: K, kind: type[S], one: _Record, sign: int) -> None:
    found = sums.get(key)
    if found is None:
        found = sums[key] = kind()
    found.add(one, sign)
    if not found.pods:
        del sums[key]


def _record(stored: StoredObject) -> _Record:
    pod = decode_pod(stored.value)
    controller = controller_of(pod.metadata)
    if controller is None:
        owner = WorkloadRef(stored.namespace, "v1", "Pod", stored.name, stored.uid)
    else:
        owner = WorkloadRef(stored.namespace, controller.api_version, controller.kind, controller.name, controller.uid)
    state = _state(pod)
    ready = state == "running" and any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return _Record(stored.name, owner, pod.spec.node_name, state, ready, amounts_of(pod))


def _state(pod: Pod) -> State:
    match pod.status.phase:
        case "Succeeded":
            return "succeeded"
        case "Failed":
            return "failed"
    if pod.metadata.deletion_timestamp is not None:
        return "leaving"
    if not pod.spec.node_name:
        return "waiting"
    return "running" if pod.status.phase == "Running" else "bound"
