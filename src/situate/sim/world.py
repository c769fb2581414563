"""A world: a store, kubelets, users, faults, and one or two schedulers, all from one seed.

    result = run(seed)

First the faults of this seed are active, and the checkers run after every step (safety). Then the faults stop, and
within a minute every pod that fits must be bound (liveness). Then nothing happens for longer than the flush interval: a
pod that is placed by the flush missed an event, which is a violation as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import Final

from situate.core.changes import Millis
from situate.core.effects import Bind, Effect, Evict
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.queue.queue import FLUSH_EVERY_MS, UNSCHEDULABLE_LIMIT_MS
from situate.sim.churn import Churn
from situate.sim.devices.checker import SchedulerLife
from situate.sim.devices.world import SHARE, DeviceWorld, draw_devices
from situate.sim.faults import CALM, Faults, draw_faults
from situate.sim.kubelet import Kubelets
from situate.sim.room import overfull, running_on
from situate.sim.scheduler import SimulatedScheduler
from situate.sim.settings import draw_schedulers
from situate.sim.store import ObjectStore, StoreEvent
from situate.sim.timeline import Timeline

CHANGES: Final = 2_000
"""The default number of changes before the faults stop."""
CALM_MS: Final = 60_000
"""Within this time after the faults, every pod that fits is bound."""
QUIET_MS: Final = UNSCHEDULABLE_LIMIT_MS + 2 * FLUSH_EVERY_MS
"""Within this time the flush puts back every unschedulable pod."""
LONGEST_MS: Final = 3_600_000
"""The longest run of a world."""
EXCUSED_MS: Final = 60_000
"""After another writer took or shrank a node's resources, a bind in flight may overcommit it for this long."""


@dataclass(slots=True)
class WorldResult:
    """`digest` covers all changes and effects of the schedulers: equal runs have equal digests."""

    seed: int
    faults: Faults
    cast: str = ""
    """The schedulers, in short form."""
    steps: int = 0
    changes: int = 0
    """Those of our scheduler, not of the other one."""
    binds: int = 0
    evictions: int = 0
    restarts: int = 0
    flushed: int = 0
    """Pods that the flush put back, including those that rightly fit nowhere."""
    rescued: int = 0
    """Pods that only the flush placed."""
    ended_ms: Millis = 0
    digest: str = ""
    violations: list[str] = field(default_factory=list)


