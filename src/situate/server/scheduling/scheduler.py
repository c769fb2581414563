"""The scheduler of the server's process: a session with its feed, its port and its term."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from situate.core.config.defaults import default_configuration
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.engine.engine import Engine
from situate.loop.election import Elector
from situate.loop.logs import Log
from situate.loop.metrics import Metrics
from situate.loop.scheduling.session import SchedulingSession, component_name, open_scheduling
from situate.loop.scheduling.view import EngineView
from situate.server.placing.binding import Binder
from situate.server.registry.registry import Registry
from situate.server.scheduling.explainer import Explainer
from situate.server.scheduling.feed import EngineFeed
from situate.server.scheduling.lease_store import fence, server_elector
from situate.server.scheduling.port import SCHEDULER, RegistrySchedulingPort
from situate.store.contract import Store
from situate.store.errors import CompactedError

DRAIN_S: Final = 5.0
LIST_AGAIN_S: Final = 1.0
"""The pause before a scheduler that fell behind begins anew, so that the cache is there before it."""

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
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


class LostTermError(Exception):
    """The lease is somebody else's now."""


class Scheduler:
    """`run` it until it is cancelled."""

    def __init__(self, session: SchedulingSession, feed: EngineFeed, elector: Elector | None) -> None:
        self.session = session
        self.drive = session.drive
        self.feed = feed
        self.elector = elector

    async def run(self) -> None:
        """Until cancelled. Raises EngineError; LostTermError; StoreError if the store cannot be followed any more."""
        self.feed.begin()
        if self.elector is None:
            self.drive.lead()
            await self.session.run(feed=self.feed.follow())
        else:
            await self.session.run(feed=self.feed.follow(), election=self.elector.run(self.drive.lead, self._lost))

    def _lost(self) -> None:
        """Another scheduler leads. The engine may count on binds that were refused, so the caller begins anew."""
        self.drive.mute()
        raise LostTermError("the scheduler's lease was lost")

    async def drain(self, timeout_s: float = DRAIN_S) -> bool:
        """Decide nothing more; let binds in flight finish; release the lease."""
        done = await self.session.drain(timeout_s)
        if self.elector is not None:
            await self.elector.release()
        return done


@asynccontextmanager
async def open_scheduler(
    store: Store,
    registry: Registry,
    binder: Binder,
    settings: SchedulerSettings = SchedulerSettings(),  # noqa: B008 - a value
    *,
    wall_ns: Callable[[], int] = time.time_ns,
    metrics: Metrics | None = None,
) -> AsyncIterator[Scheduler]:
    """A scheduler that has not begun. The registry is started, and follows that store. Raises ConfigError."""
    config = settings.config or default_configuration()
    if metrics is None:
        engine = Engine(config, settings.others)
    else:
        engine = Engine(config, settings.others, metrics=metrics.engine, stopwatch=metrics.stopwatch)
    elector = server_elector(registry, settings.identity, SCHEDULER, wall_ns) if settings.elects else None
    may_write = elector.may_write if elector is not None else lambda: True
    port = RegistrySchedulingPort(
        registry if elector is None else registry.fenced(fence(registry, elector)),
        binder,
        EngineView(engine),
        wall_ns,
        component=component_name(config),
        host=settings.host,
        term=elector.term if elector is not None else lambda: None,
        may_write=may_write,
        explainer=Explainer(engine) if settings.explain else None,
    )
    async with open_scheduling(
        engine,
        config,
        port,
        may_write=may_write,
        now_ns=wall_ns,
        metrics=metrics,
    ) as session:
        yield Scheduler(session, EngineFeed(store, registry.cache, session.drive.tell), elector)


async def run_scheduler(
    store: Store,
    registry: Registry,
    binder: Binder,
    settings: SchedulerSettings,
    metrics: Metrics | None = None,
    wall_ns: Callable[[], int] = time.time_ns,
) -> None:
    """Until cancelled. A scheduler that loses its lease starts again from the store: others have decided meanwhile. So
    does one that was behind for so long that the store compacted what it has not seen."""
    while True:
        async with open_scheduler(store, registry, binder, settings, wall_ns=wall_ns, metrics=metrics) as scheduler:
            try:
                await scheduler.run()
            except LostTermError:
                _log.warning("The scheduler's lease was lost; standing by")
            except CompactedError as error:
                _log.warning("The scheduler fell behind the store; listing again", err=str(error))
                await asyncio.sleep(LIST_AGAIN_S)
            finally:
                await scheduler.drain()
