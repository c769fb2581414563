"""A session: one engine with all that feeds it and carries out what it asks for.

    watching ──► drive(engine) ──► carrier ──► API server
                     ▲                │
                     └ what came of it┘

Knows nothing of elections and signals: whoever has it says when it leads, and when it is over.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final, Protocol, TypeAlias

from situate.core.changes import Change, Millis
from situate.core.config.errors import ConfigError
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.core.engine.framework import points_of
from situate.core.plugins.support.errors import PluginError
from situate.kube.client import Client
from situate.kube.conditions import Groups
from situate.kube.fleet import Fleet, Spoken
from situate.kube.kinds import POD_GROUPS, Kind, needed_kinds
from situate.kube.performer import EngineView, KubePerformer
from situate.kube.settings import Loaded, Pace, Settings
from situate.kube.shadow import Report, Shadow
from situate.kube.watching import Watching
from situate.loop.decisions import DecisionLog
from situate.loop.drive import Drive
from situate.loop.extenders import Extenders
from situate.loop.journal import Journal
from situate.loop.latencies import LatencyFiles
from situate.loop.logs import Log
from situate.loop.metrics import Metrics
from situate.wire.errors import InputError

READING: Final = (100_000, 50, 1_000)
"""How often garbage is looked for while a whole cluster is read, which makes little: rarely, but not never, because a
cluster that we may not see whole is never read to its end."""

_log = Log(__name__)

Tell: TypeAlias = Callable[[Sequence[Change]], None]


class Carrier(Protocol):
    """Carries effects out: KubePerformer, or one that only looks on."""

    @property
    def binds_waiting(self) -> int: ...

    def perform(self, effects: Sequence[Effect]) -> None: ...

    async def drain(self, timeout_s: float) -> bool: ...


class Onlooker:
    """Carries nothing out."""

    binds_waiting = 0

    def perform(self, effects: Sequence[Effect]) -> None:
        pass

    async def drain(self, timeout_s: float) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What all sessions of a process are made with."""

    settings: Settings
    pace: Pace
    metrics: Metrics
    report: Report
    client: Client
    events_client: Client
    may_write: Callable[[], bool]
    """Asked before every write."""
    term: Callable[[], int | None] = lambda: None
    """The term that binds are to hold for, if the server knows of terms and there is an election."""
    fleet: Fleet | None = None
    """With whom the work is shared."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """Of sessions that have a journal."""


class Session:
    """It runs until it is cancelled."""

    def __init__(
        self, drive: Drive, watching: Watching, carrier: Carrier, latencies: LatencyFiles | None = None
    ) -> None:
        self.drive = drive
        self.watching = watching
        self.carrier = carrier
        self._latencies = latencies

    async def run(self) -> None:
        """Until cancelled. Raises EngineError."""
        tasks = [
            asyncio.create_task(self.drive.run(), name="drive"),
            asyncio.create_task(self.watching.run(), name="watching"),
        ]
        if self._latencies:
            tasks.append(asyncio.create_task(self._latencies.run(), name="latencies"))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await end(*tasks)

    async def until_synced(self) -> None:
        """Wait until everything that there is has been seen, and the engine has heard of it."""
        begun = time.monotonic()
        with rare_collections():
            await self.watching.until_synced()
            while self.drive.waiting:
                await asyncio.sleep(0)
        objects = sum(one.objects for one in self.watching.shown())
        _log.info("Caches are synced", objects=objects, seconds=round(time.monotonic() - begun, 3))

    async def drain(self, timeout_s: float) -> None:
        """Decide nothing more; let binds under way finish, and hear of them."""
        self.drive.stop_deciding()
        if not await self.carrier.drain(timeout_s):
            _log.info("Not all requests under way were finished in time", seconds=timeout_s)


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel, and see them end, whatever they end with."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# -- making one --------------------------------------------------------------------------------------------------------


def component(config: KubeSchedulerConfiguration) -> str:
    """The name that we go by."""
    return (config.profiles[0].scheduler_name if config.profiles else None) or "default-scheduler"


def kinds_of(loaded: Loaded) -> tuple[Kind, ...]:
    """What has to be watched."""
    return needed_kinds(loaded.config, {name: points_of(kind) for name, kind in loaded.others.items()})


def build_engine(loaded: Loaded, settings: Settings, pace: Pace, metrics: Metrics) -> Engine:
    """Raises InputError where the configuration cannot be used."""
    try:
        engine = Engine(
            loaded.config,
            loaded.others,
            batch=pace.batch,
            unschedulable_limit_ms=settings.unschedulable_limit_ms,
            metrics=metrics.engine,
            stopwatch=metrics.stopwatch,
        )
        Extenders(loaded.config.extenders, EngineView(engine))  # their certificates can be loaded
        return engine
    except (ConfigError, PluginError) as error:
        raise InputError(str(error), file=str(settings.config_file or "")) from None


@asynccontextmanager
async def open_session(means: Means, loaded: Loaded) -> AsyncIterator[Session]:
    """A session that has not begun. Raises InputError."""
    engine = build_engine(loaded, means.settings, means.pace, means.metrics)
    driving: list[Drive] = []

    def tell(changes: Sequence[Change]) -> None:
        driving[0].tell(changes)

    def groups() -> Groups:
        return Groups.of(watching.served(POD_GROUPS))

    async with AsyncExitStack() as stack:
        carrier: Carrier = Onlooker()
        if not means.settings.shadow:
            carrier = await _performer(means, loaded, engine, tell, groups, stack)
            if means.fleet is not None:
                carrier = Spoken(means.fleet, carrier)
        journal = _journal(means, loaded.config)
        if journal is not None:
            stack.enter_context(journal)
        drive = Drive(
            engine,
            carrier,
            journal,
            watchers=[DecisionLog(), _Stepped(means.metrics)],
            under_way=lambda: carrier.binds_waiting,
            pause_above=means.pace.pause_above,
        )
        driving.append(drive)
        means.metrics.follow(engine, journal)
        seen: Tell = drive.tell if means.fleet is None else means.fleet.attach(drive)
        if means.settings.shadow:
            shadow = Shadow(drive, means.report, means.metrics)
            stack.callback(shadow.finish)
            seen = shadow.tell
        watching = Watching(means.client, kinds_of(loaded), seen)
        yield Session(drive, watching, carrier, LatencyFiles(loaded.config, drive.tell))


async def _performer(
    means: Means, loaded: Loaded, engine: Engine, tell: Tell, groups: Callable[[], Groups], stack: AsyncExitStack
) -> KubePerformer:
    objects = EngineView(engine)
    extenders = None
    if loaded.config.extenders:
        extenders = await stack.enter_async_context(Extenders(loaded.config.extenders, objects))
    return KubePerformer(
        means.client,
        means.events_client,
        tell,
        objects,
        component=component(loaded.config),
        may_write=means.may_write,
        term=means.term,
        extenders=extenders,
        groups=groups,
        volume_timeouts_s={name: deciding.volumes_ms / 1_000 for name, deciding in engine.profiles.items()},
        metrics=means.metrics,
    )


def _journal(means: Means, config: KubeSchedulerConfiguration) -> Journal | None:
    """One folder a session: a history is of one engine. Raises InputError if the very first cannot be written."""
    settings = means.settings
    if settings.journal is None:
        return None
    number = next(means.numbers)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = settings.journal / f"{stamp}-{os.getpid()}-{number}"
    try:
        journal = Journal(
            folder, config, batch=means.pace.batch, unschedulable_limit_ms=settings.unschedulable_limit_ms
        )
    except OSError as error:
        problem = f"the journal cannot be written: {error.strerror}"
        if number == 1:
            raise InputError(problem, file=str(folder)) from None
        _log.error(problem, folder=str(folder))
        return None
    _log.info("Writing a journal", folder=str(folder))
    return journal


class _Stepped:
    """Tells the metrics of every step."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._changes = 0

    def before(self, engine: Engine, now: Millis, changes: Sequence[Change]) -> None:
        self._changes = len(changes)
        self._metrics.stepping()

    def after(self, engine: Engine, now: Millis, effects: Sequence[Effect], seconds: float) -> None:
        self._metrics.stepped(now, self._changes)


class rare_collections:  # noqa: N801 - read as a phrase
    """Garbage is looked for rarely while a whole cluster is read; afterwards, what was read is not looked through."""

    def __enter__(self) -> None:
        if gc.get_freeze_count():
            gc.unfreeze()
            gc.collect()  # or an earlier engine would be in memory beside the one that is to be filled
        self._before = gc.get_threshold()
        gc.set_threshold(*READING)

    def __exit__(self, *_: object) -> None:
        gc.set_threshold(*self._before)
        gc.collect()
        gc.freeze()
