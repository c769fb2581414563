"""Slots for requests, shared fairly by flows. A flow is a user, or all service accounts of one namespace.

A request that finds a slot free takes it at once. Else it waits in the queue of its flow, and the flows take turns. A
flow also starts a limited number of requests in one turn of the event loop: a user with a thousand busy connections
delays the next user by a few requests, not by a thousand.

A request that does the work of several takes as many slots. It starts as soon as one is free: if it waited for all of
them, smaller ones would overtake it for ever. So more slots than there are may be taken, by less than one request.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple


class SlotLimits(NamedTuple):
    slots: int
    per_flow: int
    """Slots of one flow."""
    queue: int
    """Requests of one flow that wait for a slot."""
    turn: int
    """Requests of one flow that start in one turn of the event loop."""
    guaranteed: int = 0
    """Slots that each flow has, even if all others are taken."""
    alone: int = 0
    """Slots of a flow while no other has requests, if that is more."""


class QueueFullError(Exception):
    """The queue of the flow is full."""


class _Request(NamedTuple):
    weight: int
    """How many slots it takes."""
    turn: asyncio.Future[None]


class _Flow:
    __slots__ = ("running", "started", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.started = 0
        """In this turn of the event loop."""
        self.waiting: deque[_Request] = deque()


class FairSlots:
    __slots__ = ("_flows", "_limits", "_queued", "_turning", "running")

    def __init__(self, limits: SlotLimits) -> None:
        self._limits = limits
        self.running = 0
        self._flows: dict[str, _Flow] = {}
        """Flows with requests that run, wait, or started in this turn."""
        self._queued: OrderedDict[str, _Flow] = OrderedDict()
        """Flows with requests that wait; the first one is next."""
        self._turning = False

    @property
    def waiting(self) -> int:
        return sum(len(flow.waiting) for flow in self._queued.values())

    def enter(self, name: str, weight: int = 1) -> asyncio.Future[None] | None:
        """Take slots. None: taken. Else await the future; if it is cancelled, there is nothing to leave.

        Raises QueueFullError.
        """
        flow = self._flows.get(name)
        if flow is None:
            flow = self._flows[name] = _Flow()
        if not flow.waiting and self._may_start(flow):
            self._start(flow, weight)
            return None
        if len(flow.waiting) >= self._limits.queue:
            raise QueueFullError
        future = asyncio.get_running_loop().create_future()
        flow.waiting.append(_Request(weight, future))
        self._queued[name] = flow
        self._turn_later()
        return future

    @asynccontextmanager
    async def slot(self, name: str, weight: int = 1) -> AsyncIterator[None]:
        """Hold a slot, or several. Raises QueueFullError."""
        turn = self.enter(name, weight)
        if turn is not None:
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self.leave(name, weight)
                raise
        try:
            yield
        finally:
            self.leave(name, weight)

    def leave(self, name: str, weight: int = 1) -> None:
        """Give back what `enter` took."""
        flow = self._flows[name]
        flow.running -= weight
        self.running -= weight
        if self._queued:
            self._dispatch()

    def _slots(self) -> int:
        return max(self._limits.slots, self._limits.alone if len(self._flows) == 1 else 0)

    def _may_start(self, flow: _Flow) -> bool:
        limits = self._limits
        free = self.running < self._slots() or flow.running < limits.guaranteed
        return free and flow.running < limits.per_flow and flow.started < limits.turn

    def _start(self, flow: _Flow, weight: int) -> None:
        flow.started += weight
        flow.running += weight
        self.running += weight
        if not self._turning:
            self._turn_later()

    def _turn_later(self) -> None:
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """A turn of the event loop is over: every flow may start requests again."""
        self._turning = False
        for name, flow in list(self._flows.items()):
            flow.started = 0
            if not flow.running and not flow.waiting:
                del self._flows[name]
        if self._queued:
            self._dispatch()

    def _dispatch(self) -> None:
        """Give free slots to those that wait, one to each flow in turn."""
        passed = 0
        while self._queued and passed < len(self._queued) and self.running < self._slots():
            name, flow = self._queued.popitem(last=False)
            waiting = flow.waiting
            while waiting and waiting[0].turn.done():  # its client has gone
                waiting.popleft()
            if waiting and self._may_start(flow):
                request = waiting.popleft()
                self._start(flow, request.weight)
                request.turn.set_result(None)
                passed = 0
            elif waiting:
                passed += 1
            if waiting:
                self._queued[name] = flow
