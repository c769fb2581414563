"""A session on a real cluster: an engine with what it watches and what it writes.

    watching ──► drive(engine) ──► performer ──► API server
                     ▲                 │
                     └──── outcomes ───┘

Knows nothing of elections and signals: its owner says when it leads, and when it is over.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Final, TypeAlias

from situate.core.changes import Change
from situate.core.config.defaults import under_rules
from situate.core.config.errors import ConfigError
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.engine.engine import Engine
from situate.core.engine.framework import points_of
from situate.core.plugins.support.errors import PluginError
from situate.core.versions import KubernetesRules
from situate.kube.client import Client
from situate.kube.conditions import GroupApi
from situate.kube.fleet import FilteringPerformer, Fleet
from situate.kube.informers import Informers
from situate.kube.kinds import POD_GROUPS, WatchedKind
from situate.kube.needed_kinds import needed_kinds
from situate.kube.port import KubeSchedulingPort
from situate.kube.settings import DecisionPace, Loaded, Settings
from situate.kube.shadow import Shadow, ShadowReport
from situate.loop.extenders import Extenders
from situate.loop.journal import Journal
from situate.loop.logs import Log
from situate.loop.metrics import Metrics
from situate.loop.scheduling.session import SchedulingSession, open_scheduling
from situate.loop.scheduling.view import EngineView
from situate.wire.errors import InputError

READING: Final = (100_000, 50, 1_000)
"""The thresholds of garbage collection while a whole cluster is read, which makes little garbage: rarely, but not
never, because a cluster that we may not see whole is never read to its end."""

_log = Log(__name__)

Tell: TypeAlias = Callable[[Sequence[Change]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """What all sessions of a process share."""

    settings: Settings
    pace: DecisionPace
    metrics: Metrics
    report: ShadowReport
    client: Client
    events_client: Client
    rules: KubernetesRules
    """The rules of the API server's version."""
    may_write: Callable[[], bool]
    """Asked before every write."""
    term: Callable[[], int | None] = lambda: None
    """The term that binds carry, if the server checks terms and there is an election."""
    fleet: Fleet | None = None
    """The schedulers that share the work."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """Of sessions that have a journal."""


class Session:
    """It runs until it is cancelled."""

    def __init__(self, scheduling: SchedulingSession, watching: Informers) -> None:
        self.drive = scheduling.drive
        self.watching = watching
        self._scheduling = scheduling

    async def run(self) -> None:
        """Until cancelled. Raises EngineError."""
        await self._scheduling.run(watching=self.watching.run())

    async def until_synced(self) -> None:
        """Wait until the engine knows the whole cluster."""
        begun = time.monotonic()
        with rare_collections():
            await self.watching.until_synced()
            while self.drive.waiting:
                await asyncio.sleep(0)
        objects = sum(one.objects for one in self.watching.shown())
        _log.info("Caches are synced", objects=objects, seconds=round(time.monotonic() - begun, 3))

    async def drain(self, timeout_s: float) -> None:
        """Decide nothing more; let binds in flight finish, and hear of them."""
        if not await self._scheduling.drain(timeout_s):
            _log.info("Not all requests under way were finished in time", seconds=timeout_s)


# -- making one --------------------------------------------------------------------------------------------------------


def kinds_of(loaded: Loaded) -> tuple[WatchedKind, ...]:
    """The kinds to watch."""
    return needed_kinds(loaded.config, {name: points_of(kind) for name, kind in loaded.others.items()})


def build_engine(loaded: Loaded, settings: Settings, pace: DecisionPace, metrics: Metrics) -> Engine:
    """Raises InputError if the configuration cannot be used."""
    try:
        engine = Engine(
            loaded.config,
            loaded.others,
            batch=pace.batch,
            unschedulable_limit_ms=settings.unschedulable_limit_ms,
            metrics=metrics.engine,
            stopwatch=metrics.stopwatch,
        )
        Extenders(loaded.config.extenders, EngineView(engine))  # raises if their certificates cannot be loaded
        return engine
    except (ConfigError, PluginError) as error:
        raise InputError(str(error), file=str(settings.config_file or "")) from None


@asynccontextmanager
async def open_session(context: SessionContext, loaded: Loaded) -> AsyncIterator[Session]:
    """A session that has not begun. Raises InputError."""
    loaded = replace(loaded, config=under_rules(loaded.config, context.rules))
    engine = build_engine(loaded, context.settings, context.pace, context.metrics)

    def groups() -> GroupApi:
        return GroupApi.of(watching.served(POD_GROUPS))

    port = KubeSchedulingPort(
        context.client,
        context.events_client,
        EngineView(engine),
        may_write=context.may_write,
        term=context.term,
        groups=groups,
    )
    async with AsyncExitStack() as stack:
        journal = _journal(context, loaded.config)
        if journal is not None:
            stack.enter_context(journal)
        scheduling = await stack.enter_async_context(
            open_scheduling(
                engine,
                loaded.config,
                None if context.settings.shadow else port,
                may_write=context.may_write,
                metrics=context.metrics,
                journal=journal,
                pause_above=context.pace.pause_above,
            )
        )
        drive = scheduling.drive
        seen: Tell = drive.tell
        if context.fleet is not None:
            seen = context.fleet.attach(drive)
            if scheduling.performer is not None:
                drive.attach(FilteringPerformer(context.fleet, scheduling.performer))
        if context.settings.shadow:
            shadow = Shadow(drive, context.report, context.metrics)
            stack.callback(shadow.finish)
            seen = shadow.tell
        watching = Informers(context.client, kinds_of(loaded), seen)
        yield Session(scheduling, watching)


def _journal(context: SessionContext, config: KubeSchedulerConfiguration) -> Journal | None:
    """A folder for each session: a history is that of one engine. Raises InputError if the first cannot be written."""
    settings = context.settings
    if settings.journal is None:
        return None
    number = next(context.numbers)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = settings.journal / f"{stamp}-{os.getpid()}-{number}"
    try:
        journal = Journal(
            folder, config, batch=context.pace.batch, unschedulable_limit_ms=settings.unschedulable_limit_ms
        )
    except OSError as error:
        problem = f"the journal cannot be written: {error.strerror}"
        if number == 1:
            raise InputError(problem, file=str(folder)) from None
        _log.error(problem, folder=str(folder))
        return None
    _log.info("Writing a journal", folder=str(folder))
    return journal


class rare_collections:  # noqa: N801 - read as a phrase
    """Collect garbage rarely while a whole cluster is read; then exempt what was read from collection."""

    def __enter__(self) -> None:
        if gc.get_freeze_count():
            gc.unfreeze()
            gc.collect()  # or an earlier engine would stay in memory beside the new one
        self._before = gc.get_threshold()
        gc.set_threshold(*READING)

    def __exit__(self, *_: object) -> None:
        gc.set_threshold(*self._before)
        gc.collect()
        gc.freeze()
