"""A control plane put together: store, registry, API, scheduler, controllers and hollow nodes, in one process.

The order of the start is that of need, and the stop is its reverse: what depends on the API goes before it, and the
store goes last. Whatever ends by itself ends everything, with its reason in one line.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import ssl
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from situate import __version__
from situate.agent import cgroups
from situate.agent.agent import NodeAgent, NodeSettings
from situate.agent.control_plane_local import LocalControlPlane
from situate.agent.desired_state import NodeConfiguration
from situate.agent.hollow_nodes import HollowNodes
from situate.agent.host import node_name
from situate.agent.lease import FENCE
from situate.agent.log_server import SERVER_NAME
from situate.agent.log_source import AgentLogs
from situate.agent.node_objects import NodeShape, hollow_shapes
from situate.agent.process import ProcessRuntime, ProcessSettings
from situate.cli.control_plane.state import STATE
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.reconcile.nodes.fencing import KUBERNETES, NodeProfile
from situate.loop.health import Check
from situate.loop.logs import Log, Logging, set_up
from situate.loop.metrics import Metrics
from situate.server.admission.chain import chain
from situate.server.controllers.registry_controllers import RegistryControllers
from situate.server.http.server import Server, serve
from situate.server.http.settings import Settings as HttpSettings
from situate.server.identity.bootstrap import begin
from situate.server.identity.create_handlers import restricted
from situate.server.identity.kubeconfig import ensure_kubeconfig
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.setup import Opened, open_identity
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.placing.binding import Binder
from situate.server.placing.eviction import Evictor
from situate.server.placing.node_configuration import configure
from situate.server.placing.snapshot_lag import BOUND_S, SnapshotLag
from situate.server.placing.specials import specials as placing_specials
from situate.server.registry.cache import Cache
from situate.server.registry.registry import Registry
from situate.server.scheduling.lease_store import server_elector
from situate.server.scheduling.scheduler import LostTermError, SchedulerSettings, open_scheduler
from situate.server.tables import printers
from situate.server.uids import new_uid
from situate.server.views.views import Views
from situate.store.compaction import compact_regularly
from situate.store.contract import Store
from situate.store.errors import StoreError
from situate.store.open import open_store
from situate.wire.errors import InputError

__all__ = ["Settings", "run"]

STORE_FILE: Final = "store.db"
KUBECONFIG: Final = "kubeconfig"
NODE, PODS = "node", "pods"
"""Where the node that is this machine keeps its things, and there its pods theirs."""
ADMIN: Final = "situate-admin"
REVISION: Final = "situate_store_revision"
DROPPED: Final = "situate_audit_dropped"
GAUGES: Final = {
    REVISION: "The newest revision that this server has seen.",
    DROPPED: "Notes for the audit log that were dropped, because it could not be written fast enough.",
}
CONTROLLERS_LEASE: Final = ("kube-system", "situate-controllers")
REGISTERED_S: Final = 20.0
"""For hollow nodes to be registered, before it is said that the cluster is up without them."""
LOOK_S: Final = 1.0
"""How soon a change of leadership is noticed."""
RENEW_CERTIFICATE_S: Final = 24 * 3_600.0
MASTERS: Final = ("system:masters",)
COLLECTIONS: Final = (50_000, 20, 20)
"""How often garbage is looked for: what comes and goes is freed without, and looking at Python's own pace takes a tenth
of the time of a write."""

_log = Log(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the flags come to."""

    directory: Path
    store: str = ""
    """"" is a file in the directory."""
    address: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    """Other names of this server: in its certificate, and allowed in Host."""
    scheduler: bool = True
    controllers: bool = True
    config: KubeSchedulerConfiguration | None = None
    plugins: Mapping[str, type] = field(default_factory=dict)
    nodes: int = 0
    zones: int = 1
    shape: NodeShape = field(default_factory=NodeShape)
    process_node: bool = False
    """This machine is a node, too."""
    profile: NodeProfile = KUBERNETES
    """How soon a node that falls silent is given up: for agents, controllers and the pods' tolerations alike."""
    snapshot_lag_s: float = BOUND_S
    """How far a node may be behind its snapshot before that is said."""
    limit_bytes: int = 0
    """How large the store's file may become; 0: as large as the disk."""
    logging: Logging = field(default_factory=Logging)


def run(settings: Settings) -> int:
    """Until told to stop; the exit code. Raises InputError for what cannot be used."""
    set_up(settings.logging)
    gc.set_threshold(*COLLECTIONS)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run(settings))


async def _run(settings: Settings) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    settings.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        async with _open(settings) as (server, works, fleet):
            tasks = [asyncio.create_task(work, name=name) for name, work in works]
            stopped = asyncio.create_task(stopping.wait(), name="signals")
            if fleet is not None:
                await _until_registered(fleet, [stopped, *tasks])
            gc.freeze()  # what is there by now stays, and need not be looked at
            _say_where(settings, server)
            done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
            with contextlib.suppress(FileNotFoundError):
                (settings.directory / STATE).unlink()
            failed = [task for task in done if task is not stopped]
            for task in (stopped, *tasks):
                task.cancel()
            await asyncio.gather(stopped, *tasks, return_exceptions=True)
            for task in failed:
                _log.error("Exiting, because a part of the control plane ended", part=task.get_name(), err=_why(task))
            return 1 if failed else 0
    except (StoreError, IdentityError) as error:
        raise InputError(str(error)) from None


