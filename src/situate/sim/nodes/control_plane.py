"""The real control plane of a world: registry, scheduler and controllers on one store, as one actor.

The store survives it: an answered write is durable. A killed process writes nothing more, whatever its tasks still try.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Final

from situate.agent.control_plane_local import LocalControlPlane
from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.server.admission.chain import chain
from situate.server.controllers.registry_controllers import RegistryControllers
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.placing.binding import Binder
from situate.server.registry.cache import Cache
from situate.server.registry.metadata import NAME_ALPHABET, SUFFIX_LENGTH
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.scheduler import LostTermError, SchedulerSettings, open_scheduler
from situate.sim.nodes.run_log import RunLog
from situate.sim.nodes.virtual_time import Actor, DriftingClock
from situate.store.errors import ClosedError
from situate.store.memory import MemoryStore
from situate.store.transactions import Committed, Guard, Outcome, Write

NAMESPACES: Final = ("default", "kube-system", "kube-node-lease")
NAMESPACE: Final = BY_KIND["v1", "Namespace"]


class StoreProxy:
    """The store as one process reaches it. A dead process does not reach it any more."""

    def __init__(self, store: MemoryStore, committed: Callable[[Sequence[Write]], None]) -> None:
        self.open = True
        self._store = store
        self._committed = committed

    def __getattr__(self, name: str) -> Any:
        if not self.open:
            raise ClosedError
        return getattr(self._store, name)

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        asked = list(writes)
        outcome: Outcome = await self.__getattr__("commit")(guards, asked)
        if isinstance(outcome, Committed):
            self._committed(asked)
        return outcome

    async def aclose(self) -> None:
        """The store belongs to the world."""


class ControlPlaneProcess:
    def __init__(self, actor: Actor, store: StoreProxy, profile: NodeProfile, rng: Random) -> None:
        self.actor = actor
        self.ready = False
        self._store = store
        self._profile = profile
        self._rng = rng
        cache, transactions = Cache(store), BindTransactions(time.time_ns, self._uid, profile)
        self.registry = Registry(
            store,
            wall_ns=time.time_ns,
            new_uid=self._uid,
            cache=cache,
            admission=chain(cache, profile),
            extension=transactions,
            new_suffix=lambda: "".join(rng.choice(NAME_ALPHABET) for _ in range(SUFFIX_LENGTH)),
        )
        self.control_plane = LocalControlPlane(self.registry)
        self._binder = Binder(self.registry, time.time_ns, transactions.node_locks)

    def _uid(self) -> str:
        number = f"{self._rng.getrandbits(128):032x}"
        return f"{number[:8]}-{number[8:12]}-4{number[13:16]}-8{number[17:20]}-{number[20:]}"

    async def run(self) -> None:
        await self.registry.start()
        for name in NAMESPACES:
            if self.registry.cache.get(NAMESPACE, "", name) is None:
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                await self.registry.create(Target(NAMESPACE), body, SYSTEM)
        self.ready = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self._schedule())
            group.create_task(RegistryControllers(self.registry, time.time_ns, self._profile).run())

    async def _schedule(self) -> None:
        while True:
            settings = SchedulerSettings(identity="situate")
            async with open_scheduler(
                self._store, self.registry, self._binder, settings, wall_ns=time.time_ns
            ) as scheduler:
                try:
                    await scheduler.run()
                except LostTermError:
                    continue

    async def kill(self) -> None:
        self._store.open = False
        await self.actor.end()


class SimulatedControlPlane:
    """The current process, if there is one."""

    def __init__(
        self,
        clock: DriftingClock,
        profile: NodeProfile,
        rng: Random,
        log: RunLog,
        committed: Callable[[Sequence[Write]], None],
    ) -> None:
        self.clock = clock
        self.process: ControlPlaneProcess | None = None
        self.restarts = 0
        self._store = MemoryStore()
        self._profile = profile
        self._rng = rng
        self._log = log
        self._committed = committed

    def begin(self) -> None:
        actor = Actor(f"control plane {self.restarts}", self.clock)
        self.restarts += 1
        store = StoreProxy(self._store, self._committed)
        made = actor.run(lambda: ControlPlaneProcess(actor, store, self._profile, self._rng))
        self.process = made
        actor.begin(made.run()).add_done_callback(lambda task: self._ended(made, task))

    def _ended(self, process: ControlPlaneProcess, task: asyncio.Task[None]) -> None:
        if self.process is not process:
            return
        error = None if task.cancelled() else task.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        self._log.violation(f"the control plane crashed: {type(error).__name__}: {error}")

    async def kill(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            await process.kill()
