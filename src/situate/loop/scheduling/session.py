"""A session: one engine, the drive that steps it, and the performer that carries out what it decides.

    what is seen ──► drive(engine) ──► performer ──► port
                         ▲                 │
                         └──── outcomes ───┘

Its callers feed the drive and decide when it leads: `situate.kube.session` and
`situate.server.scheduling.scheduler`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from situate.core.changes import Change, Millis
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.loop.decisions import DecisionLog
from situate.loop.drive import PAUSE_ABOVE, Drive, StepObserver
from situate.loop.extenders import Extenders
from situate.loop.ignored_fields import IgnoredFieldsLog
from situate.loop.journal import Journal
from situate.loop.latencies import LatencyFiles
from situate.loop.metrics import Metrics
from situate.loop.scheduling.performer import Performer
from situate.loop.scheduling.port import SchedulingPort
from situate.loop.scheduling.view import EngineView


class SchedulingSession:
    """`run` it until it is cancelled. It decides nothing before its drive leads."""

    def __init__(self, drive: Drive, performer: Performer | None, latencies: LatencyFiles) -> None:
        """Without a performer, nothing is carried out."""
        self.drive = drive
        self.performer = performer
        self._latencies = latencies

    async def run(self, **others: Coroutine[Any, Any, None]) -> None:
        """Run with what feeds it, until the first of them ends. Raises what that one raised, as EngineError."""
        if self._latencies:
            others["latencies"] = self._latencies.run()
        await run_until_first(drive=self.drive.run(), **others)

    async def drain(self, timeout_s: float) -> bool:
        """Decide nothing more; let work in flight finish, and hear of it. False if some was cut off."""
        self.drive.stop_deciding()
        return self.performer is None or await self.performer.drain(timeout_s)


async def run_until_first(**work: Coroutine[Any, Any, None]) -> None:
    """Run all as tasks of these names until the first ends, then cancel the others. Raises what the first raised."""
    tasks = [asyncio.create_task(one, name=name) for name, one in work.items()]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await end_tasks(*tasks)


async def end_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended, whatever they end with."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def component_name(config: KubeSchedulerConfiguration) -> str:
    """The scheduler's own name: the schedulerName of its first profile."""
    return (config.profiles[0].scheduler_name if config.profiles else None) or "default-scheduler"


@asynccontextmanager
async def open_scheduling(
    engine: Engine,
    config: KubeSchedulerConfiguration,
    port: SchedulingPort | None,
    *,
    may_write: Callable[[], bool] = lambda: True,
    now_ns: Callable[[], int] = time.time_ns,
    metrics: Metrics | None = None,
    journal: Journal | None = None,
    pause_above: int = PAUSE_ABOVE,
) -> AsyncIterator[SchedulingSession]:
    """A session that has not begun. Without a port, nothing is carried out. Raises ConfigError."""
    observers: list[StepObserver] = [DecisionLog(), IgnoredFieldsLog()]
    if metrics is not None:
        observers.append(_StepMetrics(metrics))
        metrics.follow(engine, journal)
    drive = Drive(engine, journal, observers=observers, pause_above=pause_above)
    performer = None
    async with AsyncExitStack() as stack:
        if port is not None:
            objects, extenders = EngineView(engine), None
            if config.extenders:
                extenders = await stack.enter_async_context(Extenders(config.extenders, objects))
            performer = Performer(
                port,
                objects,
                drive.tell,
                component=component_name(config),
                may_write=may_write,
                now_ns=now_ns,
                extenders=extenders,
                volume_timeouts_s={name: profile.volumes_ms / 1_000 for name, profile in engine.profiles.items()},
                device_timeouts_s={name: profile.devices_ms / 1_000 for name, profile in engine.profiles.items()},
                metrics=metrics,
            )
            drive.attach(performer)
        yield SchedulingSession(drive, performer, LatencyFiles(config, drive.tell))


class _StepMetrics:
    """Measures every step."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._changes = 0

    def before(self, engine: Engine, now: Millis, changes: Sequence[Change]) -> None:
        self._changes = len(changes)
        self._metrics.stepping()

    def after(self, engine: Engine, now: Millis, effects: Sequence[Effect], seconds: float) -> None:
        self._metrics.stepped(now, self._changes)