async def _until_registered(fleet: HollowNodes, others: Sequence[asyncio.Task[Any]]) -> None:
    """Whoever asked for nodes and is told that the cluster is up finds them there; unless something ends before."""
    registered = asyncio.create_task(fleet.ready.wait(), name="nodes' registration")
    await asyncio.wait([registered, *others], timeout=REGISTERED_S, return_when=asyncio.FIRST_COMPLETED)
    registered.cancel()


def _why(task: asyncio.Task[Any]) -> str:
    error = None if task.cancelled() else task.exception()
    return f"{type(error).__name__}: {error}" if error else "it came to its end"


@asynccontextmanager
async def _open(
    settings: Settings,
) -> AsyncIterator[tuple[Server, list[tuple[str, Coroutine[Any, Any, None]]], HollowNodes | None]]:
    """The server, what has to run beside it, and the hollow nodes among that."""
    async with AsyncExitStack() as stack:
        # 1. What is kept.
        where = settings.store or str(settings.directory / STORE_FILE)
        store = await open_store(where, limit_bytes=settings.limit_bytes)
        stack.push_async_callback(store.aclose)
        # 2. The API without HTTP, and who may use it.
        cache = Cache(store)
        transactions = BindTransactions(time.time_ns, new_uid, settings.profile)
        identity = open_identity(
            settings.directory,
            cache,
            clock=_now,
            wall_ns=time.time_ns,
            new_uid=new_uid,
        )
        identity.identity.audit.start()
        stack.callback(identity.identity.audit.close)
        registry = Registry(
            store,
            wall_ns=time.time_ns,
            new_uid=new_uid,
            cache=cache,
            admission=[identity.restriction, *chain(cache, settings.profile), identity.escalation],
            extension=transactions,
        )
        await registry.start()
        stack.push_async_callback(registry.aclose)
        await begin(registry, identity.authority.pem.decode())
        await configure(registry, transactions)
        # 3. The API on the network.
        binder = Binder(registry, time.time_ns, transactions.node_locks)
        to_agents = _to_agents(settings.directory, identity)
        logs = AgentLogs(registry, to_agents)
        tls = identity.tls(_names(settings), _now())
        metrics, lag = Metrics(), SnapshotLag(registry, settings.snapshot_lag_s)
        views = Views(store, cache)
        stack.push_async_callback(views.aclose)
        server = await _serve(
            settings, registry, views, identity, binder, logs, tls, lambda: metrics.render() + lag.render()
        )
        stack.push_async_callback(server.stop)
        ensure_kubeconfig(settings.directory / KUBECONFIG, identity.authority, server.url, ADMIN, MASTERS, _now())
        # 4. Who uses it from within.
        works = _works(settings, store, registry, binder, metrics)
        fleet = _fleet(settings, registry)
        if fleet is not None:
            works.append(("nodes", fleet.run()))
        works.append(("snapshots' lag", lag.run()))
        works.append(("certificate", _renew_certificates(settings, identity, tls, to_agents)))
        if settings.process_node:
            works.append(("this machine's node", _machine(settings, registry, logs).run()))
        yield server, works, fleet


async def _serve(
    settings: Settings,
    registry: Registry,
    views: Views,
    identity: Opened,
    binder: Binder,
    logs: AgentLogs,
    tls: ssl.SSLContext,
    metrics: Callable[[], bytes],
) -> Server:
    placing = placing_specials(binder, Evictor(registry, time.time_ns))
    return await serve(
        HttpSettings(address=settings.address, port=settings.port, hosts=settings.names),
        registry,
        identity.identity,
        printers,
        tls=tls,
        names=_names(settings),
        specials={
            **{where: restricted(special, identity.restriction) for where, special in placing.items()},
            **identity.specials,
        },
        views=views,
        logs=logs,
        checks={"readyz": [Check("store", lambda: registry.cache.problem)]},
        gauges={
            REVISION: (GAUGES[REVISION], lambda: registry.cache.revision),
            DROPPED: (GAUGES[DROPPED], lambda: identity.identity.audit.dropped),
        },
        metrics=metrics,
    )


def _works(
    settings: Settings, store: Store, registry: Registry, binder: Binder, metrics: Metrics
) -> list[tuple[str, Coroutine[Any, Any, None]]]:
    works: list[tuple[str, Coroutine[Any, Any, None]]] = [("compaction", compact_regularly(store))]
    if settings.scheduler:
        wanted = SchedulerSettings(
            config=settings.config,
            others=settings.plugins or None,
            identity=_identity(settings),
            host=socket.gethostname(),
        )
        works.append(("scheduler", _scheduling(store, registry, binder, wanted, metrics)))
    if settings.controllers:
        works.append(("controllers", _controlling(registry, _identity(settings), settings.profile)))
    return works


