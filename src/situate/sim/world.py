"""A world: a store, kubelets, people, faults, and a scheduler in it, all from one seed.

    outcome = run(seed)

First everything goes wrong that this seed has in store (safety: the checkers after every step); then the faults stop,
and within a minute every pod that fits must be bound (liveness).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Final

from situate.core.changes import Change, Millis
from situate.core.config.defaults import default_configuration
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Bind, Effect, Evict
from situate.core.engine.engine import BATCH, Engine
from situate.core.engine.profile import build_profiles
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.sim.checkers import Checkers, Step, overfull, running_on
from situate.sim.churn import Churn
from situate.sim.faults import CALM, Faults, draw_faults
from situate.sim.feed import Feed
from situate.sim.kubelet import Kubelets
from situate.sim.performer import Performer
from situate.sim.store import Store, Written
from situate.sim.timeline import Timeline

CHANGES: Final = 2_000
"""How many changes a world tells its scheduler before the faults stop, unless it is asked for more."""
CALM_MS: Final = 60_000
"""How long after the faults every pod that fits is bound."""
LONGEST_MS: Final = 3_600_000
"""A world that has not come to its end by then has nothing left to say."""
EXCUSED_MS: Final = 60_000
"""For so long after somebody else took or shrank a node's room, a bind that was under way may find it too full."""


@dataclass(slots=True)
class Outcome:
    """How a run went. `digest` is of everything the scheduler was told and asked for: equal runs, equal digests."""

    seed: int
    faults: Faults
    steps: int = 0
    changes: int = 0
    binds: int = 0
    evictions: int = 0
    restarts: int = 0
    ended_ms: Millis = 0
    digest: str = ""
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pace:
    """How the scheduler is run: how many pods a step, and how long it lets changes gather."""

    batch: int
    gather_ms: Millis


def draw_pace(dice: Random) -> Pace:
    return Pace(dice.choice((1, 3, BATCH, BATCH)), dice.choice((0, 0, 5, 100, 1_000)))


