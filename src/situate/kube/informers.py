"""All that one scheduler sees of a cluster: a reflector for each kind that it needs.

Pods are listed when everything else is there, so that whoever is told of a pod knows its node, its claims, its group.
Nobody should decide anything before `synced`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from situate.core.changes import Change, PodRef
from situate.core.model.pod import Pod
from situate.kube.kinds import Kind
from situate.kube.reflector import ListWatchClient, Reflector

__all__ = ["InformerStatus", "Informers"]


@dataclass(frozen=True, slots=True)
class InformerStatus:
    """How it stands with one kind, for /readyz and for people."""

    name: str
    synced: bool
    """Whether all of it has been told, once."""
    problem: str
    """What keeps us from seeing it now, in one line; empty if nothing does."""
    quiet_s: float | None
    """How long ago the server last said anything of it; None: never."""
    objects: int
    unreadable: int
    """How many objects did not decode, ever, and were left out."""


class Informers:
    """`tell` is called in the event loop, with facts of one kind in the order in which they happened."""

    def __init__(
        self,
        client: ListWatchClient,
        kinds: Sequence[Kind],
        tell: Callable[[list[Change]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        dice: random.Random | None = None,
    ) -> None:
        self._clock = clock
        self._hope = asyncio.Event()
        self.reflectors = [
            Reflector(client, kind, tell, rest=self._rest, clock=clock, dice=dice, on_contact=self._wake)
            for kind in kinds
        ]
        self._pods = [one for one in self.reflectors if one.kind.model is Pod]
        self._others = [one for one in self.reflectors if one.kind.model is not Pod]

    async def run(self) -> None:
        """Never ends by itself; cancel it."""
        async with asyncio.TaskGroup() as tasks:
            for one in self._others:
                tasks.create_task(one.run(), name=f"reflector of {one.kind.name}")
            for one in self._others:
                await one.synced.wait()
            for one in self._pods:
                tasks.create_task(one.run(), name=f"reflector of {one.kind.name}")

    @property
    def synced(self) -> bool:
        """Whether everything that there is has been told."""
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
                len(one.mirror),
                one.mirror.unreadable,
            )
            for one in self.reflectors
        ]

    def version_of(self, pod: PodRef) -> str:
        """The resourceVersion of a pod that was last told; empty if it is not known."""
        return next((one.mirror.version_of(pod.namespace, pod.name, pod.uid) for one in self._pods), "")

    def served(self, kind: Kind) -> str | None:
        """The version of the API in which the server has a kind; None if it has it in none, or that is not known."""
        return next((one.served for one in self.reflectors if one.kind is kind), None)

    # -- resting -----------------------------------------------------------------------------------------------------

    async def _rest(self, seconds: float) -> None:
        """Wait so long, or until somebody else gets through: then there is hope for all."""
        try:
            async with asyncio.timeout(seconds):
                await self._hope.wait()
        except TimeoutError:
            pass

    def _wake(self) -> None:
        """Wake all who rest now. Who rests later waits for the next."""
        self._hope.set()
        self._hope = asyncio.Event()
