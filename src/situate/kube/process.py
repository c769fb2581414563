"""One scheduler process on a cluster: it builds the parts, elects, reloads and stops.

The elector, the port and the clients live as long as the process; sessions (session.py) come and go within it, one for
each configuration (current_session.py).

Exit codes: 0 after SIGTERM or SIGINT; 1 when it loses the lease, when the engine fails (its state may be wrong), or at
a second signal. Unusable settings raise InputError at the start.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

from situate import __version__
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.versions import DEFAULT, KubernetesRules, rules_of_server
from situate.kube.access import Access
from situate.kube.client import Client
from situate.kube.current_session import CurrentSession
from situate.kube.endpoints import Endpoints
from situate.kube.faults import first, say_exiting, say_unexpected
from situate.kube.fleet import Fleet
from situate.kube.kubeconfig import find_access
from situate.kube.lease_store import ApiLeaseStore
from situate.kube.preflight import missing_rights, reach, rights_of, served_devices
from situate.kube.publishing import publish
from situate.kube.reload import Configuration, whenever_changed
from situate.kube.session import Session, SessionContext, build_engine, kinds_of
from situate.kube.settings import OWN_LEASE, DecisionPace, Loaded, Settings
from situate.kube.shadow import ShadowReport
from situate.kube.signals import handle_signals
from situate.kube.status_server import StatusServer, keep_certificate_fresh
from situate.loop.election import ElectionRules, Elector, new_identity
from situate.loop.logs import Log
from situate.loop.metrics import Metrics
from situate.loop.scheduling.session import component_name, end_tasks
from situate.loop.watched import WatchedFile
from situate.wire.errors import InputError

DRAIN_S: Final = 0.5
"""How long binds in flight may take to finish when we stop; a standby waits meanwhile."""
NO_LIMIT: Final = -1.0
"""Requests of the election and reviews do not wait behind binds."""
USER_AGENT: Final = f"situate/{__version__} scheduler"
TERMS: Final = f"{OWN_LEASE[0]}/{OWN_LEASE[1]}"
"""The lease whose terms situate's own server checks binds against."""

DEFAULT_SCHEDULER: Final = "default-scheduler"

OK: Final = 0
FAILED: Final = 1

_log = Log(__name__)