class World:
    """Each part has a random source of its own, so that none changes the draws of another."""

    def __init__(
        self,
        seed: int,
        *,
        changes: int = CHANGES,
        trace: Callable[[str], None] | None = None,
        devices: bool | None = None,
    ) -> None:
        """`devices`: whether the world has some; None: as drawn."""

        def rng(what: str) -> Random:
            return Random(f"{seed} {what}")  # noqa: S311 — a seeded die is the point

        self.outcome = WorldResult(seed, draw_faults(rng("faults")))
        self.cast = draw_schedulers(rng("cast"))
        self.outcome.cast = self.cast.said()
        self.timeline = Timeline()
        self.store = ObjectStore()
        self._wanted = changes
        self._trace = trace
        self._hash = blake2b(digest_size=16)
        self._shrunk: dict[str, Millis] = {}
        self._taken: dict[str, Millis] = {}
        self._room: dict[str, object] = {}
        self._bound: dict[str, str] = {}
        """The scheduler that bound each pod, by uid; "-": somebody else."""
        self.kubelets = Kubelets(self.timeline, rng("kubelets"), self.store)
        self.devices: DeviceWorld | None = None
        if rng("devices").random() < SHARE if devices is None else devices:
            self.devices = draw_devices(
                self.timeline, rng, self.store, self.outcome.faults, self._claim_writer, self.wrong
            )
            self.devices.checker.shares_pods = self.cast.kind == "the same pods"
        claims = None if self.devices is None else self.devices.server
        self.schedulers = [SimulatedScheduler("", self.cast.ours, self.timeline, self.store, rng, self, claims)]
        if self.cast.other is not None:
            self.schedulers.append(
                SimulatedScheduler("other ", self.cast.other, self.timeline, self.store, rng, self, claims)
            )
        users = None if self.devices is None else self.devices.users
        self.churn = Churn(
            self.timeline, rng("churn"), self.store, self.kubelets, self.outcome.faults, self.cast.names, users
        )
        self.churn.serves_foreign = self.cast.kind != "its own pods"
        self.store.heard_by += [self._watch_room, *(one.hear for one in self.schedulers), self.kubelets.hear]
        self._set_faults(self.outcome.faults)

    def _set_faults(self, faults: Faults) -> None:
        self.kubelets.faults = faults
        if self.devices is not None:
            self.devices.set_faults(faults)
        for scheduler in self.schedulers:
            scheduler.set_faults(faults)

    # -- running -------------------------------------------------------------------------------------------------

    def run(self) -> WorldResult:
        outcome = self.outcome
        if self.devices is not None:
            self.devices.begin()
        self.churn.begin()
        while not self.closed and outcome.changes < self._wanted and self.timeline.now < LONGEST_MS:
            self.timeline.advance()
        self._calm_down()
        self._go_on(CALM_MS)
        for scheduler in self.schedulers:
            if not self.closed:
                scheduler.finish()
        if self.devices is not None and not self.closed:
            pending = [one for each in self.schedulers for one in each.checkers.expected.pending_binds.values()]
            self.wrong("", self.devices.checker.left_behind({one.ref.uid for one in pending}))
        self._go_on(QUIET_MS)
        for scheduler in self.schedulers:
            scheduler.close()
            outcome.flushed += scheduler.flushed
            outcome.rescued += scheduler.rescued
        outcome.ended_ms = self.timeline.now
        outcome.digest = self._hash.hexdigest()
        return outcome

    def _go_on(self, for_ms: Millis) -> None:
        end = self.timeline.now + for_ms
        while not self.closed and (self.timeline.next_ms() or end) < end:
            self.timeline.advance()

    def _calm_down(self) -> None:
        """Stop the faults and the churn. Only schedulers and performers go on."""
        self.churn.stopped = self.kubelets.quiet = True
        if self.devices is not None:
            self.devices.calm_down()
        self._set_faults(CALM)

    # -- recording -----------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        return bool(self.outcome.violations)

    def wrong(self, who: str, problems: Iterable[str]) -> None:
        when = f"{who}step {self.outcome.steps}, {self.timeline.now / 1000:.3f} s"
        self.outcome.violations += [f"{when}: {problem}" for problem in problems]

    def restarted(self, who: str) -> None:
        self.outcome.restarts += 1
        if self.devices is not None:
            self.devices.checker.restarted(who)
        until = self.timeline.now + EXCUSED_MS
        self._shrunk = dict.fromkeys(self.store.nodes, until)  # requests of the dead one may still arrive

    def stepped(self, who: str, now: Millis, labels: list[str], effects: list[Effect]) -> None:
        outcome = self.outcome
        outcome.steps += 1
        outcome.changes += 0 if who else len(labels)
        outcome.binds += sum(isinstance(effect, Bind) for effect in effects)
        outcome.evictions += sum(isinstance(effect, Evict) for effect in effects)
        lines = [f"{now} {who}< {label}" for label in labels] + [f"{now} {who}> {effect}" for effect in effects]
        for line in lines:
            self._hash.update(line.encode() + b"\n")
            if self._trace is not None:
                self._trace(line)

    # -- overcommit at the bind ----------------------------------------------------------------------------------

    def _watch_room(self, written: StoreEvent) -> None:
        """A bind must fit when it is carried out.

        Kubernetes' server does not check resources, so two schedulers may overcommit a node together. But a scheduler's
        binds must fit next to its own, and next to what others did long before.
        """
        match written.item:
            case Node() as node:
                self._node_written(node, gone=written.gone)
            case Pod() as pod if pod.spec.node_name and not written.gone and pod.metadata.uid not in self._bound:
                self._pod_bound(pod, next((one for one in self.schedulers if one.binding), None))
            case _:
                pass

    def _node_written(self, node: Node, *, gone: bool) -> None:
        name, room = node.metadata.name, None if gone else node.status.allocatable
        if name in self._room and room != self._room[name]:
            self._shrunk[name] = self.timeline.now + EXCUSED_MS
        self._room[name] = room

    def _pod_bound(self, pod: Pod, by: SimulatedScheduler | None) -> None:
        name, now = pod.spec.node_name, self.timeline.now
        who = self._bound[pod.metadata.uid] = "-" if by is None else by.name
        if by is not None and name in self.store.nodes and self._shrunk.get(name, 0) <= now:
            there = running_on(name, self.store.pods.values())
            if self._taken.get(f"{who} {name}", 0) > now:
                there = [one for one in there if self._bound.get(one.metadata.uid) == who]
            short = overfull(self.store.nodes[name], there, pod, by.checkers.expected.extender_calls.unwatched)
            if short:
                self.wrong(by.name, [f"overcommit at the bind: {pod.metadata.name} on {name}: {short}"])
        if by is not None and self.devices is not None:
            self.devices.checker.bound(pod, by.name)
        for other in self.schedulers:
            if other is not by:
                self._taken[f"{other.name} {name}"] = now + EXCUSED_MS

    def _claim_writer(self) -> SchedulerLife | None:
        found = next((one for one in self.schedulers if one.writes_claims), None)
        return None if found is None else SchedulerLife(found.name, found.life)


def run(
    seed: int,
    *,
    changes: int = CHANGES,
    trace: Callable[[str], None] | None = None,
    devices: bool | None = None,
) -> WorldResult:
    return World(seed, changes=changes, trace=trace, devices=devices).run()
