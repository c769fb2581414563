"""The scheduler of the server's process: one engine with its feed, its performer and its term."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from situate.core.changes import Change, Millis
from situate.core.config.defaults import default_configuration
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.loop.decisions import DecisionLog
from situate.loop.drive import Drive, Watcher
from situate.loop.election import Elector
from situate.loop.extenders import EngineObjects, Extenders
from situate.loop.journal import Journal
from situate.loop.latencies import LatencyFiles
from situate.loop.metrics import Metrics
from situate.server.placing.binding import Binder
from situate.server.registry.registry import Registry
from situate.server.requests import Caller
from situate.server.scheduling.explaining import Explainer
from situate.server.scheduling.feed import Feed
from situate.server.scheduling.lease_store import server_elector
from situate.server.scheduling.performer import SCHEDULER, RegistryPerformer
from situate.store.contract import Store

__all__ = ["Scheduler", "Settings", "open_scheduler"]

DRAIN_S: Final = 5.0
PAUSE_ABOVE: Final = 1_024
"""Of binds without an answer: then nothing more is decided until half of them are done."""


@dataclass(frozen=True, slots=True)
class Settings:
    config: KubeSchedulerConfiguration | None = None
    """None: as kube-scheduler does without one."""
    others: Mapping[str, type] | None = None
    """Plugin classes that are not ours."""
    explain: bool = True
    """Whether decisions say why."""
    elects: bool = True
    """Whether the lease is taken first, and each bind carries its term. If not, binds are guarded by the rest."""
    identity: str = "situate"
    host: str = ""
    caller: Caller = SCHEDULER
    journal: Journal | None = None


class Scheduler:
    """`run` it until it is cancelled."""

    def __init__(
        self, drive: Drive, feed: Feed, performer: RegistryPerformer, elector: Elector | None, latencies: LatencyFiles
    ) -> None:
        self.drive = drive
        self.feed = feed
        self.performer = performer
        self.elector = elector
        self._latencies = latencies

    async def run(self) -> None:
        """Until cancelled. Raises EngineError; LostTermError; StoreError if the store cannot be followed any more."""
        self.feed.begin()
        tasks = [
            asyncio.create_task(self.feed.follow(), name="feed"),
            asyncio.create_task(self.drive.run(), name="drive"),
        ]
        if self._latencies:
            tasks.append(asyncio.create_task(self._latencies.run(), name="latencies"))
        if self.elector is None:
            self.drive.lead()
        else:
            tasks.append(asyncio.create_task(self.elector.run(self.drive.lead, self._lost), name="election"))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _lost(self) -> None:
        """Somebody else leads. What we know may be what they did not do: whoever runs us begins anew."""
        self.drive.mute()
        raise LostTermError("the scheduler's lease was lost")

    async def drain(self, timeout_s: float = DRAIN_S) -> bool:
        """Decide nothing more; let binds under way finish; let go of the lease."""
        self.drive.stop_deciding()
        done = await self.performer.drain(timeout_s)
        if self.elector is not None:
            await self.elector.release()
        return done


class LostTermError(Exception):
    """The lease is somebody else's now."""


@asynccontextmanager
async def open_scheduler(
    store: Store,
    registry: Registry,
    binder: Binder,
    settings: Settings = Settings(),  # noqa: B008 - a value
    *,
    wall_ns: Callable[[], int] = time.time_ns,
    watchers: Sequence[Watcher] = (),
    metrics: Metrics | None = None,
) -> AsyncIterator[Scheduler]:
    """A scheduler that has not begun. The registry is started, and follows that store. Raises ConfigError."""
    config = settings.config or default_configuration()
    if metrics is None:
        engine = Engine(config, settings.others)
    else:
        engine = Engine(config, settings.others, metrics=metrics.engine, stopwatch=metrics.stopwatch)
        metrics.follow(engine, settings.journal)
        watchers = (*watchers, _Stepped(metrics))
    driving: list[Drive] = []

    def tell(changes: Sequence[Change]) -> None:
        driving[0].tell(changes)

    async with AsyncExitStack() as stack:
        extenders = None
        if config.extenders:
            extenders = await stack.enter_async_context(Extenders(config.extenders, EngineObjects(engine)))
        elector = server_elector(registry, settings.identity, settings.caller, wall_ns) if settings.elects else None
        performer = RegistryPerformer(
            registry,
            binder,
            engine,
            tell,
            wall_ns,
            component=_component(config),
            host=settings.host,
            term=elector.term if elector is not None else lambda: None,
            may_write=elector.may_write if elector is not None else lambda: True,
            extenders=extenders,
            explainer=Explainer(engine) if settings.explain else None,
            caller=settings.caller,
        )
        drive = Drive(
            engine,
            performer,
            settings.journal,
            watchers=[DecisionLog(), _Looks(performer), *watchers],
            under_way=lambda: performer.binds_waiting,
            pause_above=PAUSE_ABOVE,
        )
        driving.append(drive)
        yield Scheduler(drive, Feed(store, registry.cache, tell), performer, elector, LatencyFiles(config, drive.tell))


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


class _Looks:
    """Has the performer see, after each step, whether volumes that it waits for are ready."""

    def __init__(self, performer: RegistryPerformer) -> None:
        self._performer = performer

    def before(self, engine: Engine, now: Millis, changes: Sequence[Change]) -> None:
        pass

    def after(self, engine: Engine, now: Millis, effects: Sequence[Effect], seconds: float) -> None:
        self._performer.look()


def _component(config: KubeSchedulerConfiguration) -> str:
    return (config.profiles[0].scheduler_name if config.profiles else None) or "default-scheduler"
