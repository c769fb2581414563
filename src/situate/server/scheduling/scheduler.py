"""The scheduler of the server's process: a session with its feed, its port and its term."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from situate.core.changes import Change
from situate.core.config.defaults import default_configuration
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.engine.engine import Engine
from situate.core.reconcile.effects import ObjectRef, RecordEvent
from situate.loop.controllers.events import event_body, event_name
from situate.loop.drive import EngineError, running_clock
from situate.loop.election import Elector
from situate.loop.logs import Log
from situate.loop.metrics import Metrics
from situate.loop.scheduling.session import SchedulingSession, component_name, open_scheduling
from situate.loop.scheduling.view import EngineView
from situate.server.errors import StatusError
from situate.server.placing.binding import Binder
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling.explainer import Explainer
from situate.server.scheduling.feed import EngineFeed
from situate.server.scheduling.lease_store import fence, server_elector
from situate.server.scheduling.port import SCHEDULER, RegistrySchedulingPort
from situate.server.scheduling.publishing import publish
from situate.server.scheduling.quarantine import Identity, Quarantine
from situate.server.scheduling.unserved import UnservedPods
from situate.store.contract import Store
from situate.store.errors import CompactedError
from situate.wire.bodies import seconds_time
from situate.wire.published import OWN_SCHEDULER

BATCH: Final = 16
"""How many pods are decided before the API server, in the same process, has its turn."""
DRAIN_S: Final = 5.0
EVENT_TEXT: Final = 1_024
"""The longest message of an event."""
EVENTS, PODS = BY_KIND["v1", "Event"], BY_KIND["v1", "Pod"]
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
    publishes: bool = False
    """Whether it publishes its configuration when it leads."""
    quarantine: Quarantine | None = None
    """Finds the object on which an engine failed. None: do not look."""


class LostTermError(Exception):
    """The lease is somebody else's now."""


class Scheduler:
    """`run` it until it is cancelled."""

    def __init__(
        self,
        session: SchedulingSession,
        feed: EngineFeed,
        elector: Elector | None,
        settle: Callable[[EngineFeed], Awaitable[None]] | None = None,
        quarantine: Quarantine | None = None,
        publish: Callable[[], Awaitable[object]] | None = None,
        unserved: UnservedPods | None = None,
    ) -> None:
        """It calls `settle` before it begins, `publish` when it leads, and `quarantine.blame` when its engine fails."""
        self._publish = publish
        self._unserved = unserved
        self._led = asyncio.Event()
        self._settle = settle
        self._quarantine = quarantine
        self.session = session
        self.drive = session.drive
        self.feed = feed
        self.elector = elector

    async def run(self) -> None:
        """Until cancelled. Raises EngineError; LostTermError; StoreError if the store cannot be followed any more."""
        if self._settle is not None:
            await self._settle(self.feed)
        self.feed.begin()
        work = {"feed": self.feed.follow()}
        if self._quarantine is not None:
            work["release"] = self.feed.release(self._quarantine)
        if self._publish is not None:
            work["publishing"] = self._publishing(self._publish)
        if self._unserved is not None:
            work["unserved"] = self._tell_unserved(self._unserved)
        if self.elector is None:
            self._lead()
        else:
            work["election"] = self.elector.run(self._lead, self._lost)
        try:
            await self.session.run(**work)
        except EngineError as error:
            if self._quarantine is not None:
                self._quarantine.blame(error)
            raise

    def _lead(self) -> None:
        self.drive.lead()
        self._led.set()

    async def _publishing(self, publish: Callable[[], Awaitable[object]]) -> None:
        await self._led.wait()
        await publish()
        await asyncio.Future()

    async def _tell_unserved(self, unserved: UnservedPods) -> None:
        await self._led.wait()
        await unserved.run()

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
    settings: SchedulerSettings = SchedulerSettings(),
    *,
    wall_ns: Callable[[], int] = time.time_ns,
    metrics: Metrics | None = None,
) -> AsyncIterator[Scheduler]:
    """A scheduler that has not begun. The registry is started, and follows that store. Raises ConfigError."""
    config = settings.config or default_configuration()
    if metrics is None:
        engine = Engine(config, settings.others, batch=BATCH)
    else:
        engine = Engine(config, settings.others, batch=BATCH, metrics=metrics.engine, stopwatch=metrics.stopwatch)
    elector = server_elector(registry, settings.identity, SCHEDULER, wall_ns) if settings.elects else None
    may_write = elector.may_write if elector is not None else lambda: True
    guarded = registry if elector is None else registry.fenced(fence(registry, elector))
    port = RegistrySchedulingPort(
        guarded,
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
        published = partial(publish, guarded, OWN_SCHEDULER, config) if settings.publishes else None
        quarantine = settings.quarantine
        unserved = UnservedPods(guarded, engine.profiles, wall_ns)

        def tell(changes: Sequence[Change]) -> None:
            unserved.hear(changes)
            session.drive.tell(changes)

        feed = EngineFeed(store, registry.cache, tell, quarantine)
        if quarantine is None:
            yield Scheduler(session, feed, elector, publish=published, unserved=unserved)
            return

        async def settle(fed: EngineFeed) -> None:
            guilty = await quarantine.settle(lambda: Engine(config, settings.others), fed.objects, running_clock()())
            for one, why in guilty:
                await _tell_pod(registry, one, why, component_name(config), wall_ns())

        yield Scheduler(session, feed, elector, settle, quarantine, published, unserved)


async def _tell_pod(registry: Registry, one: Identity, why: str, component: str, now_ns: int) -> None:
    """The event about a pod that is withheld from the engines."""
    kind, namespace, name = one
    held = registry.cache.get(PODS, namespace, name) if kind == "Pod" else None
    if held is not None:
        ref = ObjectRef("v1", "Pod", namespace, name, held.uid)
        event = RecordEvent(ref, "Warning", "FailedScheduling", f"the scheduler fails on this pod: {why}"[:EVENT_TEXT])
        body = event_body(event, event_name(event, now_ns, 0), seconds_time(now_ns), component)
        with suppress(StatusError):
            await registry.create(Target(EVENTS, namespace), body, SYSTEM)


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
