"""Shares the server among its users: priority levels, and what each flow has in use.

A level has slots that no other level can take. Within a level, flows share them (`fair_slots`). As in Kubernetes' API
Priority and Fairness, system:masters is exempt, and the control plane's parts and nodes have a level of their own.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

from situate.loop.fair_slots import FairSlots, QueueFullError, SlotLimits
from situate.loop.token_buckets import TokenBuckets
from situate.server.errors import StatusError, too_many_requests
from situate.server.http.metrics import RequestMetrics
from situate.server.http.settings import Limits
from situate.server.requests import Caller

BUSY: Final = "Too many requests, please try again later."
MASTERS: Final = "system:masters"
NODES: Final = "system:nodes"
UNAUTHENTICATED: Final = "system:unauthenticated"
ACCOUNT: Final = "system:serviceaccount:"
EXEMPT: Final = "exempt"
SYSTEM: Final = "system"
WORKLOAD: Final = "workload"
ANONYMOUS: Final = "anonymous"
HEALTH: Final = "health"
READ_ONLY: Final = "readOnly"
MUTATING: Final = "mutating"
_PARTS: Final = frozenset(("system:kube-scheduler", "system:kube-controller-manager", "system:apiserver"))
_SYSTEM_NAMESPACE: Final = "kube-system"
_EVERYBODY: Final = ""
_Key = TypeVar("_Key")


def flow_of(caller: Caller) -> tuple[str, str]:
    """The priority level and the flow of a caller. The service accounts of a namespace are one flow, because a user
    who may create one of them may create a thousand."""
    name, groups = caller.name, caller.groups
    if MASTERS in groups:
        return EXEMPT, name
    if not name.startswith("system:"):
        return WORKLOAD, name
    if name.startswith(ACCOUNT):
        namespace = name[len(ACCOUNT) :].partition(":")[0]
        return SYSTEM if namespace == _SYSTEM_NAMESPACE else WORKLOAD, f"system:serviceaccounts:{namespace}"
    if UNAUTHENTICATED in groups:
        return ANONYMOUS, name
    return SYSTEM if name in _PARTS or NODES in groups else WORKLOAD, name


class FlowControl:
    def __init__(self, limits: Limits, metrics: RequestMetrics) -> None:
        self._limits = limits
        self._metrics = metrics
        reads = SlotLimits(limits.reads, limits.reads_per_user, limits.queue, limits.turn)
        writes = SlotLimits(limits.writes, limits.writes_per_user, limits.queue, limits.turn)
        unknown = SlotLimits(limits.anonymous, limits.anonymous, limits.anonymous, limits.turn)
        # Health checks take turns and are never refused.
        health = SlotLimits(limits.reads, limits.reads, limits.connections, limits.turn)
        self._slots: Final = {
            (SYSTEM, READ_ONLY): FairSlots(reads._replace(slots=limits.system_reads, turn=limits.system_turn)),
            (SYSTEM, MUTATING): FairSlots(writes._replace(slots=limits.system_writes, turn=limits.system_turn)),
            (WORKLOAD, READ_ONLY): FairSlots(reads),
            (WORKLOAD, MUTATING): FairSlots(writes),
            (ANONYMOUS, READ_ONLY): FairSlots(unknown),
            (ANONYMOUS, MUTATING): FairSlots(unknown),
            (HEALTH, READ_ONLY): FairSlots(health),
            (HEALTH, MUTATING): FairSlots(unknown),
        }
        every = limits.connections
        self.stream_turns: Final = FairSlots(SlotLimits(slots=every, per_flow=1, queue=every, turn=1))
        """Watches and large responses take their turn before they send; they hold no slot."""
        self._streams: dict[tuple[str, str], int] = {}
        """Long-running requests, by level and flow; the flow "" is all of the level."""
        self._tunnels: dict[tuple[str, str], int] = {}
        """Tunnels to nodes, in the same way."""
        self._bodies: dict[tuple[str, str], int] = {}
        """Bytes of large bodies, by level and flow; the flow "" is all of the level."""
        self._unread: dict[str, int] = {}
        """Bytes that wait until clients read them, by flow."""
        lists = SlotLimits(limits.large_lists, limits.large_lists_per_user, limits.queue, limits.large_lists)
        self.large_lists: Final = FairSlots(lists)
        self.system_large_lists: Final = FairSlots(lists)
        """Of the system and of administrators: users that read slowly do not hold them up."""
        self._by_peer = TokenBuckets(limits.anonymous_rate, limits.anonymous_burst, limits.anonymous_peers)
        self._by_all = TokenBuckets(limits.anonymous_rate_total, limits.anonymous_rate_total, 1)
        users = limits.counted_users
        self._forbidden = TokenBuckets(limits.forbidden_rate, limits.forbidden_burst, users)
        self._new_streams = TokenBuckets(limits.stream_rate, limits.stream_burst, users)
        metrics.watch_levels(self._slots)

    # -- slots -----------------------------------------------------------------------------------------------------

    def enter(self, level: str, lane: str, flow: str) -> asyncio.Future[None] | None:
        """Take a slot, or await the future. Raises StatusError (429) if the queue of the flow is full."""
        if level == EXEMPT:
            return None
        try:
            return self._slots[level, lane].enter(flow)
        except QueueFullError:
            raise self.refused("queue") from None

    def leave(self, level: str, lane: str, flow: str) -> None:
        if level != EXEMPT:
            self._slots[level, lane].leave(flow)

    def refused(self, limit: str) -> StatusError:
        """Count a request beyond this limit, and return its 429."""
        self._metrics.reject(limit)
        return too_many_requests(BUSY, retry_after_s=1)

    async def take_turn(self, level: str, flow: str) -> None:
        """Wait until this flow may send a piece of a stream. The system does not wait."""
        if level in (EXEMPT, SYSTEM):
            return
        turns = self.stream_turns
        waiting = turns.enter(flow)
        if waiting is None:
            turns.leave(flow)
            return
        try:
            await waiting
        finally:
            if not waiting.cancelled():
                asyncio.get_running_loop().call_later(self._limits.piece_s, turns.leave, flow)

    # -- long-running requests ---------------------------------------------------------------------------------------

    def open_stream(self, level: str, flow: str, now: float) -> None:
        """Raises StatusError (429)."""
        limits, streams = self._limits, self._streams
        of_flow, of_level = streams.get((level, flow), 0), streams.get((level, _EVERYBODY), 0)
        if level == WORKLOAD and (of_flow >= limits.streams_per_user or of_level >= limits.streams):
            raise self.refused("longRunning")
        if level == WORKLOAD and not self._new_streams.take(flow, now):
            raise self.refused("newLongRunning")
        if level == ANONYMOUS and of_level >= limits.anonymous:
            raise self.refused("longRunning")
        streams[level, flow] = of_flow + 1
        streams[level, _EVERYBODY] = of_level + 1

    def close_stream(self, level: str, flow: str) -> None:
        for key in ((level, flow), (level, _EVERYBODY)):
            _add(self._streams, key, -1)

    def open_tunnel(self, level: str, flow: str) -> None:
        """Count a tunnel to a node. Raises StatusError (429), and counts nothing."""
        limits, tunnels = self._limits, self._tunnels
        of_flow, of_level = tunnels.get((level, flow), 0), tunnels.get((level, _EVERYBODY), 0)
        if level in (WORKLOAD, ANONYMOUS) and (of_flow >= limits.tunnels_per_user or of_level >= limits.tunnels):
            raise self.refused("tunnels")
        tunnels[level, flow] = of_flow + 1
        tunnels[level, _EVERYBODY] = of_level + 1

    def close_tunnel(self, level: str, flow: str) -> None:
        for key in ((level, flow), (level, _EVERYBODY)):
            _add(self._tunnels, key, -1)

    # -- bodies ------------------------------------------------------------------------------------------------------

    def hold_body(self, level: str, flow: str, size: int) -> None:
        """Count bytes of a large body. Raises StatusError (429) beyond the budget, and counts nothing."""
        limits, bodies, all_of_level = self._limits, self._bodies, (level, _EVERYBODY)
        everything, own = bodies.get(all_of_level, 0) + size, bodies.get((level, flow), 0) + size
        if everything > limits.bodies_bytes or own > limits.bodies_bytes_per_user:
            raise self.refused("bodies")
        bodies[all_of_level] = everything
        bodies[level, flow] = own

    def release_body(self, level: str, flow: str, size: int) -> None:
        for key in ((level, flow), (level, _EVERYBODY)):
            _add(self._bodies, key, -size)

    # -- unread responses --------------------------------------------------------------------------------------------

    def hold_unread(self, flow: str, size: int) -> bool:
        """Count bytes that wait until a client reads. False, and nothing counted: the flow has too many."""
        if self._unread.get(flow, 0) + size > self._limits.unread_bytes_per_user:
            self._metrics.reject("unread")
            return False
        _add(self._unread, flow, size)
        return True

    def release_unread(self, flow: str, size: int) -> None:
        _add(self._unread, flow, -size)

    # -- anonymous and failing callers -------------------------------------------------------------------------------

    def may_be_refused(self, flow: str, now: float) -> bool:
        """Whether a user whose request was refused (403) is within the budget of refusals."""
        return self._forbidden.take(flow, now)

    def within_budget(self, peer: str, now: float) -> bool:
        """Whether a caller that is anonymous, or has failed to authenticate, is within the budget of its address."""
        return self._by_peer.take(peer, now) and self._by_all.take(_EVERYBODY, now)


def _add(counts: dict[_Key, int], key: _Key, number: int) -> None:
    """Add to a count. Counts of zero are removed, so that they do not accumulate over all flows ever seen."""
    left = counts.get(key, 0) + number
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)