class World:
    """One run. Everything is drawn from the seed; each part has dice of its own, so that none moves another's draws."""

    def __init__(self, seed: int, *, changes: int = CHANGES, trace: Callable[[str], None] | None = None) -> None:
        def dice(what: str) -> Random:
            return Random(f"{seed} {what}")  # noqa: S311 — a seeded die is the point

        self.outcome = Outcome(seed, draw_faults(dice("faults")))
        self.timeline = Timeline()
        self.store = Store()
        self.pace = draw_pace(dice("pace"))
        self.config: KubeSchedulerConfiguration = default_configuration()
        self.feed = Feed(self.timeline, dice("feed"), self._tell)
        self.kubelets = Kubelets(self.timeline, dice("kubelets"), self.store)
        self.performer = Performer(self.timeline, dice("performer"), self.store, self._tell)
        self.churn = Churn(self.timeline, dice("churn"), self.store, self.kubelets, self.outcome.faults)
        self._dice = dice("world")
        self._wanted = changes
        self._trace = trace
        self._hash = blake2b(digest_size=16)
        self._inbox: list[tuple[str, Change]] = []
        self._step_at: Millis | None = None
        self._excused: dict[str, Millis] = {}
        self._room: dict[str, object] = {}
        self._bound: dict[str, None] = {}
        self._calm = False
        self._start_scheduler()
        self.store.heard_by += [self._watch_room, self.feed.hear, self.kubelets.hear]
        self._set_faults(self.outcome.faults)

    def _set_faults(self, faults: Faults) -> None:
        self.feed.faults = self.kubelets.faults = self.performer.faults = faults

    # -- running -------------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        outcome = self.outcome
        self.churn.begin()
        while not outcome.violations and outcome.changes < self._wanted and self.timeline.now < LONGEST_MS:
            self.timeline.advance()
        self._calm_down()
        end = self.timeline.now + CALM_MS
        while not outcome.violations and (self.timeline.next_ms() or end) < end:
            self.timeline.advance()
        if not outcome.violations:
            outcome.violations += self._said(self.checkers.waiting_that_fit())
        outcome.ended_ms = self.timeline.now
        outcome.digest = self._hash.hexdigest()
        return outcome

    def _calm_down(self) -> None:
        """The faults stop, and nobody does anything any more but the scheduler, and those who carry out."""
        self._calm = True
        self.churn.stopped = self.kubelets.quiet = True
        self._set_faults(CALM)

    # -- the scheduler -------------------------------------------------------------------------------------------

    def _start_scheduler(self) -> None:
        self.engine = Engine(self.config, batch=self.pace.batch)
        deciding = next(iter(build_profiles(self.config).values()))
        self.checkers = Checkers(self.engine, deciding)

    def _restart(self) -> None:
        """The scheduler dies, and another starts with nothing but what is in the store."""
        self.outcome.restarts += 1
        self.performer.restart()
        self._excused = dict.fromkeys(self.store.nodes, self.timeline.now + EXCUSED_MS)
        self._start_scheduler()
        self._inbox.clear()
        for label, change in self.feed.relist(self.store, pods_first=self._dice.random() < 0.5):
            self._tell(label, change)

    def _tell(self, label: str, change: Change) -> None:
        self._inbox.append((label, change))
        self._step_within(self.pace.gather_ms)

    def _step_within(self, delay_ms: Millis) -> None:
        due = self.timeline.now + delay_ms
        if self._step_at is None or due < self._step_at:
            self._step_at = due
            self.timeline.after(delay_ms, self._step, due)

    def _step(self, due: Millis) -> None:
        if self._step_at != due or self.outcome.violations:
            return  # it has been done earlier
        self._step_at = None
        if not self._calm and self._dice.random() < self.outcome.faults.scheduler_restarts:
            self._restart()
        told, self._inbox = self._inbox, []
        now, outcome = self.timeline.now, self.outcome
        outcome.steps += 1
        outcome.changes += len(told)
        changes = [change for _, change in told]
        self.checkers.before(now)
        try:
            effects = self.engine.step(now, changes)
        except Exception as error:  # noqa: BLE001 — whatever it is, it is a finding
            outcome.violations += self._said([raised(error)])
            return
        self._write_down(now, [label for label, _ in told], effects)
        outcome.violations += self._said(self.checkers.after(Step(outcome.steps, now, changes, effects)))
        for effect in effects:
            self._perform(effect)
        next_due = self.engine.next_due_ms(now)
        if next_due is not None:
            self._step_within(max(1, next_due - now))

    def _perform(self, effect: Effect) -> None:
        self.outcome.binds += isinstance(effect, Bind)
        self.outcome.evictions += isinstance(effect, Evict)
        self.performer.perform(effect)

    def _said(self, problems: Iterator[str] | list[str]) -> list[str]:
        when = f"step {self.outcome.steps}, {self.timeline.now / 1000:.3f} s"
        return [f"{when}: {problem}" for problem in problems]

    def _write_down(self, now: Millis, labels: list[str], effects: list[Effect]) -> None:
        lines = [f"{now} < {label}" for label in labels] + [f"{now} > {effect}" for effect in effects]
        for line in lines:
            self._hash.update(line.encode() + b"\n")
            if self._trace is not None:
                self._trace(line)

    # -- the room of nodes, as it really is -----------------------------------------------------------------------

    def _watch_room(self, written: Written) -> None:
        """Our binds fit, as of the moment they are carried out; unless somebody else took or shrank the room."""
        match written.item:
            case Node() as node:
                self._node_written(node, gone=written.gone)
            case Pod() as pod if pod.spec.node_name and not written.gone and pod.metadata.uid not in self._bound:
                self._bound[pod.metadata.uid] = None
                self._pod_bound(pod)
            case _:
                pass

    def _node_written(self, node: Node, *, gone: bool) -> None:
        name, room = node.metadata.name, None if gone else node.status.allocatable
        if name in self._room and room != self._room[name]:
            self._excuse(name)
        self._room[name] = room

    def _pod_bound(self, pod: Pod) -> None:
        name = pod.spec.node_name
        if not self.performer.binding:
            self._excuse(name)
        elif name in self.store.nodes and self._excused.get(name, 0) <= self.timeline.now:
            short = overfull(self.store.nodes[name], running_on(name, self.store.pods.values()), pod)
            if short:
                self.outcome.violations += self._said(
                    [f"overcommit at the bind: {pod.metadata.name} on {name}: {short}"]
                )

    def _excuse(self, node: str) -> None:
        self._excused[node] = self.timeline.now + EXCUSED_MS


def raised(error: Exception) -> str:
    """An exception in one line, with the place it comes from."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"raised: {type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


def run(seed: int, *, changes: int = CHANGES, trace: Callable[[str], None] | None = None) -> Outcome:
    """One world from beginning to end."""
    return World(seed, changes=changes, trace=trace).run()
