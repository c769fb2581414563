"""The network between an agent and the control plane: calls and streams may be slow, lost, doubled, late or cut.

A call is a request and a response; each may be lost, and then the caller waits until its timeout. A message may arrive
a minute after its sender gave up, or twice. A stream is ordered like TCP, unless the world has the fault that mixes
streams. While the network is cut it waits, and after a long cut it breaks.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final, cast

import msgspec

from situate.agent.control_plane import AcquiredLease, ControlPlaneError, LeaseRenewal
from situate.agent.control_plane_http import HttpControlPlane
from situate.agent.control_plane_local import LEASE, LocalControlPlane
from situate.agent.node_objects import LEASES
from situate.kube.client import Client
from situate.kube.errors import LOST, TIMEOUT, ApiError
from situate.server.errors import StatusError
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Target
from situate.sim.nodes.control_plane import ControlPlaneProcess, SimulatedControlPlane
from situate.sim.nodes.virtual_time import VirtualLoop

GIVE_UP_S: Final = 10.0
"""The timeout of a call, by the caller's clock."""
MIXED_S: Final = (0.0, 3.0)
"""The extra delay of a message out of order."""
BREAKS_AFTER_S: Final = 15.0
"""A stream breaks if the network is cut for longer."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class NetworkFaults:
    """Probabilities, and times in seconds."""

    usual_s: tuple[float, float] = (0.001, 0.02)
    slow: float = 0.0
    slow_s: tuple[float, float] = (0.5, 9.0)
    lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    late_s: tuple[float, float] = (10.0, 70.0)
    mixed: float = 0.0
    """Stream items out of order, or repeated."""


@dataclass(frozen=True, slots=True)
class _Sent:
    name: str
    args: tuple[Any, ...]
    named: dict[str, Any]

    def to(self, process: ControlPlaneProcess) -> Any:
        if self.name == "request":
            return _lease_request(process.registry, *self.args)
        return getattr(process.control_plane, self.name)(*self.args, **self.named)


class Link:
    """The link between one machine and the control plane."""

    def __init__(
        self, loop: VirtualLoop, control_plane: SimulatedControlPlane, network_faults: NetworkFaults, rng: Random
    ) -> None:
        self.there = self.back = True
        """Whether messages to and from the control plane arrive."""
        self.network_faults = network_faults
        self.loop = loop
        self.control_plane = control_plane
        self._rng = rng
        self._streams: dict[_Stream, None] = {}
        self._cut_at = 0.0

    def cut(self, *, there: bool, back: bool) -> None:
        if self.back and back:
            self._cut_at = self.loop.now
        self.there, self.back = self.there and not there, self.back and not back

    def heal(self) -> None:
        broken = not self.back and self.loop.now - self._cut_at > BREAKS_AFTER_S
        self.there = self.back = True
        for stream in list(self._streams):
            stream.healed(broken)

    def delay(self) -> float:
        network_faults, rng = self.network_faults, self._rng
        return rng.uniform(*(network_faults.slow_s if rng.random() < network_faults.slow else network_faults.usual_s))

    def after(self, delay: float, call: Any, *args: Any) -> None:
        self.loop.call_later(delay, call, *args, context=self.world())

    def world(self) -> Context:
        return self.loop.world.context()

    def between(self, span: tuple[float, float]) -> float:
        return self._rng.uniform(*span)

    def happens(self, of: float) -> bool:
        return of > 0 and self._rng.random() < of

    def call(self, sent: _Sent, reply: asyncio.Future[Any]) -> None:
        if not self.there or self.happens(self.network_faults.lost):
            return
        late = self._rng.uniform(*self.network_faults.late_s) if self.happens(self.network_faults.late) else 0.0
        self.after(self.delay() + late, self._arrived, sent, reply)
        if self.happens(self.network_faults.doubled):
            self.after(self.delay() + self._rng.uniform(0, 30), self._arrived, sent, reply)

    def _arrived(self, sent: _Sent, reply: asyncio.Future[Any]) -> None:
        process = self.control_plane.reached()
        if process is None:
            self._answer(reply, ControlPlaneError("connection refused"))
            return
        task = process.actor.begin(sent.to(process), name=sent.name)
        task.add_done_callback(partial(self._done, reply), context=self.world())

    def _done(self, reply: asyncio.Future[Any], task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._answer(reply, ControlPlaneError("connection reset"))
        elif (error := task.exception()) is not None:
            self._answer(reply, error)
        else:
            self._answer(reply, task.result())

    def _answer(self, reply: asyncio.Future[Any], answer: Any) -> None:
        if self.back and not self.happens(self.network_faults.lost):
            self.after(self.delay(), _settle, reply, answer)

    def stream(self, sent: _Sent) -> _Stream:
        made = _Stream(self, sent)
        self._streams[made] = None
        if self.there:
            self.after(self.delay(), made.arrived)
        return made

    def forget(self, stream: _Stream) -> None:
        self._streams.pop(stream, None)


def _settle(reply: asyncio.Future[Any], answer: Any) -> None:
    if reply.done():
        return
    if isinstance(answer, BaseException):
        reply.set_exception(answer)
    else:
        reply.set_result(answer)


class _Stream:
    """A stream of updates from the control plane."""

    def __init__(self, link: Link, sent: _Sent) -> None:
        self.updates: asyncio.Queue[Any] = asyncio.Queue()
        self._link = link
        self._sent = sent
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[Any] = deque()
        self._last = self._longest = 0.0
        self._closed = False

    def arrived(self) -> None:
        if self._closed:
            return
        process = self._link.control_plane.reached()
        if process is None:
            self._tell(ControlPlaneError("connection refused"))
            return
        self._task = process.actor.begin(self._follow(process), name=self._sent.name)
        self._task.add_done_callback(self._ended, context=self._link.world())

    async def _follow(self, process: ControlPlaneProcess) -> None:
        async for one in self._sent.to(process):
            self._tell(one)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        self._tell(error if isinstance(error, ControlPlaneError) else ControlPlaneError("connection reset"))

    def _tell(self, one: Any) -> None:
        if not self._link.back:
            self._waiting.append(one)
        else:
            self._send(one)

    def _send(self, one: Any) -> None:
        link, mixes = self._link, not isinstance(one, ControlPlaneError) and not getattr(one, "listed", False)
        now = link.loop.now
        if mixes and link.happens(link.network_faults.mixed):
            at = now + link.delay() + link.between(MIXED_S)  # later items may overtake it
        else:
            at = max(self._last, now + link.delay())
            self._last = at if mixes else max(at, self._longest)
            at = self._last
        self._longest = max(self._longest, at)
        link.after(at - now, self._deliver, one)
        if mixes and link.happens(link.network_faults.mixed):
            link.after(at - now + link.between(MIXED_S), self._deliver, one)  # a repeat

    def _deliver(self, one: Any) -> None:
        if not self._closed:
            self.updates.put_nowait(one)

    def healed(self, broken: bool) -> None:
        if self._task is None and not self._closed:
            self.arrived()  # requested during the cut: TCP would retry
        if broken:
            self._waiting.clear()
            self._send(ControlPlaneError("connection reset"))
            return
        while self._waiting:
            self._send(self._waiting.popleft())

    def close(self) -> None:
        self._closed = True
        self._link.forget(self)
        if self._task is not None:
            self._task.cancel()


class NetworkControlPlane:
    """The ControlPlane as seen from a machine across its link."""

    def __init__(self, link: Link) -> None:
        self.severed = False
        """The agent is dead."""
        self._link = link
        self._leases = HttpControlPlane(cast(Client, _LeaseClient(self)))

    async def acquire_lease(self, node: str, lease_s: int, least: int = 0, *, fenced: bool = False) -> AcquiredLease:
        """Use the HTTP client's protocol, read then write, so that late messages conflict."""
        return await self._leases.acquire_lease(node, lease_s, least, fenced=fenced)

    async def renew_lease(self, node: str, renewal: LeaseRenewal) -> None:
        await self._leases.renew_lease(node, renewal)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        streams = inspect.isasyncgenfunction(getattr(LocalControlPlane, name))
        return partial(self._stream if streams else self._call, name)

    async def _call(self, name: str, *args: Any, **named: Any) -> Any:
        if self.severed:
            raise ControlPlaneError("dead")
        loop = self._link.loop
        reply: asyncio.Future[Any] = loop.create_future()
        sent = _Sent(name, tuple(_copied(one) for one in args), {key: _copied(one) for key, one in named.items()})
        self._link.call(sent, reply)
        try:
            async with asyncio.timeout(GIVE_UP_S):
                return await reply
        except TimeoutError:
            raise ControlPlaneError("no answer") from None

    async def _stream(self, name: str, *args: Any, **named: Any) -> AsyncIterator[Any]:
        if self.severed:
            raise ControlPlaneError("dead")
        stream = self._link.stream(_Sent(name, args, named))
        try:
            while True:
                updates = await stream.updates.get()
                if isinstance(updates, ControlPlaneError):
                    raise updates
                yield updates
        finally:
            stream.close()


