"""Hollow nodes, many in one process: they register, renew their leases, and let their pods live as data says.

One heap has what happens next to each pod. A report that fails is tried again, TRIES times; after that the pod waits
for its next change.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeAlias

import msgspec

from situate.agent.hollow import Step, next_step, status_after
from situate.agent.machine import RENEW_S, Shape, node_body
from situate.agent.plane import Plane, PlaneError, PodRead, StaleError
from situate.loop.logs import Log

__all__ = ["Fleet"]

REPORTS_AT_ONCE: Final = 32
REGISTERED_AT_ONCE: Final = 16
TRIES: Final = 5
LOOK_EVERY: Final = 2
"""Renewals of a lease for one look at the node."""
RETRY_MS: Final = 500

Key: TypeAlias = tuple[str, str]

_log = Log(__name__)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True)
class _Living:
    """A pod as it was last seen; each time it is seen it has another number, and what was planned before is void."""

    pod: dict[str, Any]
    number: int
    tries: int = 0


class Fleet:
    """`run` it until it is cancelled."""

    def __init__(self, plane: Plane, shapes: Sequence[tuple[str, Shape]]) -> None:
        self.reports = 0
        self._plane = plane
        self._shapes = shapes
        self._addresses = {name: _address(number) for number, (name, _) in enumerate(shapes)}
        self._living: dict[Key, _Living] = {}
        self._due: list[tuple[float, int, Key, Step, int]] = []
        self._count = self._seen = 0
        self._told = asyncio.Event()
        self.ready = asyncio.Event()
        """All nodes are registered."""

    async def run(self) -> None:
        await _each(self._shapes, self._register, REGISTERED_AT_ONCE)
        self.ready.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._renew())
            group.create_task(self._hear())
            for _ in range(REPORTS_AT_ONCE):
                group.create_task(self._live())

    # -- nodes -------------------------------------------------------------------------------------------------------

    async def _register(self, node: tuple[str, Shape]) -> None:
        name, shape = node
        await self._until_done(
            lambda: self._plane.register(node_body(name, shape, time.time_ns(), self._addresses[name]))
        )
        await self._until_done(lambda: self._plane.renew(name))

    async def _until_done(self, call: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await call()
            except PlaneError as error:
                _log.warning("A hollow node waits for the control plane", err=str(error))
                await asyncio.sleep(RETRY_MS / 1_000)

    async def _renew(self) -> None:
        """Every node once in RENEW_S, spread over that time; and every few times, a look at what is thought of it."""
        begun = time.monotonic()
        for turn in count(1):
            for number, node in enumerate(self._shapes, 1):
                try:
                    await self._plane.renew(node[0])
                    if turn % LOOK_EVERY == 0:
                        await self._say_well(*node)
                except PlaneError as error:
                    _log.v(2).info("A lease was not renewed", node=node[0], err=str(error))
                await _until(begun + number * RENEW_S / len(self._shapes))
            begun = max(begun + RENEW_S, time.monotonic())

    async def _say_well(self, name: str, shape: Shape) -> None:
        """A node that was not heard of for long is held to be lost, until it says that it is not."""
        found = await self._plane.read("Node", "", name)
        if found is not None and not _is_ready(found):
            await self._plane.register(node_body(name, shape, time.time_ns(), self._addresses[name]))

    # -- pods --------------------------------------------------------------------------------------------------------

    async def _hear(self) -> None:
        node = self._shapes[0][0] if len(self._shapes) == 1 else ""
        while True:
            try:
                async for read in self._plane.pods(node):
                    self._heard(read)
            except PlaneError as error:
                _log.warning("Pods are not seen; trying again", err=str(error))
                await asyncio.sleep(RETRY_MS / 1_000)

    def _heard(self, read: PodRead) -> None:
        key = (read.namespace, read.name)
        if read.body is None:
            self._living.pop(key, None)
            return
        pod = _decode(read.body)
        if pod["spec"].get("nodeName") not in self._addresses:
            return
        self._seen += 1
        living = self._living[key] = _Living(pod, self._seen)
        step = next_step(pod)
        if step is not None:
            self._plan(key, step, living, step.after_ms)

    def _plan(self, key: Key, step: Step, living: _Living, after_ms: int) -> None:
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
            except PlaneError as error:
                living.tries += 1
                if living.tries < TRIES:
                    self._plan(key, step, living, RETRY_MS << living.tries)
                else:
                    _log.warning("A pod's status is not taken", pod="/".join(key), err=str(error))

    async def _next(self) -> tuple[Key, Step, _Living]:
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

    async def _take(self, step: Step, living: _Living) -> None:
        pod = living.pod
        if step.then == "goes":
            await self._plane.remove(pod)
            return
        address = self._addresses[pod["spec"]["nodeName"]]
        await self._plane.report(pod, status_after(step, pod, time.time_ns(), address))


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _address(number: int) -> str:
    return f"10.{number >> 16 & 63}.{number >> 8 & 255}.{number & 255}"


async def _until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


async def _each(items: Sequence[Any], do: Callable[[Any], Awaitable[None]], at_once: int) -> None:
    limit = asyncio.Semaphore(at_once)

    async def one(item: Any) -> None:
        async with limit:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for item in items:
            group.create_task(one(item))
