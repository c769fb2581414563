"""The transitions of the pods of hollow nodes that are planned, and which is next.

Namespaces take turns, and in each its nodes.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec import Struct

from situate.agent.hollow_pods import PodTransition
from situate.loop.fair_queue import FairQueue

Key: TypeAlias = tuple[str, str]


class TrackedPod(Struct, gc=False):
    """A pod as last seen. Every update gets a new number, which voids the transitions planned before."""

    uid: str
    node: str
    number: int
    pod: dict[str, Any] = {}
    """The whole pod, only while a transition is planned: most pods just run."""
    tries: int = 0


Due: TypeAlias = tuple[Key, PodTransition, TrackedPod]


class PlannedTransitions:
    def __init__(self) -> None:
        self.pods: dict[Key, TrackedPod] = {}
        self._due: list[tuple[float, int, Key, PodTransition, int]] = []
        self._turns: FairQueue[None] = FairQueue()
        """A turn of its namespace for each transition that is due."""
        self._ready: dict[str, FairQueue[tuple[Key, PodTransition, int]]] = {}
        """What is due in each namespace, by node, as if each had a kubelet of its own."""
        self._planned = 0
        self._woken = asyncio.Event()

    def plan(self, key: Key, transition: PodTransition, tracked: TrackedPod, after_ms: int) -> None:
        self._planned += 1
        at = time.monotonic() + after_ms / 1_000
        heapq.heappush(self._due, (at, self._planned, key, transition, tracked.number))
        self._woken.set()

    async def next(self) -> Due:
        """The next transition that is due, of a pod that has not changed since it was planned."""
        while (found := self._due_now()) is None:
            self._woken.clear()
            wait_s = self._due[0][0] - time.monotonic() if self._due else None
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):  # wait_for may lose a cancellation
                    await self._woken.wait()
        return found

    def more(self, limit: int) -> Iterator[Due]:
        """Others that are due now."""
        while limit and (found := self._due_now()) is not None:
            limit -= 1
            yield found

    def _due_now(self) -> Due | None:
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, _, key, transition, number = heapq.heappop(self._due)
            tracked = self.pods.get(key)
            if tracked is not None and tracked.number == number:
                self._push(tracked.node, (key, transition, number))
        while (found := self._pop()) is not None:
            key, transition, number = found
            tracked = self.pods.get(key)
            if tracked is not None and tracked.number == number:
                return key, transition, tracked
        return None

    def _push(self, node: str, item: tuple[Key, PodTransition, int]) -> None:
        namespace = item[0][0]
        self._turns.push(namespace, None)
        self._ready.setdefault(namespace, FairQueue()).push(node, item)

    def _pop(self) -> tuple[Key, PodTransition, int] | None:
        turn = self._turns.pop()
        if turn is None:
            return None
        nodes = self._ready[turn[0]]
        found = nodes.pop()
        if not nodes:
            del self._ready[turn[0]]
        return None if found is None else found[1]