def _fleet(settings: Settings, registry: Registry) -> HollowNodes | None:
    if not settings.nodes:
        return None
    shapes = hollow_shapes(settings.nodes, settings.zones, settings.shape)
    return HollowNodes(LocalControlPlane(registry), shapes, _configuration(settings.profile))


async def _scheduling(
    store: Store, registry: Registry, binder: Binder, wanted: SchedulerSettings, metrics: Metrics
) -> None:
    """Until cancelled. Who loses the lease begins anew, from what is stored: others have decided meanwhile."""
    while True:
        async with open_scheduler(store, registry, binder, wanted, metrics=metrics) as scheduler:
            try:
                await scheduler.run()
            except LostTermError:
                _log.warning("The scheduler's lease was lost; standing by")
            finally:
                await scheduler.drain()


async def _controlling(registry: Registry, identity: str, profile: NodeProfile) -> None:
    """Until cancelled. Of several servers on one store, one runs the controllers."""
    elector = server_elector(registry, identity, lease=CONTROLLERS_LEASE)
    working: list[asyncio.Task[None]] = []

    def lead() -> None:
        working.append(asyncio.create_task(RegistryControllers(registry, profile=profile).run(), name="controllers"))

    def lose() -> None:
        _log.warning("The controllers' lease was lost; standing by")
        working.pop().cancel()

    holding = asyncio.create_task(elector.run(lead, lose), name="the controllers' lease")
    try:
        while True:
            done, _ = await asyncio.wait([holding, *working], timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in (holding, *working):
            task.cancel()
        await asyncio.gather(holding, *working, return_exceptions=True)
        await elector.release()


async def _renew_certificates(
    settings: Settings, identity: Opened, tls: ssl.SSLContext, to_agents: ssl.SSLContext
) -> None:
    """Until cancelled. A server that runs for a year has other certificates by then, and nobody notices."""
    while True:
        await asyncio.sleep(RENEW_CERTIFICATE_S)
        tls.load_cert_chain(identity.authority.serve_as(_names(settings), _now()))
        _show_agents(settings.directory, identity, to_agents)


def _machine(settings: Settings, registry: Registry, logs: AgentLogs) -> NodeAgent:
    """The agent of this machine. Its pods end with the control plane: who takes a cluster down means all of it."""
    directory = settings.directory.absolute() / NODE
    own = NodeSettings(node_name(), directory, configuration=_configuration(settings.profile), ends_pods=True)
    groups, limits = cgroups.find(), ProcessSettings(fence=directory / FENCE)
    agent = NodeAgent(
        LocalControlPlane(registry),
        own,
        lambda changed: ProcessRuntime(directory / PODS, changed, groups=groups, settings=limits),
    )
    logs.agents[own.name] = agent
    return agent


def _to_agents(directory: Path, identity: Opened) -> ssl.SSLContext:
    """As whom agents in other processes are asked for logs. Whether they are who they say is known by their nodes."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    _show_agents(directory, identity, tls)
    return tls


def _show_agents(directory: Path, identity: Opened, tls: ssl.SSLContext) -> None:
    credential = identity.authority.client(SERVER_NAME, (), _now())
    with tempfile.NamedTemporaryFile(dir=directory) as file:  # ssl reads nothing but files
        file.write(credential.certificate + credential.key)
        file.flush()
        tls.load_cert_chain(file.name)


def _configuration(profile: NodeProfile) -> NodeConfiguration:
    """Of nodes that begin, until they see their snapshots."""
    return NodeConfiguration(profile.lease_ms // 1_000, profile.renew_ms // 1_000)


def _names(settings: Settings) -> list[str]:
    own = ["localhost", "127.0.0.1", "::1", socket.gethostname()]
    inside = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    return list(dict.fromkeys([*own, *inside, settings.address, *settings.names]))


def _say_where(settings: Settings, server: Server) -> None:
    """Whole or not at all: somebody waits for this file."""
    state = {"pid": os.getpid(), "url": server.url, "version": __version__, "started": time.time()}
    made = settings.directory / f"{STATE}.new"
    made.write_text(json.dumps(state))
    made.replace(settings.directory / STATE)
    _log.info("The control plane is ready", url=server.url, kubeconfig=str(settings.directory / KUBECONFIG))


def _now() -> datetime:
    return datetime.now(UTC)


def _identity(settings: Settings) -> str:
    """Who we are to others on the same store. A file is ours alone while we run, so whoever held a lease in it was us,
    and we need not wait for its end."""
    alone = not settings.store.startswith("etcd")
    return f"{socket.gethostname()}_{'alone' if alone else uuid.uuid4()}"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform != "linux":
        return None
    import uvloop

    return uvloop.new_event_loop