class _LeaseClient:
    """Only what the lease protocol needs of an HTTP client."""

    def __init__(self, control_plane: NetworkControlPlane) -> None:
        self._control_plane = control_plane

    async def request(self, method: str, path: str, *, body: bytes = b"", timeout_s: float = GIVE_UP_S) -> bytes:
        try:
            async with asyncio.timeout(timeout_s):
                answer: bytes = await self._control_plane._call("request", method, path, body)
        except TimeoutError:
            raise ApiError(0, TIMEOUT, "no answer") from None
        except ControlPlaneError as error:
            raise ApiError(0, LOST, str(error)) from None
        return answer


async def _lease_request(registry: Registry, method: str, path: str, body: bytes) -> bytes:
    """The server's side of it."""
    name = path.rpartition("/")[2]
    try:
        match method:
            case "GET":
                held = await registry.get(Target(LEASE, LEASES, name))
            case "PUT":
                held = await registry.update(Target(LEASE, LEASES, name), _decode(body), SYSTEM)
            case _:
                held = await registry.create(Target(LEASE, LEASES), _decode(body), SYSTEM)
    except StatusError as error:
        raise ApiError(error.code, error.reason, error.message) from None
    return held.to_json(LEASE)


def _copied(one: Any) -> Any:
    """Copy what is sent."""
    return _decode(_encode(one)) if isinstance(one, dict) else one
