"""Drives an engine in real time: collects changes, steps, and hands the effects to a performer.

Everything runs on one event loop, so nothing is locked. A step is not interrupted; between two steps the other tasks
have a turn, so that binds and watches flow. Without changes, the drive sleeps until the engine's next deadline. The
engine's time comes from here only: the wall clock when the process began, and the monotonic clock since.
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
"""How many changes may wait for a step. `tell` steps at once when there are more."""
LONGEST_SLEEP_S: Final = 60.0
PAUSE_ABOVE: Final = 1_024
"""With more binds in flight, the engine decides no pods until half of them are done: deciding is faster than binding,
and a bind that is not answered within BIND_ANSWER_MS counts as failed."""

Clock: TypeAlias = Callable[[], Millis]

_log = Log(__name__)


def running_clock() -> Clock:
    """Milliseconds since 1970 that never go back and never jump, whatever is done to the wall clock."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (offset_ns + time.monotonic_ns()) // 1_000_000


class StepObserver(Protocol):
    """Sees every step, for metrics and logs, and changes nothing. The last of several is the nearest to the step."""

    def before(self, engine: Engine, now: Millis, changes: Sequence[Change]) -> None: ...

    def after(self, engine: Engine, now: Millis, effects: Sequence[Effect], seconds: float) -> None: ...


class EngineError(Exception):
    """The engine raised: a fault of ours. Its state may be wrong by now, so it must not be used again."""

    def __init__(self, text: str, changes: Sequence[Change] = ()) -> None:
        """`changes`: those of the step."""
        super().__init__(text)
        self.changes = changes


class DrivenPerformer(EffectHandler, Protocol):
    """Carries out the effects of a drive's engine."""

    @property
    def binds_waiting(self) -> int:
        """How many binds have no answer yet."""


class Drive:
    """One engine and the changes that wait for it. It begins as a standby: `lead` lets it decide."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal | None = None,
        clock: Clock | None = None,
        observers: Sequence[StepObserver] = (),
        pause_above: int = PAUSE_ABOVE,
    ) -> None:
        self.engine = engine
        self.steps = 0
        self.stepped_at: Millis | None = None
        self._performer: DrivenPerformer = _NoPerformer()
        self._journal = journal
        self._clock = clock or running_clock()
        self._observers = observers
        self._intake: list[Change] = [Leading(False)]
        self._performs = False
        self._pause_above = pause_above
        self._paused = self._stopping = False
        self._wake = asyncio.Event()
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
        """Queue changes for the next step. To be called on the drive's event loop.

        Returns at once, unless the intake is full. Raises nothing: an engine that fails then fails in `run`.
        """
        self._intake.extend(changes)
        self._wake.set()
        if len(self._intake) > INTAKE_LIMIT and not self._stepping and self._failure is None:
            with suppress(EngineError):  # `run` raises it
                self.step()

    def lead(self) -> None:
        """Decide from now on, and have the decisions carried out."""
        self._performs = True
        self.tell([Leading(True)])

    def stop_deciding(self) -> None:
        """Make no new decisions; still take in the answers to earlier ones."""
        self._stopping = True
        self.tell([])

    def mute(self) -> None:
        """Carry out nothing any more."""
        self._performs = False

    async def run(self) -> None:
        """Until cancelled. Raises EngineError."""
        while True:
            await self._until_due()
            # Changes that other tasks are about to tell are part of this step already.
            await asyncio.sleep(0)
            self.step()
            await asyncio.sleep(0)

    async def _until_due(self) -> None:
        """Wait for a change, or for the engine's next deadline."""
        while not self._intake and self._failure is None:
            now = self._clock()
            due = self.engine.next_due_ms(now)
            if due is not None and due <= now:
                return
            self._wake.clear()
            seconds = LONGEST_SLEEP_S if due is None else min((due - now) / 1_000, LONGEST_SLEEP_S)
            alarm = asyncio.get_running_loop().call_later(seconds, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                alarm.cancel()

    def step(self) -> None:
        """Step the engine with the changes so far, and hand on the effects. Raises EngineError.

        Changes that come meanwhile, as from a performer that refuses, wait for the next step.
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
        for observer in self._observers:
            observer.before(self.engine, now, changes)
        begun = time.perf_counter()
        try:
            effects = turn(self.engine, now, changes, _NO_PERFORMER, self._journal)
        except Exception as error:
            self._failure = EngineError(describe_error(error), changes)
            raise self._failure from error
        seconds = time.perf_counter() - begun
        self._check_journal()
        self.steps += 1
        self.stepped_at = now
        for observer in reversed(self._observers):
            observer.after(self.engine, now, effects, seconds)
        if self._performs:
            self._performer.perform(effects)

    def _check_journal(self) -> None:
        if self._journal is not None and self._journal.stopped:
            _log.error("The journal has stopped; scheduling goes on", why=self._journal.stopped)
            self._journal = None

    def _pause_or_go_on(self) -> None:
        """Do not decide faster than binds are made."""
        wanted = self._stopping or self._performer.binds_waiting > self._pause_above // (2 if self._paused else 1)
        if wanted != self._paused:
            self._paused = wanted
            self._intake.append(Paused(wanted))


def describe_error(error: BaseException) -> str:
    """Describes an exception and where it was raised, in one line; of an exception group, the first leaf."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (in {frames[-1].name}, {Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


class _NoPerformer:
    """Carries out nothing. Inside a step, so that what a performer raises does not count as the engine's fault."""

    binds_waiting = 0

    def perform(self, effects: Sequence[Effect]) -> None:
        pass


_NO_PERFORMER: Final = _NoPerformer()
