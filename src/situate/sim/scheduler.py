"""One scheduler in a world: the engine, its watches, its performer and its checkers.

A world has one, or two that know of each other only through the store.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from situate.core.changes import Change, Millis
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Effect
from situate.core.engine.engine import BATCH, Engine
from situate.sim.checkers import Checkers
from situate.sim.devices.claim_server import ClaimServer
from situate.sim.devices.claim_writer import ClaimWriter
from situate.sim.extender import SimulatedExtenders
from situate.sim.faults import CALM, Faults
from situate.sim.feed import WatchFeed
from situate.sim.performer import FaultyPerformer
from situate.sim.steps import SchedulerStep
from situate.sim.store import ObjectStore, StoreEvent
from situate.sim.timeline import Timeline


@dataclass(frozen=True, slots=True)
class SchedulerPace:
    """The batch size of a step, and how long changes are collected before it."""

    batch: int
    gather_ms: Millis


def draw_pace(rng: Random) -> SchedulerPace:
    return SchedulerPace(rng.choice((1, 3, BATCH, BATCH)), rng.choice((0, 0, 5, 100, 1_000)))


class RunRecorder(Protocol):
    """Receives the steps and violations of schedulers."""

    def stepped(self, who: str, now: Millis, labels: list[str], effects: list[Effect]) -> None: ...

    def wrong(self, who: str, problems: Iterable[str]) -> None: ...

    def restarted(self, who: str) -> None: ...

    @property
    def closed(self) -> bool:
        """Whether there was a violation, after which the run stops."""


class SimulatedScheduler:
    """A scheduler that sometimes dies and starts again."""

    def __init__(
        self,
        name: str,
        config: KubeSchedulerConfiguration,
        timeline: Timeline,
        store: ObjectStore,
        rng: Callable[[str], Random],
        recorder: RunRecorder,
        claims: ClaimServer | None = None,
    ) -> None:
        """`claims`: where claims for devices are written, if the world has some."""
        self.name = name
        self.config = config
        self.pace = draw_pace(rng(f"{name}pace"))
        self.faults = CALM
        self.life = 0
        """How often it was started again."""
        self._timeline = timeline
        self._store = store
        self._claims = claims
        self._claims_rng = rng(f"{name}claims")
        self._rng = rng(f"{name}world")
        self._recorder = recorder
        self.feed = WatchFeed(timeline, rng(f"{name}feed"), self._tell)
        self.extenders = SimulatedExtenders(timeline, rng(f"{name}extenders"), config.extenders, self._tell)
        self.performer = FaultyPerformer(timeline, rng(f"{name}performer"), store, self._tell, self.extenders)
        self._inbox: list[tuple[str, Change]] = []
        self._step_at: Millis | None = None
        self._steps = 0
        self.rescued = self.flushed = 0
        self._start()

    def set_faults(self, faults: Faults) -> None:
        self.faults = self.feed.faults = self.performer.faults = self.extenders.faults = faults
        if self.performer.claims is not None:
            self.performer.claims.set_faults(faults)

    def hear(self, written: StoreEvent) -> None:
        self.feed.hear(written)

    @property
    def binding(self) -> bool:
        """Whether the current write is a bind of this scheduler."""
        return self.performer.binding

    @property
    def writes_claims(self) -> bool:
        """Whether the current write is one of this scheduler to a claim for devices."""
        return self.performer.claims is not None and self.performer.claims.writes

    # -- life cycle ----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self.engine = Engine(self.config, batch=self.pace.batch)
        self.checkers = Checkers(self.engine, self.config, self.extenders.takes)
        if self._claims is not None:
            answer = self.performer.answer_claims
            self.performer.claims = ClaimWriter(
                self._timeline,
                self._claims_rng,
                self._store,
                self._claims,
                self.engine,
                answer,
                f"{self.name}{self.life}",
            )
            self.performer.claims.set_faults(self.faults)

    def _restart(self) -> None:
        """It dies, and another starts from a list of the store. Old binds are still in flight."""
        self._count_flushed()
        self.performer.restart()
        self.life += 1
        self._recorder.restarted(self.name)
        self._start()
        self._inbox.clear()
        for label, change in self.feed.relist(pods_first=self._rng.random() < 0.5):
            self._tell(label, change)

    def _count_flushed(self) -> None:
        self.flushed += self.engine.queue.flushed
        self.rescued += self.engine.queue.rescued

    def finish(self) -> None:
        """Report the pods that should be bound at the end."""
        self._recorder.wrong(self.name, self.checkers.waiting_that_fit(self._timeline.now))

    def close(self) -> None:
        self._count_flushed()
        if self.performer.claims is not None:
            self.performer.claims.kill()

    # -- stepping ------------------------------------------------------------------------------------------------

    def _tell(self, label: str, change: Change) -> None:
        self._inbox.append((label, change))
        self._step_within(self.pace.gather_ms)

    def _step_within(self, delay_ms: Millis) -> None:
        due = self._timeline.now + delay_ms
        if self._step_at is None or due < self._step_at:
            self._step_at = due
            self._timeline.after(delay_ms, self._step, due)

    def _step(self, due: Millis) -> None:
        if self._step_at != due or self._recorder.closed:
            return  # done earlier
        self._step_at = None
        if self._rng.random() < self.faults.scheduler_restarts:
            self._restart()
        inbox, self._inbox = self._inbox, []
        now = self._timeline.now
        self._steps += 1
        changes = [change for _, change in inbox]
        try:
            effects = self.engine.step(now, changes)
        except Exception as error:  # noqa: BLE001 - any exception is a finding
            self._recorder.wrong(self.name, [raised(error)])
            return
        self._recorder.stepped(self.name, now, [label for label, _ in inbox], effects)
        self._recorder.wrong(self.name, self.checkers.after(SchedulerStep(self._steps, now, changes, effects)))
        for effect in effects:
            self.performer.perform(effect)
        if self.performer.claims is not None:
            self.performer.claims.stepped()
        next_due = self.engine.next_due_ms(now)
        if next_due is not None:
            self._step_within(max(1, next_due - now))


def raised(error: Exception) -> str:
    """An exception in one line, with its location."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"raised: {type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
