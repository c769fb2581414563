"""Drives an engine in real time: gathers what happened, steps, and has the effects carried out.

Everything happens on one event loop, so nothing is locked. A step is not interrupted; between two steps everybody else
has a turn, so that binds and watches flow. When nothing happens, nothing is done until the engine's next moment is due.
Time comes from here only: the wall clock when the process began, and the monotonic clock since.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from situate.core.changes import Change, Leading, Millis, Paused
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.loop.journal import Journal
from situate.loop.logs import Log
from situate.loop.run import EffectHandler, turn

INTAKE_LIMIT: Final = 1 << 16
"""How many changes may wait for a step. Whoever tells more has to wait until they are folded in."""
LONGEST_SLEEP_S: Final = 60.0
PAUSE_ABOVE: Final = 1_024
"""With so many binds under way, no more pods are decided until half of them are done: deciding is faster than binding,
and a bind that is not answered within BIND_ANSWER_MS counts as failed."""

Clock: TypeAlias = Callable[[], Millis]

_log = Log(__name__)


def running_clock() -> Clock:
    """Milliseconds since 1970 that never go back and never jump, whatever is done to the wall clock."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (offset_ns + time.monotonic_ns()) // 1_000_000


class Watcher(Protocol):
    """Looks at every step, for metrics and logs. May only look. The last of several is the nearest to the step."""

    def before(self, engine: Engine, now: Millis, changes: Sequence[Change]) -> None: ...

    def after(self, engine: Engine, now: Millis, effects: Sequence[Effect], seconds: float) -> None: ...


class EngineError(Exception):
    """The engine raised: a fault of ours. What it knows may be wrong by now, so nobody may ask it again."""


class DrivenPerformer(EffectHandler, Protocol):
    """Carries out the effects of a drive's engine."""

    @property
    def binds_waiting(self) -> int:
        """How many binds have no answer yet."""


class Drive:
    """One engine with all that it is told. It begins as a standby: `lead` lets it decide."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal | None = None,
        clock: Clock | None = None,
        watchers: Sequence[Watcher] = (),
        pause_above: int = PAUSE_ABOVE,
    ) -> None:
        self.engine = engine
        self.steps = 0
        self.stepped_at: Millis | None = None
        self._performer: DrivenPerformer = _NoPerformer()
        self._journal = journal
        self._clock = clock or running_clock()
        self._watchers = watchers
        self._intake: list[Change] = [Leading(False)]
        self._performs = False
        self._pause_above = pause_above
        self._paused = self._stopping = False
        self._told = asyncio.Event()
        self._stepping = False
        self._failure: EngineError | None = None

    @property
    def waiting(self) -> int:
        """How many changes have not been folded in yet."""
        return len(self._intake)

    def attach(self, performer: DrivenPerformer) -> None:
        """Have this performer carry out the effects. A performer reports to `tell`, so the drive exists first."""
        self._performer = performer

    def tell(self, changes: Sequence[Change]) -> None:
        """Something happened. To be called on the event loop that drives; returns at once, but for a full intake.

        Raises nothing: an engine that fails in a step for a full intake fails in `run`, not in whoever told.
        """
        self._intake.extend(changes)
        self._told.set()
        if len(self._intake) > INTAKE_LIMIT and not self._stepping and self._failure is None:
            with suppress(EngineError):  # it is kept
                self.step()

    def lead(self) -> None:
        """Decisions are ours from now on, and are carried out."""
        self._performs = True
        self.tell([Leading(True)])

    def stop_deciding(self) -> None:
        """No new decisions; what comes of those that were made is still heard, and said."""
        self._stopping = True
        self.tell([])

    def mute(self) -> None:
        """Nothing is carried out any more."""
        self._performs = False

    async def run(self) -> None:
        """Until cancelled. Raises EngineError."""
        while True:
            await self._something()
            # Whoever has something to tell right now has it heard in this step already.
            await asyncio.sleep(0)
            self.step()
            await asyncio.sleep(0)

    async def _something(self) -> None:
        """Wait until there is something to step for."""
        while not self._intake and self._failure is None:
            now = self._clock()
            due = self.engine.next_due_ms(now)
            if due is not None and due <= now:
                return
            self._told.clear()
            seconds = LONGEST_SLEEP_S if due is None else min((due - now) / 1_000, LONGEST_SLEEP_S)
            alarm = asyncio.get_running_loop().call_later(seconds, self._told.set)
            try:
                await self._told.wait()
            finally:
                alarm.cancel()

    def step(self) -> None:
        """Fold in what was told, decide what is due, and hand on what came of it. Raises EngineError.

        What is told meanwhile, as by a performer that refuses, waits for the next step.
        """
        if self._failure is not None:
            raise self._failure
        self._stepping = True
        try:
            self._step()
        finally:
            self._stepping = False

    def _step(self) -> None:
        self._pause_or_go_on()
        changes, self._intake = self._intake, []
        now = self._clock()
        for watcher in self._watchers:
            watcher.before(self.engine, now, changes)
        begun = time.perf_counter()
        try:
            effects = turn(self.engine, now, changes, _NO_PERFORMER, self._journal)
        except Exception as error:
            self._failure = EngineError(told(error))
            raise self._failure from error
        seconds = time.perf_counter() - begun
        self._look_after_journal()
        self.steps += 1
        self.stepped_at = now
        for watcher in reversed(self._watchers):
            watcher.after(self.engine, now, effects, seconds)
        if self._performs:
            self._performer.perform(effects)

    def _look_after_journal(self) -> None:
        if self._journal is not None and self._journal.stopped:
            _log.error("The journal has stopped; scheduling goes on", why=self._journal.stopped)
            self._journal = None

    def _pause_or_go_on(self) -> None:
        """Do not decide faster than binds are carried out."""
        wanted = self._stopping or self._performer.binds_waiting > self._pause_above // (2 if self._paused else 1)
        if wanted != self._paused:
            self._paused = wanted
            self._intake.append(Paused(wanted))


def told(error: BaseException) -> str:
    """What was raised and where, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (in {frames[-1].name}, {Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


class _NoPerformer:
    """Carries out nothing. Inside a step, so that what a performer raises does not count as the engine's fault."""

    binds_waiting = 0

    def perform(self, effects: Sequence[Effect]) -> None:
        pass


_NO_PERFORMER: Final = _NoPerformer()
