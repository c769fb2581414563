"""The real control plane of a world: one or more servers on one store, each an actor with registry, scheduler and
controllers.

The store survives them: an answered write is durable. A killed process writes nothing more, whatever its tasks try.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from random import Random
from typing import Final

from situate.agent.control_plane_local import LocalControlPlane
from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.server.admission.chain import chain
from situate.server.controllers.leader import run_controllers
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.placing.binding import Binder
from situate.server.registry.cache import Cache
from situate.server.registry.metadata import NAME_ALPHABET, SUFFIX_LENGTH
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.scheduler import SchedulerSettings, run_scheduler
from situate.sim.nodes.checkers import NodeCheckers, ServerTimes
from situate.sim.nodes.run_log import RunLog
from situate.sim.nodes.store_link import SharedStore, StoreLink
from situate.sim.nodes.virtual_time import Actor, DriftingClock, VirtualLoop
from situate.store.entries import Revision
from situate.store.errors import StoreError
from situate.store.transactions import Write

NAMESPACES: Final = ("default", "kube-system", "kube-node-lease")
NAMESPACE: Final = BY_KIND["v1", "Namespace"]
NOTICES_S: Final = 1.5
"""A server that did not reach the store for so long judges nodes anew."""
BEHIND_S: Final = 5.0
"""How old a write may be that a server has not seen."""
START_AGAIN_S: Final = 1.0
"""The pause before a server that did not reach the store is started again."""


class PartEndedError(Exception):
    """A part of a server ended by itself. A supervisor would start it again; here that would hide the cause."""


class ControlPlaneProcess:
    def __init__(self, actor: Actor, name: str, store: StoreLink, profile: NodeProfile, rng: Random) -> None:
        self.actor = actor
        self.name = name
        self.ready = False
        self.store = store
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
        settings = SchedulerSettings(identity=self.name)
        scheduler = run_scheduler(self.store, self.registry, self._binder, settings, wall_ns=time.time_ns)
        controllers = run_controllers(self.registry, self.name, self._profile, wall_ns=time.time_ns)
        parts = [asyncio.create_task(part) for part in (scheduler, controllers)]
        try:
            ended, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in ended:
                raise PartEndedError from None if part.cancelled() else part.exception()
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def kill(self) -> None:
        self.store.open = False
        self.store.heal()
        await self.actor.end()


class SimulatedServer:
    """One server: its clock, and its current process, if there is one."""

    def __init__(
        self,
        loop: VirtualLoop,
        number: int,
        clock: DriftingClock,
        shared: SharedStore,
        profile: NodeProfile,
        rng: Random,
        log: RunLog,
        checkers: NodeCheckers,
    ) -> None:
        self.name = f"server {number}"
        self.times = ServerTimes(clock, profile.grace_ms / 1_000)
        self.process: ControlPlaneProcess | None = None
        self.restarts = 0
        self._cut_at = 0.0
        self._loop = loop
        self._shared = shared
        self._profile = profile
        self._rng = rng
        self._log = log
        self._checkers = checkers

    def begin(self) -> None:
        actor = Actor(f"{self.name}.{self.restarts}", self.times.clock)
        self.restarts += 1
        self.times.started(self._loop.now)
        store = StoreLink(self._shared, self._committed, self._rng, lambda: self._loop.now)
        made = actor.run(lambda: ControlPlaneProcess(actor, self.name, store, self._profile, self._rng))
        self.process = made
        actor.begin(made.run()).add_done_callback(lambda task: self._ended(made, task))

    def _committed(self, revision: Revision, writes: Sequence[Write]) -> None:
        self._shared.wrote(revision, writes, self._loop.now)
        self._checkers.committed(writes, self.times)

    def _ended(self, process: ControlPlaneProcess, task: asyncio.Task[None]) -> None:
        if self.process is not process:
            return
        error = None if task.cancelled() else task.exception()
        error = error.__cause__ or error if isinstance(error, PartEndedError) else error
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, StoreError | StatusError) and not process.ready:
            self._log.record(f"{self.name} does not reach the store, and is started again")
            self.process = None
            self._loop.world.begin(self._start_again(process))
            return
        self._log.violation(f"{self.name} crashed: {type(error).__name__}: {error}")

    async def _start_again(self, process: ControlPlaneProcess) -> None:
        await process.kill()
        await asyncio.sleep(START_AGAIN_S)
        self.begin()

    async def kill(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            await process.kill()

    # -- faults ------------------------------------------------------------------------------------------------------

    def cut_from_store(self) -> None:
        if self.process is not None and not self.process.store.is_cut:
            self._cut_at = self._loop.now
            self.process.store.cut()

    def reach_store(self) -> None:
        process = self.process
        if process is None or not process.store.is_cut:
            return
        noticed = self._loop.now - max(self._cut_at, self.times.resumed_at) > NOTICES_S
        if noticed and not process.actor.paused:
            self.times.sees_again(self._loop.now, self._cut_at)
        process.store.heal()


class SimulatedControlPlane:
    """All servers of a world. A client is sent to any that accepts connections."""

    def __init__(
        self,
        loop: VirtualLoop,
        clocks: Sequence[DriftingClock],
        profile: NodeProfile,
        rng: Random,
        log: RunLog,
        checkers: NodeCheckers,
        slow_s: float,
    ) -> None:
        self.shared = SharedStore(slow_s)
        self._loop = loop
        self.servers = [
            SimulatedServer(loop, number, clock, self.shared, profile, Random(rng.random()), log, checkers)  # noqa: S311
            for number, clock in enumerate(clocks)
        ]
        self._rng = Random(rng.random())  # noqa: S311

    @property
    def restarts(self) -> int:
        return sum(one.restarts for one in self.servers)

    def begin(self) -> None:
        for one in self.servers:
            one.begin()

    async def kill(self) -> None:
        for one in self.servers:
            await one.kill()

    def is_behind(self, process: ControlPlaneProcess) -> bool:
        """Whether it has not seen a write for too long."""
        shared = self.shared
        late = self._loop.now - shared.newest_at > BEHIND_S
        return late and process.registry.cache.revision < shared.newest

    def reached(self) -> ControlPlaneProcess | None:
        """The process that a new connection reaches; None: it is refused."""
        ready = [one.process for one in self.servers if one.process is not None and one.process.ready]
        if not ready:
            return None
        return ready[0] if len(ready) == 1 else self._rng.choice(ready)