class Process:
    """`run` it once."""

    def __init__(
        self,
        settings: Settings,
        loaded: Loaded,
        access: Access,
        *,
        rules: ElectionRules | None = None,
        signals: bool = True,
        drain_s: float = DRAIN_S,
    ) -> None:
        self._settings = settings
        self._access = access
        self._rules = rules or ElectionRules.of(loaded.config.leader_election)
        alone = not settings.shadow and settings.fleet is None
        self._elects = loaded.config.leader_election.leader_elect and alone
        self._pace = DecisionPace.at(loaded.config.client_connection.qps)
        self._signals = signals
        self._drain_s = drain_s
        self.identity = new_identity()
        self.elector: Elector | None = None
        self.fleet: Fleet | None = None
        self.leading = False
        self.stopping = False
        self.metrics = Metrics()
        self.report = ShadowReport()
        """The comparison, with --shadow."""
        self.endpoints = Endpoints(self, settings)
        self._ended: asyncio.Future[int] | None = None
        self._lost = False
        self._reload_asked = asyncio.Event()
        self._configuration = Configuration(settings, loaded, self._check)
        self._current = CurrentSession(self._guarded)
        self._stack = AsyncExitStack()
        self._serving: tuple[StatusServer, Client] | None = None
        """With the client that authenticates its users."""
        self._context: SessionContext | None = None
        """There once the server has been reached."""

    @property
    def session(self) -> Session | None:
        return self._current.session

    @property
    def config(self) -> KubeSchedulerConfiguration:
        return self._configuration.loaded.config

    @property
    def delayed(self) -> bool:
        """Whether it lists nothing before it leads."""
        return self._elects and self.config.delay_cache_until_active and not self.leading

    # -- the run ------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """The exit code. Raises InputError."""
        self._ended = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().set_exception_handler(say_unexpected)
        self._log_start()
        self.metrics.leading(self._rules.name, leads=False)
        self._check(self._configuration.loaded)  # find an unusable configuration before anything starts
        tasks: list[asyncio.Task[None]] = []
        async with self._stack:
            try:
                if self._signals:
                    self._stack.enter_context(handle_signals(self._stop_requested, self.reload))
                side = await self._stack.enter_async_context(self._client_with(self._access, NO_LIMIT, 0))
                self.elector = self._make_elector(side)
                self.fleet = self._make_fleet(side)
                await self._serve(side, tasks)
                tasks.append(asyncio.create_task(self._guarded(self._reloading()), name="reloading"))
                going = asyncio.create_task(self._guarded(self._go(side)), name="scheduler")
                try:
                    code = await self._ended
                finally:
                    await self._stop(going)
                _log.info("Requested to terminate, exiting" if code == OK else "Exiting")
            finally:
                await end_tasks(*tasks)
                await self._current.close()
        if self._settings.shadow:
            said = f"{self.report.json().decode()}\n" if self._settings.shadow_json else self.report.text()
            sys.stdout.write(said)
        return code

    def end(self, code: int) -> None:
        """End the process with this code; the first call counts."""
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(code)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`; an error ends the process with one line in the log."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - users see no traceback
            found = first(error)
            if isinstance(found, InputError):
                if self._ended is not None and not self._ended.done():
                    self._ended.set_exception(found)
                return
            # A bug of ours. The engine's state may be wrong, so another process has to lead.
            self._current.mute()
            say_exiting(found)
            self.end(FAILED)

    async def _go(self, side: Client) -> None:
        """Connect, list the cluster, be elected, and lead."""
        version = await reach(side, self._access)
        _log.info("Connected", server=self._access.server, version=version, where=self._access.where)
        rules = rules_of_server(version) or DEFAULT
        _log.info("Following the rules of Kubernetes", version=rules.version)
        context = await self._make_context(rules)
        async with asyncio.TaskGroup() as beside:
            beside.create_task(self._log_missing_rights(side), name="rights")
            if self._serving is not None:
                beside.create_task(self.endpoints.look_up(*self._serving), name="authorities")
            delayed = self.delayed
            if not delayed:
                await self._current.begin(context, self._configuration.loaded)
            if self.elector is not None:
                await self.elector.acquire()
                # Renewed from here on, however long it takes to list the cluster.
                beside.create_task(self._hold(self.elector), name="election")
            if delayed:
                await self._current.begin(context, self._configuration.loaded)
            if self.fleet is not None:
                await self.fleet.join()
                beside.create_task(self.fleet.run(), name="fleet")
            if not self._settings.shadow:
                await self._lead()
                beside.create_task(self._publish(), name="publishing")
            await asyncio.Future()

    async def _lead(self) -> None:
        if self._lost:
            return
        self.leading = True
        self.metrics.leading(self._rules.name, leads=True)
        await self._current.lead()

    async def _hold(self, elector: Elector) -> None:
        """Hold the lease. Once it is lost, `may_write` is False and the performer writes nothing."""
        await elector.hold()
        self.leading, self._lost = False, True
        self.metrics.leading(self._rules.name, leads=False)
        self._current.mute()
        _log.error("Leaderelection lost")
        self.end(FAILED)

    async def _stop(self, going: asyncio.Task[None]) -> None:
        """Finish what is in flight and release the lease, unless it was lost."""
        self.stopping = True
        if not self._lost:
            await self._current.drain(self._drain_s)
        await end_tasks(going)  # or it would renew the lease while we release it
        if self.elector is not None:
            await self.elector.release()
        if self.fleet is not None:
            await self.fleet.leave()

    # -- its parts ----------------------------------------------------------------------------------------------

    def _client_with(
        self, access: Access, qps: float, burst: int, may_write: Callable[[], bool] | None = None
    ) -> Client:
        return Client(access, qps=qps, burst=burst, user_agent=USER_AGENT, observe=self.metrics, may_write=may_write)

    async def _make_context(self, rules: KubernetesRules) -> SessionContext:
        """As in kube-scheduler, events have a client of their own, and neither waits for the other."""
        connection = self.config.client_connection
        clients = [
            await self._stack.enter_async_context(
                self._client_with(self._access, connection.qps, connection.burst, self.may_write)
            )
            for _ in range(2)
        ]
        self._context = SessionContext(
            settings=self._settings,
            pace=self._pace,
            metrics=self.metrics,
            report=self.report,
            client=clients[0],
            events_client=clients[1],
            rules=rules,
            may_write=self.may_write,
            term=self.term,
            fleet=self.fleet,
        )
        return self._context

    def _make_fleet(self, side: Client) -> Fleet | None:
        rules = self._settings.fleet
        if rules is None:
            return None
        return Fleet(side, rules, self._scheduler_names())

    def _scheduler_names(self) -> list[str]:
        """The schedulerNames whose pods we decide on."""
        names = [profile.scheduler_name or DEFAULT_SCHEDULER for profile in self.config.profiles]
        return names or [DEFAULT_SCHEDULER]

    def _make_elector(self, side: Client) -> Elector | None:
        if not self._elects:
            return None
        if problem := self._rules.problem():
            raise InputError(problem, subject="leaderElection")
        store = ApiLeaseStore(side, self._rules.namespace, self._rules.name, component=component_name(self.config))
        elector = Elector(store, self._rules, self.identity)
        self._stack.push_async_callback(elector.close)
        return elector

    def may_write(self) -> bool:
        """Callers ask before every write."""
        if self._settings.shadow:
            return False
        return self.leading and (self.elector is None or self.elector.may_write())

    def term(self) -> int | None:
        """The term that binds carry; None if the server does not check terms, or there is no election."""
        if self.elector is None or not self._settings.guarded or self._rules.lock != TERMS:
            return None
        return self.elector.term()

    def _check(self, loaded: Loaded) -> None:
        """Raises InputError for an unusable configuration."""
        build_engine(loaded, self._settings, self._pace, self.metrics)

    async def _serve(self, side: Client, tasks: list[asyncio.Task[None]]) -> None:
        who = await self._other_client(self._settings.authentication_kubeconfig, side)
        what = await self._other_client(self._settings.authorization_kubeconfig, side)
        serving = self.endpoints.serving(who, what)
        if serving is None:
            return
        await self._stack.enter_async_context(serving)
        self._serving = serving, who
        tasks.append(asyncio.create_task(self._guarded(keep_certificate_fresh(serving)), name="certificates"))

    async def _other_client(self, kubeconfig: str | None, otherwise: Client) -> Client:
        if kubeconfig is None:
            return otherwise
        return await self._stack.enter_async_context(self._client_with(find_access(kubeconfig), NO_LIMIT, 0))

    # -- reloading -----------------------------------------------------------------------------------------------

    async def _reloading(self) -> None:
        path = self._settings.config_file
        file = None if path is None else WatchedFile(path)
        await whenever_changed(file, self._reload_asked, self._reload)

    def reload(self) -> None:
        """Load the configuration again."""
        self._reload_asked.set()

    async def _reload(self) -> None:
        """Use the file's configuration if it is valid and new."""
        if not self._configuration.read_again():
            return
        if self.fleet is not None:
            self.fleet.decide_on(self._scheduler_names())
        if self._context is not None:  # else the first session will use it
            await self._current.swap(self._context, self._configuration.loaded)
        await self._publish()
        _log.info("The new configuration is in use", file=str(self._settings.config_file))

    async def _publish(self) -> None:
        """Publish the configuration, if this process decides by it."""
        if self._context is not None and self.may_write():
            await publish(self._context.events_client, self._rules.namespace, self._rules.name, self.config)

    # -- logs ----------------------------------------------------------------------------------------------------

    def _log_start(self) -> None:
        _log.info("Starting situate scheduler", version=__version__, python=sys.version.split()[0])
        for line in self._settings.said:
            _log.warning(line)

    async def _log_missing_rights(self, side: Client) -> None:
        loaded, rules = self._configuration.loaded, self._rules if self._elects else None
        writes = not self._settings.shadow
        kinds = await served_devices(side, kinds_of(loaded))
        rights = rights_of(loaded.config, kinds, rules, writes=writes, others=loaded.others)
        for line in await missing_rights(side, rights):
            _log.error(line)

    def _stop_requested(self) -> bool:
        """False if it was called before."""
        if self.stopping or (self._ended is not None and self._ended.done()):
            return False
        self.end(OK)
        return True
