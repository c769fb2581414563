"""The models that are kept: one for each person who looks at the page, shared by all their open pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from situate.kube.access import Access
from situate.kube.client import Client
from situate.kube.discovery import server_rules
from situate.kube.kinds import WatchedKind
from situate.web.desk import Desk, Profiles
from situate.web.limits import LINGER_S, MAX_MODELS, START_S
from situate.web.logins import Person
from situate.web.model import ClusterModel, ModelEndedError, kinds_for
from situate.web.rights import access_of, find_scope

USER_AGENT: Final = "situate-web"
FULL: Final = f"{MAX_MODELS} people look at this page already, each with rights of their own; try again later"
SLOW: Final = f"the API server has not listed its nodes and pods after {START_S:.0f} s; trying again"


class ModelsFullError(Exception):
    """There is no room for one more."""


@dataclass(slots=True)
class KeptModel:
    """A model, what it runs with, and how many use it."""

    model: ClusterModel
    stack: AsyncExitStack
    task: asyncio.Task[None]
    readers: int = 0
    leaving: asyncio.TimerHandle | None = None
    profiles: Profiles | None = None
    """Once somebody asked for them."""


@dataclass(slots=True)
class Models:
    own: Access
    load_desk: Callable[[], Desk]
    kinds: Sequence[WatchedKind]
    """What a model watches."""
    _desk: Desk | None = None
    _kept: dict[Person, KeptModel] = field(default_factory=dict)
    _starting: dict[Person, asyncio.Lock] = field(default_factory=dict)
    _closing: set[asyncio.Task[None]] = field(default_factory=set)

    def client(self, person: Person) -> Client:
        """For one request of this person's own. Use in `async with`."""
        return Client(access_of(self.own, person), qps=-1, user_agent=USER_AGENT)

    async def desk(self) -> Desk:
        """Loaded with the first question: the map does not wait for what answers it."""
        if self._desk is None:
            self._desk = await asyncio.to_thread(self.load_desk)
        return self._desk

    async def profiles(self, kept: KeptModel) -> Profiles:
        """Raises ApiError or InputError."""
        if kept.profiles is None:
            kept.profiles = await (await self.desk()).profiles(kept.model.client)
        return kept.profiles

    @asynccontextmanager
    async def of(self, person: Person, *, whole: bool = True) -> AsyncIterator[KeptModel]:
        """Once everything was listed; otherwise once there is something to show.

        Raises ApiError, ModelsFullError, or ModelEndedError if the lists do not come.
        """
        lock = self._starting.setdefault(person, asyncio.Lock())
        try:
            async with lock:
                kept = self._kept.get(person)
                if kept is None or kept.model.ended:
                    kept = await self._start(person)
                if kept.leaving is not None:
                    kept.leaving.cancel()
                    kept.leaving = None
                kept.readers += 1
        finally:
            if not lock.locked():
                self._starting.pop(person, None)
        try:
            try:
                async with asyncio.timeout(START_S):
                    await kept.model.synced(whole=whole)
            except TimeoutError:
                problems = kept.model.problems()
                raise ModelEndedError(problems[0] if problems else SLOW) from None
            yield kept
        finally:
            kept.readers -= 1
            if not kept.readers:
                wait_s = 0.0 if kept.model.ended else LINGER_S
                kept.leaving = asyncio.get_running_loop().call_later(wait_s, self._drop, person, kept)

    async def _start(self, person: Person) -> KeptModel:
        before = self._kept.pop(person, None)
        if before is not None and not before.readers:
            self._close(before)
        if len(self._kept) >= MAX_MODELS:
            idle = next((who for who, one in self._kept.items() if not one.readers), None)
            if idle is None:
                raise ModelsFullError(FULL)
            self._close(self._kept.pop(idle))
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self.client(person))
            scope, rules = await asyncio.gather(find_scope(client), server_rules(client))
            model = ClusterModel(client, scope, kinds_for(scope, self.kinds), rules)
            task = asyncio.create_task(model.run(), name="model of a person")
            kept = self._kept[person] = KeptModel(model, stack.pop_all(), task)
        return kept

    def _drop(self, person: Person, kept: KeptModel) -> None:
        if not kept.readers:
            if self._kept.get(person) is kept:
                del self._kept[person]
            self._close(kept)

    def _close(self, kept: KeptModel) -> None:
        if kept.leaving is not None:
            kept.leaving.cancel()
        task = asyncio.create_task(_stopped(kept), name="model that ends")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        for kept in self._kept.values():
            self._close(kept)
        self._kept.clear()
        await asyncio.gather(*self._closing)


async def _stopped(kept: KeptModel) -> None:
    kept.task.cancel()
    await asyncio.gather(kept.task, return_exceptions=True)
    await kept.stack.aclose()
