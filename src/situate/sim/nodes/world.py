"""One world, from its seed: it begins whole, then things go wrong for some minutes; after that it must settle."""

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
from situate.core.reconcile.nodes.fencing import FAST, KUBERNETES, Profile
from situate.sim.nodes.checkers import ZONE, Checkers
from situate.sim.nodes.faults import KINDS, Faults, Kinds
from situate.sim.nodes.machine import Machine, facts_of
from situate.sim.nodes.network import Habits, Link
from situate.sim.nodes.plant import Plant
from situate.sim.nodes.settled import unsettled
from situate.sim.nodes.story import Story
from situate.sim.nodes.virtual import OWNER, VirtualLoop, interposed
from situate.sim.nodes.workload import People

__all__ = ["BOUND_S", "Outcome", "run"]

BEGIN_S: Final = 10.0
BOUND_S: Final = 150.0
"""By when everything must have settled after the last fault."""
LOOK_S: Final = 5.0
STAYS_S: Final = 75.0
"""How long it must stay so: messages that were sent before may still come, and must change nothing."""
PART: Final = 0.45
"""Of all kinds of fault, so many are in a world."""
LINGERING: Final = frozenset({"late messages", "doubled messages"})
PATIENCE_S: Final = {"fast": (0, 5, 15), "kubernetes": (0, 10, 30)}
LASTS_S: Final = {"fast": (40.0, 140.0), "kubernetes": (120.0, 300.0)}
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of its own is made there


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    profile: str
    violations: tuple[str, ...]
    story: tuple[str, ...]
    digest: str
    faults: str
    nodes: int
    pods: int
    starts: int
    faults_played: int
    evictions: int
    given_up: int
    restarts: int
    settled_s: float
    minutes: float


def run(
    seed: int,
    trace: Callable[[str], None] | None = None,
    *,
    kinds: Collection[str] | None = None,
    profile: Profile | None = None,
) -> Outcome:
    """The same seed gives the same story. `kinds` of fault and `profile` are drawn, unless they are given."""
    loop = VirtualLoop()
    with interposed(loop), _uncollected(), _directory() as directory:
        world = _World(loop, seed, directory, trace, kinds, profile)
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
        profile: Profile | None,
    ) -> None:
        OWNER.set(loop.world)
        dice = Random(seed)  # noqa: S311 - it is to be guessed
        self.seed = seed
        self.loop = loop
        self.profile: Profile = profile or dice.choice([FAST, KUBERNETES])
        self.kinds = Kinds(frozenset(kinds if kinds is not None else [k for k in KINDS if dice.random() < PART]))
        self.story = Story(loop, trace)
        clock = self.kinds.clock(dice)
        self.checkers = Checkers(loop, self.story, self.profile, clock)
        self.plant = Plant(clock, self.profile, _dice(dice), self.story, self.checkers.committed)
        zones = dice.randint(1, 3)
        count = dice.randint(3, 8)
        self.machines = [self._machine(f"n{n}", f"zone-{n % zones}", dice, directory) for n in range(count)]
        self.people = People(self.plant, _dice(dice), self.story, PATIENCE_S[self.profile.name])
        self.lasts_s = dice.uniform(*LASTS_S[self.profile.name])
        self.faults = Faults(
            self.kinds,
            self.profile,
            _dice(dice),
            self.plant,
            self.machines,
            self.people,
            self.story,
            self.checkers,
        )
        self.pods = 0

    def _machine(self, name: str, zone: str, dice: Random, directory: Path) -> Machine:
        link = Link(self.loop, self.plant, self.kinds.habits(dice), _dice(dice))
        return Machine(
            self.loop,
            name,
            {ZONE: zone},
            self.kinds.clock(dice),
            directory / name,
            link,
            self.profile,
            self.story,
            self.checkers,
        )

    async def play(self) -> Outcome:
        self.story.say(f"{self.profile.name}; {len(self.machines)} machines; faults: {self.kinds.named()}")
        self.plant.begin()
        for one in self.machines:
            one.power_on()
        await self.people.begin()
        await asyncio.sleep(BEGIN_S)
        keeping = asyncio.create_task(self.faults.keep_disks())
        await self.faults.play(self.lasts_s)
        keeping.cancel()
        settled_s = await self._settle()
        outcome = self._outcome(settled_s)
        for one in self.machines:
            await one.kill_agent()
        await self.plant.kill()
        return outcome

    async def _settle(self) -> float:
        """How long that took."""
        self.story.say("all faults are over")
        for one in self.machines:
            one.link.habits = Habits()
            one.link.heal()
        begun = self.loop.now
        await asyncio.sleep(self.profile.lease_ms / 1_000)  # Who could not renew a lease before may still lose it.
        while (left := self._unsettled()) and self.loop.now - begun < BOUND_S:
            await asyncio.sleep(LOOK_S)
        took = self.loop.now - begun
        if left:
            self.story.wrong(f"not settled after {took:.0f} s: {'; '.join(left)}")
            return took
        self.story.say("all is settled")
        await asyncio.sleep(STAYS_S if self.kinds.on & LINGERING else LOOK_S)
        if left := self._unsettled():
            self.story.wrong(f"it did not stay settled: {'; '.join(left)}")
        return took

    def _unsettled(self) -> list[str]:
        return unsettled(self.checkers, self.machines, self.people, self.plant)

    def _outcome(self, settled_s: float) -> Outcome:
        return Outcome(
            seed=self.seed,
            profile=self.profile.name,
            violations=tuple(self.story.violations),
            story=tuple(self.story.lines),
            digest=self.story.digest,
            faults=self.kinds.named(),
            nodes=len(self.machines),
            pods=len(self.checkers.pods),
            starts=self.checkers.starts,
            faults_played=self.faults.count,
            evictions=self.checkers.evictions,
            given_up=self.checkers.given_up,
            restarts=self.plant.restarts - 1,
            settled_s=settled_s,
            minutes=self.loop.now / 60,
        )


def _dice(dice: Random) -> Random:
    """Another one, so that who rolls more often does not change what others roll."""
    return Random(dice.random())  # noqa: S311


@contextmanager
def _machines_alike(machines: Mapping[Path, Machine]) -> Iterator[None]:
    """What an agent says of its machine does not depend on the one that this runs on."""
    real = host.facts, host.pressure
    host.facts = lambda directory: facts_of(machines[directory].boots)
    host.pressure = lambda directory: host.Pressure()
    try:
        yield
    finally:
        host.facts, host.pressure = real


@contextmanager
def _uncollected() -> Iterator[None]:
    """A world is thrown away whole: to look for garbage in it, again and again, takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def _directory() -> Iterator[Path]:
    """In memory, if there is such a place."""
    made = Path(tempfile.mkdtemp(prefix="situate-sim-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
