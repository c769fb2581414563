"""One world from its seed: it starts without faults, then faults are injected for some minutes, then it must settle.

At last a machine is lost and does not come back: everything that may move must run on the others.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from situate.agent import host
from situate.core.reconcile.nodes.fencing import FAST, KUBERNETES, NodeProfile
from situate.sim.nodes.checkers import ZONE, NodeCheckers
from situate.sim.nodes.control_plane import SimulatedControlPlane
from situate.sim.nodes.devices import SHARE, DeviceDriver, DeviceWorkloads
from situate.sim.nodes.faults import KINDS, FaultInjector, FaultKinds
from situate.sim.nodes.machine import Machine, facts_of
from situate.sim.nodes.network import Link, NetworkFaults
from situate.sim.nodes.run_log import RunLog
from situate.sim.nodes.settled import unsettled
from situate.sim.nodes.virtual_time import ACTOR, VirtualLoop, interposed
from situate.sim.nodes.workload import Users

BEGIN_S: Final = 10.0
BOUND_S: Final = 150.0
"""The world must settle within this time after the last fault."""
LOOK_S: Final = 5.0
STAYS_S: Final = 75.0
"""It must stay settled for this long, because old messages may still arrive."""
LOST_BOUND_S: Final = {"fast": 90.0, "kubernetes": 160.0}
"""What runs on a lost machine must run elsewhere within this time: grace, eviction rate, the longest toleration, and
a quarter of a minute, by the slowest clock."""
PART: Final = 0.45
"""The probability of each kind of fault."""
LINGERING: Final = frozenset({"late messages", "doubled messages"})
LATE_STORE: Final = frozenset({"slow store", "store outages", "store stalls"})
LATE_S: Final = 30.0
"""How late a write may be in a world with one of these."""
PATIENCE_S: Final = {"fast": (0, 5, 15), "kubernetes": (0, 10, 30)}
LASTS_S: Final = {"fast": (40.0, 140.0), "kubernetes": (120.0, 300.0)}
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of its own is made there


@dataclass(frozen=True, slots=True)
class NodeWorldResult:
    seed: int
    profile: str
    violations: tuple[str, ...]
    log: tuple[str, ...]
    digest: str
    faults: str
    nodes: int
    servers: int
    pods: int
    starts: int
    faults_played: int
    evictions: int
    given_up: int
    restarts: int
    settled_s: float
    allocations: int
    """How often devices were given to a claim."""
    recovered_s: float
    """How long after the loss of a machine everything that may move ran again."""
    minutes: float


def run(
    seed: int,
    trace: Callable[[str], None] | None = None,
    *,
    kinds: Collection[str] | None = None,
    profile: NodeProfile | None = None,
    devices: bool | None = None,
) -> NodeWorldResult:
    """The same seed gives the same log. `kinds` of fault, `profile` and whether there are `devices` are drawn unless
    given."""
    loop = VirtualLoop()
    with interposed(loop), _uncollected(), _directory() as directory:
        world = _World(loop, seed, directory, trace, kinds, profile, devices)
        try:
            with _machines_alike({one.directory: one for one in world.machines}):
                return loop.run_until_complete(world.play())
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


class _World:
    def __init__(
        self,
        loop: VirtualLoop,
        seed: int,
        directory: Path,
        trace: Callable[[str], None] | None,
        kinds: Collection[str] | None,
        profile: NodeProfile | None,
        devices: bool | None,
    ) -> None:
        ACTOR.set(loop.world)
        rng = Random(seed)  # noqa: S311 - it is to be guessed
        self.seed = seed
        self.loop = loop
        self.profile: NodeProfile = profile or rng.choice([FAST, KUBERNETES])
        self.kinds = FaultKinds(frozenset(kinds if kinds is not None else [k for k in KINDS if rng.random() < PART]))
        self.log = RunLog(loop, trace)
        clocks = [self.kinds.clock(rng) for _ in range(self.kinds.servers(rng))]
        self.checkers = NodeCheckers(loop, self.log, self.profile, LATE_S if self.kinds.on & LATE_STORE else 0.0)
        self.control_plane = SimulatedControlPlane(
            loop, clocks, self.profile, _rng(rng), self.log, self.checkers, self.kinds.store_s(rng)
        )
        zones = rng.randint(1, 3)
        count = rng.randint(3, 8)
        self.machines = [self._machine(f"n{n}", f"zone-{n % zones}", rng, directory) for n in range(count)]
        self.users = Users(self.control_plane, _rng(rng), self.log, PATIENCE_S[self.profile.name])
        self.lasts_s = rng.uniform(*LASTS_S[self.profile.name])
        self.faults = FaultInjector(
            self.kinds,
            self.profile,
            _rng(rng),
            self.control_plane,
            self.machines,
            self.users,
            self.log,
            self.checkers,
        )
        self.pods = 0
        self._loss = _rng(rng)
        self.lost: Machine | None = None
        own = Random(f"devices {seed}")  # noqa: S311
        has_devices = own.random() < SHARE if devices is None else devices
        self.device_workloads = DeviceWorkloads(self.users, own) if has_devices else None
        self.drivers = [DeviceDriver(one) for one in self.machines] if has_devices else []

    def _machine(self, name: str, zone: str, rng: Random, directory: Path) -> Machine:
        link = Link(self.loop, self.control_plane, self.kinds.network_faults(rng), _rng(rng))
        return Machine(
            self.loop,
            name,
            {ZONE: zone},
            self.kinds.clock(rng),
            directory / name,
            link,
            self.profile,
            self.log,
            self.checkers,
        )

    async def play(self) -> NodeWorldResult:
        servers = len(self.control_plane.servers)
        self.log.record(
            f"{self.profile.name}; {len(self.machines)} machines; {servers} servers; faults: {self.kinds.named()}"
        )
        self.control_plane.begin()
        for one in self.machines:
            one.power_on()
        for driver in self.drivers:
            driver.begin()
        await self.users.begin()
        if self.device_workloads is not None:
            await self.device_workloads.begin()
        await asyncio.sleep(BEGIN_S)
        keeping = asyncio.create_task(self.faults.keep_disks())
        await self.faults.play(self.lasts_s)
        keeping.cancel()
        settled_s = await self._settle()
        recovered_s = 0.0 if self.log.violations else await self._lose_one()
        outcome = self._outcome(settled_s, recovered_s)
        for driver in self.drivers:
            await driver.end()
        for one in self.machines:
            await one.kill_agent()
        await self.control_plane.kill()
        return outcome

    async def _settle(self) -> float:
        """Wait until the world settles; return how long that took."""
        self.log.record("all faults are over")
        for one in self.machines:
            one.link.network_faults = NetworkFaults()
            one.link.heal()
        begun = self.loop.now
        await asyncio.sleep(self.profile.lease_ms / 1_000)  # A lease that could not be renewed may still expire.
        while (left := self._unsettled()) and self.loop.now - begun < BOUND_S:
            await asyncio.sleep(LOOK_S)
        took = self.loop.now - begun
        if left:
            self.log.violation(f"not settled after {took:.0f} s: {'; '.join(left)}")
            return took
        self.log.record("all is settled")
        await asyncio.sleep(STAYS_S if self.kinds.on & LINGERING else LOOK_S)
        if left := self._unsettled():
            self.log.violation(f"it did not stay settled: {'; '.join(left)}")
        return took

    async def _lose_one(self) -> float:
        """Lose a machine for good; return how long it took until everything that may move ran elsewhere."""
        one = self.lost = self._loss.choice(self.machines)
        how = self._loss.choice(["powered off", "frozen", "cut off"])
        self.log.record(f"{one.name} is {how} for good")
        if how == "powered off":
            await one.power_off()
        elif how == "frozen" and one.agent_actor is not None:
            one.agent_actor.pause()
        else:
            one.link.cut(there=True, back=True)
        begun, bound_s = self.loop.now, LOST_BOUND_S[self.profile.name]
        await asyncio.sleep(self.profile.lease_ms / 1_000)
        while (left := self._unsettled()) and self.loop.now - begun < bound_s:
            await asyncio.sleep(1.0)
        if left:
            self.log.violation(f"not recovered {bound_s:.0f} s after {one.name} was lost: {'; '.join(left)}")
        took = self.loop.now - begun
        if how == "frozen" and one.agent_actor is not None:
            one.agent_actor.go_on()
        elif how == "cut off":
            one.link.heal()
        else:
            one.power_on()
        await asyncio.sleep(BEGIN_S)  # it must not run what it had
        return took

    def _unsettled(self) -> list[str]:
        there = [one for one in self.machines if one is not self.lost]
        return unsettled(self.checkers, there, self.users, self.control_plane)

    def _outcome(self, settled_s: float, recovered_s: float) -> NodeWorldResult:
        return NodeWorldResult(
            seed=self.seed,
            profile=self.profile.name,
            violations=tuple(self.log.violations),
            log=tuple(self.log.lines),
            digest=self.log.digest,
            faults=self.kinds.named(),
            nodes=len(self.machines),
            pods=len(self.checkers.pods),
            starts=self.checkers.starts,
            faults_played=self.faults.count,
            evictions=self.checkers.evictions,
            given_up=self.checkers.given_up,
            servers=len(self.control_plane.servers),
            restarts=self.control_plane.restarts - len(self.control_plane.servers),
            settled_s=settled_s,
            allocations=self.checkers.claims.allocations,
            recovered_s=recovered_s,
            minutes=self.loop.now / 60,
        )


def _rng(rng: Random) -> Random:
    """A new random source, so that its users do not change each other's draws."""
    return Random(rng.random())  # noqa: S311


@contextmanager
def _machines_alike(machines: Mapping[Path, Machine]) -> Iterator[None]:
    """Make the reported facts independent of the machine that runs the simulation."""
    real = host.facts, host.pressure
    host.facts = lambda directory: facts_of(machines[directory].boots)
    host.pressure = lambda directory: host.Pressure()
    try:
        yield
    finally:
        host.facts, host.pressure = real


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection, which would take a third of the time: the whole world is dropped at the end."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def _directory() -> Iterator[Path]:
    """On tmpfs, if there is one."""
    made = Path(tempfile.mkdtemp(prefix="situate-sim-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
