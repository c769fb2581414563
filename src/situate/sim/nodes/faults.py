"""Fault injection, drawn from the seed. Each kind is on or off, because all at once would hide one another.

Every fault ends by itself. Two faults of a machine do not overlap, except that its network may be cut at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from situate.core.reconcile.nodes.fencing import DRIFT, NodeProfile
from situate.sim.nodes.checkers import NodeCheckers
from situate.sim.nodes.control_plane import SimulatedControlPlane, SimulatedServer
from situate.sim.nodes.machine import Machine
from situate.sim.nodes.network import NetworkFaults
from situate.sim.nodes.run_log import RunLog
from situate.sim.nodes.virtual_time import DriftingClock
from situate.sim.nodes.workload import Users

KINDS: Final = (
    "churn",
    "compactions",
    "control plane pauses",
    "control plane restarts",
    "cuts",
    "cuts of many",
    "doubled messages",
    "drift",
    "late messages",
    "lost messages",
    "mixed streams",
    "nodes deleted",
    "old disks",
    "pauses",
    "reboots",
    "restarts",
    "several servers",
    "slow messages",
    "slow store",
    "store full",
    "store outages",
    "store stalls",
    "vanishing",
)
PASSIVE: Final = (
    "drift",
    "old disks",
    "several servers",
    "slow store",
    *(kind for kind in KINDS if kind.endswith(("messages", "streams"))),
)
"""Kinds that change how the world behaves, and are not events."""
ASLEEP_S: Final = 6.0
"""After a pause of this length, by its own clock, the control plane knows that it was paused."""
MOST_SERVERS: Final = 3
SLOW_STORE_S: Final = (0.02, 0.1, 0.5)
BREAKS_AFTER_S: Final = 10.0
"""The store breaks the watches of a server that is paused for longer."""
OUTAGES: Final = (1, 1, 1, 3)
"""The store may be back for a moment only, several times."""
ABSENT_S: Final = 40.0
"""The pods of a deleted node are left alone for this long."""
KEEP_EVERY_S: Final = (5.0, 40.0)


@dataclass(frozen=True, slots=True)
class FaultKinds:
    """The kinds of fault of a world."""

    on: frozenset[str]

    def named(self) -> str:
        return ", ".join(kind for kind in KINDS if kind in self.on) or "none"

    def network_faults(self, rng: Random) -> NetworkFaults:
        def probability(kind: str, most: float) -> float:
            return rng.uniform(0, most) if kind in self.on else 0.0

        return NetworkFaults(
            slow=probability("slow messages", 0.2),
            lost=probability("lost messages", 0.15),
            doubled=probability("doubled messages", 0.2),
            late=probability("late messages", 0.1),
            mixed=probability("mixed streams", 0.3),
        )

    def servers(self, rng: Random) -> int:
        return rng.randint(2, MOST_SERVERS) if "several servers" in self.on else 1

    def store_s(self, rng: Random) -> float:
        """The longest time that a write takes."""
        return rng.choice(SLOW_STORE_S) if "slow store" in self.on else 0.0

    def clock(self, rng: Random) -> DriftingClock:
        if "drift" not in self.on:
            return DriftingClock()
        rate = rng.choice([1 - DRIFT, 1 + DRIFT, rng.uniform(1 - DRIFT, 1 + DRIFT)])
        return DriftingClock(rate, rng.uniform(-300, 300))


class FaultInjector:
    def __init__(
        self,
        kinds: FaultKinds,
        profile: NodeProfile,
        rng: Random,
        control_plane: SimulatedControlPlane,
        machines: list[Machine],
        users: Users,
        log: RunLog,
        checkers: NodeCheckers,
    ) -> None:
        self.count = 0
        self._kinds = kinds
        self._rng = rng
        self._control_plane = control_plane
        self._machines = machines
        self._users = users
        self._log = log
        self._checkers = checkers
        self._grace_s = profile.grace_ms / 1_000
        self._busy: dict[Machine, None] = {}
        self._cut: dict[Machine, None] = {}
        self._busy_servers: dict[SimulatedServer, None] = {}
        self._store_busy = False
        self._under_way: list[asyncio.Task[None]] = []

    async def play(self, seconds: float) -> None:
        """Start faults for so long, then wait until all are over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        able = [one for one in KINDS if one in self._kinds.on and one not in PASSIVE]
        while able and loop.time() < end:
            await asyncio.sleep(self._rng.expovariate(6 / self._grace_s))
            work = self._begun(self._rng.choice(able))
            if work is not None:
                self.count += 1
                self._under_way.append(loop.create_task(work))
        for task in self._under_way:
            await task

    async def keep_disks(self) -> None:
        """Save the disks of machines now and then, until cancelled."""
        while True:
            await asyncio.sleep(self._rng.uniform(*KEEP_EVERY_S))
            self._rng.choice(self._machines).keep_disk()

    def _begun(self, kind: str) -> Coroutine[Any, Any, None] | None:
        if kind == "churn":
            return self._users.change_something()
        if kind in ("control plane pauses", "control plane restarts", "store stalls"):
            return self._on_server(kind)
        if kind in ("compactions", "store full", "store outages"):
            return self._on_store(kind)
        if kind == "cuts of many":
            return self._cut_many()
        if kind == "cuts":
            one = self._one(self._cut)
            return None if one is None else self._cut_one(one)
        one = self._one(self._busy)
        of_machines = {
            "pauses": self._pause,
            "restarts": self._restart,
            "reboots": self._reboot,
            "nodes deleted": self._delete_node,
            "vanishing": self._vanish,
        }
        return None if one is None else self._on_machine(of_machines[kind], one)

    async def _on_machine(self, fault: Callable[[Machine], Coroutine[Any, Any, None]], one: Machine) -> None:
        self._busy[one] = None
        await fault(one)
        del self._busy[one]

    def _one(self, taken: dict[Machine, None]) -> Machine | None:
        free = [one for one in self._machines if one not in taken]
        return self._rng.choice(free) if free else None

    def _short(self) -> float:
        """Mostly short; sometimes longer than the grace period of a node."""
        return min(self._rng.expovariate(1.5 / self._grace_s), 3 * self._grace_s)

    # -- the network ---------------------------------------------------------------------------------------------------

    async def _cut_one(self, one: Machine, seconds: float | None = None) -> None:
        self._cut[one] = None
        there, back = self._rng.choice([(True, True), (True, False), (False, True)])
        self._log.record(f"{one.name} is cut off{'' if there and back else ', one way'} ({there=}, {back=})")
        one.link.cut(there=there, back=back)
        await asyncio.sleep(self._short() if seconds is None else seconds)
        self._log.record(f"{one.name} is not cut off any more")
        one.link.heal()
        del self._cut[one]

    async def _cut_many(self) -> None:
        """Any number of machines."""
        free = [one for one in self._machines if one not in self._cut]
        many = self._rng.sample(free, self._rng.randint(0, len(free)))
        seconds = self._short()
        await asyncio.gather(*(self._cut_one(one, seconds) for one in many))

    # -- the control plane ---------------------------------------------------------------------------------------------

    def _on_server(self, kind: str) -> Coroutine[Any, Any, None] | None:
        free = [one for one in self._control_plane.servers if one not in self._busy_servers and one.process is not None]
        if not free:
            return None
        one = self._rng.choice(free)
        self._busy_servers[one] = None
        of_servers = {
            "control plane pauses": self._pause_server,
            "control plane restarts": self._restart_server,
            "store stalls": self._stall_store,
        }
        return self._until_free(one, of_servers[kind](one))

    async def _until_free(self, one: SimulatedServer, fault: Coroutine[Any, Any, None]) -> None:
        await fault
        del self._busy_servers[one]

    async def _pause_server(self, one: SimulatedServer) -> None:
        process, seconds = one.process, self._short()
        if process is None:
            return
        self._log.record(f"{one.name} is paused")
        process.actor.pause()
        paused_at = asyncio.get_running_loop().time()
        await asyncio.sleep(seconds)
        self._log.record(f"{one.name} resumes")
        if seconds * one.times.clock.rate > ASLEEP_S:
            one.times.sees_again(asyncio.get_running_loop().time(), paused_at)
        if seconds > BREAKS_AFTER_S and not process.store.is_cut:
            process.store.heal()
        one.times.resumed_at = asyncio.get_running_loop().time()
        process.actor.go_on()

    async def _restart_server(self, one: SimulatedServer) -> None:
        self._log.record(f"{one.name} dies")
        await one.kill()
        await asyncio.sleep(self._short())
        self._log.record(f"{one.name} restarts")
        one.begin()

    async def _stall_store(self, one: SimulatedServer) -> None:
        """The store answers the other servers, and not this one."""
        self._log.record(f"{one.name} does not reach the store")
        one.cut_from_store()
        await asyncio.sleep(self._short())
        if not self._control_plane.shared.away:
            self._log.record(f"{one.name} reaches the store again")
            one.reach_store()

    # -- the store -----------------------------------------------------------------------------------------------------

    def _on_store(self, kind: str) -> Coroutine[Any, Any, None] | None:
        if kind == "compactions":
            return self._compact()
        if self._store_busy:
            return None
        self._store_busy = True
        return self._stop_store() if kind == "store outages" else self._fill_store()

    async def _compact(self) -> None:
        self._log.record("the store is compacted")
        await self._control_plane.shared.compact()

    async def _stop_store(self) -> None:
        shared, servers = self._control_plane.shared, self._control_plane.servers
        for _ in range(self._rng.choice(OUTAGES)):
            self._log.record("the store is away")
            shared.away = True
            for one in servers:
                one.cut_from_store()
            await asyncio.sleep(self._short())
            self._log.record("the store is back")
            shared.away = False
            for one in servers:
                one.reach_store()
            await asyncio.sleep(self._rng.uniform(0, shared.slow_s))
        self._store_busy = False

    async def _fill_store(self) -> None:
        self._log.record("the store is full")
        self._control_plane.shared.full = True
        await asyncio.sleep(self._short())
        self._log.record("the store has room again")
        self._control_plane.shared.full = False
        self._store_busy = False

    # -- machines ------------------------------------------------------------------------------------------------------

    async def _pause(self, one: Machine) -> None:
        """Pause its agent; its containers go on."""
        actor = one.agent_actor
        if actor is not None:
            self._log.record(f"the agent of {one.name} is paused")
            actor.pause()
            await asyncio.sleep(self._short())
            self._log.record(f"the agent of {one.name} resumes")
            actor.go_on()

    async def _restart(self, one: Machine) -> None:
        """Restart its agent."""
        self._log.record(f"the agent of {one.name} dies")
        await one.kill_agent()
        await asyncio.sleep(self._short())
        self._put_back(one)
        self._log.record(f"the agent of {one.name} restarts")
        one.begin_agent()

    async def _reboot(self, one: Machine) -> None:
        self._log.record(f"{one.name} is powered off")
        await one.power_off()
        await asyncio.sleep(self._short())
        self._put_back(one)
        self._log.record(f"{one.name} is powered on")
        one.power_on()

    def _put_back(self, one: Machine) -> None:
        if "old disks" in self._kinds.on and one.disks and self._rng.random() < 0.7:
            disk = self._rng.choice(one.disks)
            self._log.record(f"{one.name} has its disk from {disk.at:.3f}")
            one.put_back(disk)

    async def _vanish(self, one: Machine) -> None:
        """Power off for long; users may delete the node or taint it."""
        self._log.record(f"{one.name} disappears")
        await one.power_off()
        await asyncio.sleep(self._short())
        said = self._rng.choice(["nothing", "deleted", "out of service"])
        if said == "deleted":
            await self._users.delete_node(one.name)
        elif said == "out of service":
            await self._users.out_of_service(one.name, out=True)
        await asyncio.sleep(self._grace_s + 2 * self._short())
        self._put_back(one)
        self._log.record(f"{one.name} is back")
        one.power_on()
        if said == "out of service":
            await self._users.out_of_service(one.name, out=False)

    async def _delete_node(self, one: Machine) -> None:
        """Delete the node of a healthy machine, which is often cut off: then it does not know, and its pods are
        replaced."""
        cut = None
        if one not in self._cut and self._rng.random() < 0.7:
            cut = asyncio.create_task(self._cut_one(one, 2 * self._grace_s + ABSENT_S))
            await asyncio.sleep(self._rng.uniform(0, 2))
        await self._users.delete_node(one.name)
        await asyncio.sleep(self._short())
        if cut is not None:
            await cut
