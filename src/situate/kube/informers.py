"""The informers of one scheduler: a reflector for each kind that it needs.

Pods are listed last, so that a pod's node, claims and group are known before the pod. Decide nothing before `synced`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from situate.core.changes import Change
from situate.core.model.pod import Pod
from situate.kube.kinds import WatchedKind
from situate.kube.reflector import ListWatchClient, Reflector


@dataclass(frozen=True, slots=True)
class InformerStatus:
    """The state of one kind's informer, for /readyz and for people."""

    name: str
    synced: bool
    """Whether a whole list was reported."""
    problem: str
    """What keeps us from seeing it now, in one line; or empty."""
    quiet_s: float | None
    """How long ago the server last sent anything about it; None: never."""
    objects: int
    unreadable: int
    """How many objects did not decode so far."""


class Informers:
    """They call `tell` in the event loop, with changes of one kind in the order in which they happened."""

    def __init__(
        self,
        client: ListWatchClient,
        kinds: Sequence[WatchedKind],
        tell: Callable[[list[Change]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        dice: random.Random | None = None,
    ) -> None:
        self._clock = clock
        self._server_is_back = asyncio.Event()
        self.reflectors = [
            Reflector(client, kind, tell, rest=self._rest, clock=clock, dice=dice, on_contact=self._wake)
            for kind in kinds
        ]
        self._pods = [one for one in self.reflectors if one.kind.model is Pod]
        self._others = [one for one in self.reflectors if one.kind.model is not Pod]

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for one in self._others:
                tasks.create_task(one.run(), name=f"reflector of {one.kind.name}")
            for one in self._others:
                await one.synced.wait()
            for one in self._pods:
                tasks.create_task(one.run(), name=f"reflector of {one.kind.name}")

    @property
    def synced(self) -> bool:
        return all(one.synced.is_set() for one in self.reflectors)

    async def until_synced(self) -> None:
        for one in self.reflectors:
            await one.synced.wait()

    def shown(self) -> list[InformerStatus]:
        now = self._clock()
        return [
            InformerStatus(
                one.kind.name,
                one.synced.is_set(),
                one.problem,
                None if one.last_contact is None else now - one.last_contact,
                len(one.cache),
                one.cache.unreadable,
            )
            for one in self.reflectors
        ]

    def served(self, kind: WatchedKind) -> str | None:
        """The API version in which the server has a kind; None if it has none, or that is unknown."""
        return next((one.served for one in self.reflectors if one.kind is kind), None)

    async def _rest(self, seconds: float) -> None:
        """Wait so long, or until another reflector gets through: then the server is back for all."""
        try:
            async with asyncio.timeout(seconds):
                await self._server_is_back.wait()
        except TimeoutError:
            pass

    def _wake(self) -> None:
        self._server_is_back.set()
        self._server_is_back = asyncio.Event()
