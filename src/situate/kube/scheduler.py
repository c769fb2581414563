"""One scheduler process on a real cluster: put together, elected, reloaded, stopped.

    clients ── watching ──► drive(engine) ──► performer ──► API server
                              ▲                    │
                              └──── what came of it┘

A Session is one engine with all that feeds it and carries out what it asks for. A new configuration is a new session:
the old one drains, and the new one lists the cluster afresh, so that nothing is known by hearsay. The lease, the port
and the clients live as long as the process.

How it ends: 0 after SIGTERM or SIGINT; 1 when the lease is lost, when the engine fails (what it knows may be wrong, so
nothing goes on), or at a second signal. What cannot be used from the start is an InputError.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol, TypeAlias
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from situate import __version__
from situate.core.changes import Change, Millis
from situate.core.config.encode import encode
from situate.core.config.problems import ConfigError
from situate.core.config.resolve import complete
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.core.engine.profile import points_of
from situate.core.plugins.faults import PluginError
from situate.kube.access import Access
from situate.kube.client import Client
from situate.kube.delegated import Authentication, Authorization
from situate.kube.kinds import needed_kinds
from situate.kube.kubeconfig import find_access
from situate.kube.lease import Lease, Rules
from situate.kube.performer import EngineView, KubePerformer
from situate.kube.preflight import missing_rights, reach, rights_of
from situate.kube.reload import ConfigFile, needs_restart, whenever_changed
from situate.kube.serving import PING, Check, Page, Serving, keep_certificate_fresh
from situate.kube.settings import Loaded, Pace, Settings
from situate.kube.shadow import Report, Shadow
from situate.kube.watching import Watching
from situate.loop.decisions import DecisionLog
from situate.loop.drive import Drive, EngineError
from situate.loop.extenders import Extenders
from situate.loop.journal import Journal
from situate.loop.logs import Log, set_up
from situate.loop.metrics import CONTENT_TYPE, Metrics
from situate.wire.errors import InputError

DRAIN_S: Final = 0.5
"""How long binds under way may take to finish when we stop; a standby waits for that."""
RELOAD_DRAIN_S: Final = 5.0
"""The same when the configuration is another, and nobody waits."""
NO_LIMIT: Final = -1.0
"""Requests of the election and of reviews do not queue behind binds."""
USER_AGENT: Final = f"situate/{__version__} scheduler"
REPORT_TO: Final = "please report it with this line, and with the journal if there is one (--journal)"

OK: Final = 0
FAILED: Final = 1

_log = Log(__name__)


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


Tell: TypeAlias = Callable[[Sequence[Change]], None]


def run(settings: Settings) -> int:
    """Schedule until told to stop; the exit code. Raises InputError for what cannot be used."""
    set_up(settings.logging)
    loaded = settings.load()
    access = find_access(
        settings.kubeconfig or loaded.config.client_connection.kubeconfig or None, settings.context, settings.master
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(Process(settings, loaded, access).run())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform != "linux":
        return None
    import uvloop

    return uvloop.new_event_loop


def identity() -> str:
    """Who we are in the election; no two processes are the same."""
    return f"{socket.gethostname()}_{uuid4()}"


# -- one engine -------------------------------------------------------------------------------------------------------


class Session:
    """An engine, what feeds it, and what carries out its effects."""

    def __init__(self, loaded: Loaded, drive: Drive, watching: Watching, carrier: Carrier) -> None:
        self.loaded = loaded
        self.drive = drive
        self.watching = watching
        self.carrier = carrier

    async def run(self) -> None:
        """Until cancelled. Raises EngineError."""
        driving = asyncio.create_task(self.drive.run(), name="drive")
        watching = asyncio.create_task(self.watching.run(), name="watching")
        try:
            done, _ = await asyncio.wait((driving, watching), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await _end(driving, watching)

    async def drain(self, timeout_s: float) -> None:
        """Decide nothing more; let binds under way finish, and hear of them."""
        self.drive.stop_deciding()
        if not await self.carrier.drain(timeout_s):
            _log.info("Not all requests under way were finished in time", seconds=timeout_s)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel, and see them end, whatever they end with."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


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


# -- the process ------------------------------------------------------------------------------------------------------


class Process:
    """One run of a scheduler, from the first request to the exit code."""

    def __init__(
        self,
        settings: Settings,
        loaded: Loaded,
        access: Access,
        *,
        rules: Rules | None = None,
        signals: bool = True,
        drain_s: float = DRAIN_S,
    ) -> None:
        self._settings = settings
        self._loaded = loaded
        self._access = access
        self._rules = rules or Rules.of(loaded.config.leader_election)
        self._elects = loaded.config.leader_election.leader_elect and not settings.shadow
        self._pace = Pace.at(loaded.config.client_connection.qps)
        self._signals = signals
        self._drain_s = drain_s
        self.identity = identity()
        self.serving: Serving | None = None
        self.session: Session | None = None
        self.lease: Lease | None = None
        self.leading = False
        self.metrics = Metrics()
        self.report = Report()
        """What was compared, with --shadow."""
        self._ended: asyncio.Future[int] | None = None
        self._stopping = False
        self._lost = False
        self._reload_asked = asyncio.Event()
        self._read = loaded
        """The configuration as it was last read, with what holds only after a restart."""
        self._changing = asyncio.Lock()
        """Held while a session begins or takes the place of another."""
        self._sessions = 0
        self._session_task: asyncio.Task[None] | None = None
        self._session_stack = AsyncExitStack()
        self._stack = AsyncExitStack()
        self._who: Client | None = None
        """Asked who somebody is."""
        self._client: Client | None = None
        self._events_client: Client | None = None

    # -- from beginning to end -----------------------------------------------------------------------------------

    async def run(self) -> int:
        """The exit code. Raises InputError."""
        self._ended = asyncio.get_running_loop().create_future()
        self._say_hello()
        self.metrics.leading(self._rules.name, leads=False)
        self._engine_of(self._loaded)  # an engine that cannot be built is best known before anything is begun
        tasks: list[asyncio.Task[None]] = []
        async with self._stack:
            try:
                self._hear_signals()
                side = await self._stack.enter_async_context(self._client_with(self._access, NO_LIMIT, 0))
                self.lease = self._make_lease(side)
                await self._serve(side, tasks)
                tasks.append(asyncio.create_task(self._guarded(self._go(side)), name="scheduler"))
                tasks.append(asyncio.create_task(self._guarded(self._reloading()), name="reloading"))
                code = await self._ended
                await self._stop()
                _log.info("Requested to terminate, exiting" if code == OK else "Exiting")
            finally:
                await _end(*tasks)
                await self._end_session()
                self._unhear_signals()
        if self._settings.shadow:
            said = f"{self.report.json().decode()}\n" if self._settings.shadow_json else self.report.text()
            sys.stdout.write(said)
        return code

    def end(self, code: int) -> None:
        """The process is to end with this code; the first one counts."""
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(code)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Whatever ends here ends the process, in one line."""
        try:
            await work
        except InputError as error:
            if self._ended is not None and not self._ended.done():
                self._ended.set_exception(error)
        except EngineError as error:
            self._engine_failed(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, no traceback is to reach anybody
            if isinstance(found := _first(error), EngineError):
                self._engine_failed(found)
                return
            _log.error(f"An unexpected error, exiting: {REPORT_TO}", err=f"{type(found).__name__}: {found}")
            self.end(FAILED)

    async def _go(self, side: Client) -> None:
        """Reach the server, see the cluster, be elected, and then stay so."""
        version = await reach(side, self._access)
        _log.info("Connected", server=self._access.server, version=version, where=self._access.where)
        await self._open_clients()
        beside = [asyncio.create_task(self._say_missing_rights(side), name="rights")]
        if self.serving is not None and self._looks_up:
            beside.append(asyncio.create_task(self._guarded(self._look_up(self.serving)), name="authorities"))
        try:
            delayed = self._elects and self._loaded.config.delay_cache_until_active
            if not delayed:
                await self._begin_session(self._loaded)
            if self._elects and self.lease is not None:
                await self.lease.acquire()
            if delayed:
                await self._begin_session(self._loaded)
            if not self._settings.shadow:
                await self._lead()
            if self._elects and self.lease is not None:
                await self.lease.hold()
                self._lose()
            else:
                await asyncio.Future()
        finally:
            await _end(*beside)

    async def _lead(self) -> None:
        async with self._changing:
            self.leading = True
            self.metrics.leading(self._rules.name, leads=True)
            if self.session is not None:
                self.session.drive.lead()

    def _lose(self) -> None:
        """Nothing may be written any more: the performer asks the lease before every write, and hears no."""
        self.leading, self._lost = False, True
        self.metrics.leading(self._rules.name, leads=False)
        if self.session is not None:
            self.session.drive.mute()
        _log.error("Leaderelection lost")
        self.end(FAILED)

    async def _stop(self) -> None:
        """Finish what is under way and let go of the lease, unless it was lost."""
        self._stopping = True
        if self._lost:
            return
        if self.session is not None and self.leading:
            with suppress(EngineError):
                await self.session.drain(self._drain_s)
        if self.lease is not None:
            await self.lease.release()

    # -- what it is made of --------------------------------------------------------------------------------------

    def _client_with(
        self, access: Access, qps: float, burst: int, may_write: Callable[[], bool] | None = None
    ) -> Client:
        return Client(access, qps=qps, burst=burst, user_agent=USER_AGENT, observe=self.metrics, may_write=may_write)

    async def _open_clients(self) -> None:
        """One for binds and the like, one for events: neither waits for the other's turn, as in kube-scheduler."""
        connection = self._loaded.config.client_connection
        opened = [
            await self._stack.enter_async_context(
                self._client_with(self._access, connection.qps, connection.burst, self.may_write)
            )
            for _ in range(2)
        ]
        self._client, self._events_client = opened

    def _make_lease(self, side: Client) -> Lease | None:
        if not self._elects:
            return None
        if problem := self._rules.problem():
            raise InputError(problem, subject="leaderElection")
        lease = Lease(side, self._rules, self.identity, component=self._component(self._loaded.config))
        self._stack.push_async_callback(lease.close)
        return lease

    @staticmethod
    def _component(config: KubeSchedulerConfiguration) -> str:
        return (config.profiles[0].scheduler_name if config.profiles else None) or "default-scheduler"

    def may_write(self) -> bool:
        """Asked before every write."""
        if self._settings.shadow:
            return False
        return self.leading and (self.lease is None or self.lease.may_write())

    def _engine_of(self, loaded: Loaded) -> Engine:
        """Raises InputError where the configuration cannot be used."""
        file = str(self._settings.config_file or "")
        try:
            engine = Engine(
                loaded.config,
                loaded.others,
                batch=self._pace.batch,
                tally=self.metrics.tally,
                stopwatch=self.metrics.stopwatch,
            )
            Extenders(loaded.config.extenders, EngineView(engine))  # their certificates can be loaded
            return engine
        except (ConfigError, PluginError) as error:
            raise InputError(str(error), file=file) from None

    # -- sessions ------------------------------------------------------------------------------------------------

    async def _begin_session(self, loaded: Loaded) -> None:
        """Begin, and wait until everything that there is has been seen."""
        async with self._changing:
            await self._begin(loaded)

    async def _begin(self, loaded: Loaded) -> None:
        self._session_stack = AsyncExitStack()
        self.session = session = await self._session_stack.enter_async_context(self._made_session(loaded))
        begun = time.monotonic()
        with _without_collector():
            self._session_task = asyncio.create_task(self._guarded(session.run()), name="session")
            await session.watching.until_synced()
            while session.drive.waiting:
                await asyncio.sleep(0)
        _log.info("Caches are synced", objects=_count(session.watching), seconds=round(time.monotonic() - begun, 3))

    @asynccontextmanager
    async def _made_session(self, loaded: Loaded) -> AsyncIterator[Session]:
        if self._client is None:
            raise RuntimeError("a session before there is a client")
        engine = self._engine_of(loaded)
        driving: list[Drive] = []

        def tell(changes: Sequence[Change]) -> None:
            driving[0].tell(changes)

        async with AsyncExitStack() as stack:
            carrier: Carrier = Onlooker()
            if not self._settings.shadow:
                carrier = await self._performer(loaded, engine, tell, stack)
            journal = self._journal(loaded.config)
            if journal is not None:
                stack.enter_context(journal)
            drive = Drive(
                engine,
                carrier,
                journal,
                watchers=[DecisionLog(), _Stepped(self.metrics)],
                under_way=lambda: carrier.binds_waiting,
                pause_above=self._pace.pause_above,
            )
            driving.append(drive)
            self.metrics.follow(engine, journal)
            seen: Tell = drive.tell
            if self._settings.shadow:
                shadow = Shadow(drive, self.report, self.metrics)
                stack.callback(shadow.finish)
                seen = shadow.tell
            points = {name: points_of(kind) for name, kind in loaded.others.items()}
            watching = Watching(self._client, needed_kinds(loaded.config, points), seen)
            yield Session(loaded, drive, watching, carrier)

    async def _performer(self, loaded: Loaded, engine: Engine, tell: Tell, stack: AsyncExitStack) -> KubePerformer:
        if self._client is None or self._events_client is None:
            raise RuntimeError("a performer before there are clients")
        objects = EngineView(engine)
        extenders = None
        if loaded.config.extenders:
            extenders = await stack.enter_async_context(Extenders(loaded.config.extenders, objects))
        return KubePerformer(
            self._client,
            self._events_client,
            tell,
            objects,
            component=self._component(loaded.config),
            instance=self.identity,
            may_write=self.may_write,
            extenders=extenders,
            volume_timeouts_s={name: deciding.volumes_ms / 1_000 for name, deciding in engine.profiles.items()},
        )

    def _journal(self, config: KubeSchedulerConfiguration) -> Journal | None:
        """One folder a session: a history is of one engine. Raises InputError if the very first cannot be written."""
        if self._settings.journal is None:
            return None
        self._sessions += 1
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        folder = self._settings.journal / f"{stamp}-{os.getpid()}-{self._sessions}"
        try:
            journal = Journal(folder, config, batch=self._pace.batch)
        except OSError as error:
            problem = f"the journal cannot be written: {error.strerror}"
            if self._sessions == 1:
                raise InputError(problem, file=str(folder)) from None
            _log.error(problem, folder=str(folder))
            return None
        _log.info("Writing a journal", folder=str(folder))
        return journal

    async def _end_session(self) -> None:
        task, self._session_task = self._session_task, None
        if task is not None:
            await _end(task)
        self.session = None
        await self._session_stack.aclose()

    # -- reloading -----------------------------------------------------------------------------------------------

    async def _reloading(self) -> None:
        path = self._settings.config_file
        file = None if path is None else ConfigFile(path)
        await whenever_changed(file, self._reload_asked, self._reload)

    async def _reload(self) -> None:
        """Take over the file's configuration, if it is good and another."""
        if self._settings.config_file is None:
            _log.info("There is no --config to read again")
            return
        file = str(self._settings.config_file)
        try:
            loaded = self._settings.load()
            self._engine_of(loaded)
        except (InputError, OSError) as error:
            _log.error("The new configuration cannot be used, the old one stays", file=file, err=str(error))
            return
        if loaded == self._read:
            _log.info("The configuration has not changed", file=file)
            return
        self._read = loaded
        if fields := needs_restart(self._loaded.config, loaded.config):
            _log.warning("Some of the new configuration holds only after a restart", file=file, fields=list(fields))
        kept = replace(
            loaded.config,
            leader_election=self._loaded.config.leader_election,
            client_connection=self._loaded.config.client_connection,
        )
        self._loaded = Loaded(kept, loaded.others)
        await self._swap()
        _log.info("The new configuration is in use", file=file)

    async def _swap(self) -> None:
        """A new session in the place of the old one. What was decided is carried out first."""
        async with self._changing:
            if self.session is None:
                return  # none has begun yet: the first will have the new configuration
            if self.leading:
                await self.session.drain(RELOAD_DRAIN_S)
            await self._end_session()
            await self._begin(self._loaded)
            if self.leading and self.session is not None:
                self.session.drive.lead()

    # -- serving -------------------------------------------------------------------------------------------------

    async def _serve(self, side: Client, tasks: list[asyncio.Task[None]]) -> None:
        where = self._settings.serving
        if where is None:
            return
        settings = self._settings
        who = await self._other_client(settings.authentication_kubeconfig, side)
        what = await self._other_client(settings.authorization_kubeconfig, side)
        serving = Serving(
            where,
            Authentication(who, settings.token_ttl_s),
            Authorization(what, settings.always_allowed, settings.allow_ttl_s, settings.deny_ttl_s),
            self._checks(),
            self._pages(),
        )
        self.serving = await self._stack.enter_async_context(serving)
        self._who = who
        tasks.append(asyncio.create_task(keep_certificate_fresh(serving), name="certificates"))

    @property
    def _looks_up(self) -> bool:
        where = self._settings.serving
        return self._settings.look_up_authorities and where is not None and not where.client_ca_file

    async def _look_up(self, serving: Serving) -> None:
        if self._who is None:
            return
        problem = await serving.look_up_authorities(self._who)
        if problem and not self._settings.tolerate_lookup_failure:
            raise InputError(f"whose client certificates to trust cannot be looked up: {problem}")
        if problem:
            _log.warning("Client certificates are not accepted: the authorities cannot be looked up", err=problem)

    async def _other_client(self, kubeconfig: str | None, otherwise: Client) -> Client:
        if kubeconfig is None:
            return otherwise
        return await self._stack.enter_async_context(self._client_with(find_access(kubeconfig), NO_LIMIT, 0))

    def _checks(self) -> dict[str, list[Check]]:
        election = Check("leaderElection", lambda: "" if self.lease is None else self.lease.health())
        shutdown = Check("shutdown", lambda: "process is shutting down" if self._stopping else "")
        synced = Check("informer-sync", self._unsynced)
        handled = Check("sched-handler-sync", self._unhandled)
        return {"healthz": [PING, election], "livez": [PING], "readyz": [PING, election, shutdown, synced, handled]}

    def _unsynced(self) -> str:
        session = self.session
        if session is None:
            delayed = self._elects and self._loaded.config.delay_cache_until_active and not self.leading
            return "" if delayed else "nothing has been listed yet"
        names = [one.name for one in session.watching.shown() if not one.synced]
        return f"{len(names)} informers not started yet: {names}" if names else ""

    def _unhandled(self) -> str:
        session = self.session
        return "handlers are not fully synchronized" if session is not None and session.drive.steps == 0 else ""

    def _pages(self) -> dict[str, Page]:
        pages: dict[str, Page] = {
            "/configz": self._configz,
            "/metrics": lambda: (CONTENT_TYPE, self.metrics.render()),
        }
        if self._settings.shadow:
            pages["/shadow"] = lambda: ("application/json", self.report.json())
        return pages

    def _configz(self) -> tuple[str, bytes]:
        config = _without_secrets(complete(self._loaded.config))
        return "application/json", msgspec.json.encode({"componentconfig": encode(config)})

    # -- telling -------------------------------------------------------------------------------------------------

    def _say_hello(self) -> None:
        _log.info("Starting situate scheduler", version=__version__, python=sys.version.split()[0])
        for line in self._settings.said:
            _log.warning(line)

    async def _say_missing_rights(self, side: Client) -> None:
        config, others = self._loaded.config, self._loaded.others
        points = {name: points_of(kind) for name, kind in others.items()}
        kinds = needed_kinds(config, points)
        rules = self._rules if self._elects else None
        rights = rights_of(config, kinds, rules, writes=not self._settings.shadow, others=others)
        for line in await missing_rights(side, rights):
            _log.error(line)

    def _engine_failed(self, error: EngineError) -> None:
        """A fault of ours. What the engine knows may be wrong, so the lease goes to somebody else."""
        if self.session is not None:
            self.session.drive.mute()
        _log.error(f"The engine failed, exiting: {REPORT_TO}", err=str(error))
        self.end(FAILED)

    # -- signals -------------------------------------------------------------------------------------------------

    def _hear_signals(self) -> None:
        if not self._signals:
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, partial(self._told_to_stop, number))
        loop.add_signal_handler(signal.SIGHUP, self.reload)

    def _unhear_signals(self) -> None:
        if self._signals:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                asyncio.get_running_loop().remove_signal_handler(number)

    def reload(self) -> None:
        self._reload_asked.set()

    def _told_to_stop(self, number: signal.Signals) -> None:
        if self._stopping or (self._ended is not None and self._ended.done()):
            _log.error("A second signal, exiting at once", signal=number.name)
            os._exit(FAILED)
        _log.info("Stopping", signal=number.name)
        self.end(OK)


def _first(error: BaseException) -> BaseException:
    """What went wrong first, of what several tasks raised."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _without_secrets(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Keys of extenders are shown to nobody."""
    extenders = tuple(
        one if one.tls_config is None else replace(one, tls_config=replace(one.tls_config, key_data=b""))
        for one in config.extenders
    )
    return replace(config, extenders=extenders)


def _count(watching: Watching) -> int:
    return sum(one.objects for one in watching.shown())


class _without_collector:  # noqa: N801 - read as a phrase
    """No garbage collection while a whole cluster is read; afterwards, what was read is not looked through again."""

    def __enter__(self) -> None:
        gc.unfreeze()  # what an earlier engine left behind
        gc.disable()

    def __exit__(self, *_: object) -> None:
        gc.collect()
        gc.freeze()
        gc.enable()
