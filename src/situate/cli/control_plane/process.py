"""A control plane in one process: store, registry, API, scheduler, controllers and hollow nodes.

Parts start in the order of their dependencies and stop in the reverse: clients of the API before it, the store last.
A part that ends by itself is started again, and the log has its reason in one line.
"""

import asyncio
import gc
import signal
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Protocol, TypeAlias

from situate.cli.cluster.connection import KUBECONFIG, loop_factory
from situate.cli.cluster.local import context_name
from situate.cli.control_plane.backups import finish_restore
from situate.cli.control_plane.cluster_copy import copy_cluster, hollow_copies
from situate.cli.control_plane.page import PagePort
from situate.cli.control_plane.parts import (
    aggregation,
    hollow_fleet,
    kubelet_tls,
    machine_agent,
    now,
    own_service,
    renew_certificates,
)
from situate.cli.control_plane.settings import ControlPlaneSettings
from situate.cli.control_plane.state import COPIED_FROM, remove_state, write_state
from situate.cli.control_plane.storage import GAUGES as STORAGE_GAUGES
from situate.cli.control_plane.storage import room_gauges
from situate.cli.input.manifests import read_manifests
from situate.loop.clock_jumps import watch_clock
from situate.loop.controllers.metrics import ControllerMetrics
from situate.loop.health import Check
from situate.loop.logs import Log, set_up
from situate.loop.metrics import Metrics
from situate.loop.supervisor import Part, Supervisor
from situate.server.admission.chain import chain
from situate.server.admission.policies.param_rights import ParamRights
from situate.server.admission.policies.params import ParamFinder
from situate.server.admission.users import user_admission
from situate.server.admission.webhooks.client import WebhookClient
from situate.server.admission.webhooks.metrics import WebhookMetrics
from situate.server.aggregation.apis import AggregatedApis
from situate.server.aggregation.availability import AvailabilityController
from situate.server.aggregation.connector import ApiServerConnector
from situate.server.apiextensions.controller import DefinitionController
from situate.server.apiextensions.conversion_metrics import ConversionMetrics
from situate.server.apiextensions.conversion_webhook import ConversionWebhooks
from situate.server.apiextensions.served import CustomKinds
from situate.server.controllers.leader import run_controllers
from situate.server.default_class import ensure_default_class
from situate.server.encryption.config import read_encryption
from situate.server.encryption.store import EncryptedStore, keep_current
from situate.server.http.descriptors import fit_descriptors
from situate.server.http.server import Server, serve
from situate.server.http.settings import ServerSettings as HttpSettings
from situate.server.identity.audit.policy import read_policy
from situate.server.identity.bootstrap import bootstrap, publish_authorities
from situate.server.identity.create_handlers import restricted
from situate.server.identity.joining.certificate_signer import CertificateSigner
from situate.server.identity.joining.node_joins import NodeJoins
from situate.server.identity.pki.kubeconfig import ensure_kubeconfig
from situate.server.identity.pki.revocation import REVOKED, share_always
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.setup import IdentityParts, open_identity
from situate.server.kubelet.connector import KubeletConnector
from situate.server.kubelet.logs import KubeletLogs
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.placing.binding import Binder
from situate.server.placing.eviction import Evictor
from situate.server.placing.node_configuration import configure
from situate.server.placing.snapshot_lag import SnapshotLag
from situate.server.placing.specials import specials as placing_specials
from situate.server.registry.cache import Cache
from situate.server.registry.lag import CacheLag
from situate.server.registry.registry import Registry
from situate.server.scheduling.quarantine import Quarantine
from situate.server.scheduling.scheduler import SchedulerSettings, run_scheduler
from situate.server.service_range import ensure_service_range
from situate.server.tables import printers
from situate.server.uids import new_uid
from situate.server.views.views import Views
from situate.store.compaction import compact_regularly
from situate.store.contract import Store
from situate.store.errors import StoreError
from situate.store.open import RESERVE_BYTES, open_store
from situate.wire.errors import InputError

STORE_FILE: Final = "store.db"
MEMORY: Final = "memory"
SHARED: Final = "etcd"
"""The prefixes of stores that several servers may share."""
ADMIN: Final = "situate-admin"
REVISION: Final = "situate_store_revision"
AVAILABLE: Final = "situate_store_available"
DROPPED: Final = "situate_audit_dropped"
LAG: Final = "situate_watch_cache_lag_seconds"
STALE: Final = "situate_encryption_stale_values"
SUPPRESSED: Final = "situate_audit_suppressed"
UNREADABLE: Final = "situate_unreadable_objects"
GAUGES: Final = {
    REVISION: "The newest revision that this server has seen.",
    AVAILABLE: "1 while the store answers and takes writes; 0 during an outage, or while it is full.",
    DROPPED: "Notes for the audit log that were dropped, because it could not be written fast enough.",
    SUPPRESSED: "Refusals left out of the audit log, because the same user had too many of them.",
    UNREADABLE: "Values in the store that cannot be read as objects of their kind. The log has their keys.",
    LAG: "How long the watch cache took to catch up with the store, measured every five seconds.",
    STALE: "Stored values that are not yet encrypted with the first key; shown only if encryption is configured.",
    **STORAGE_GAUGES,
}
Gauge: TypeAlias = tuple[str, Callable[[], float]]
REGISTERED_S: Final = 20.0
"""How long to wait for hollow nodes to register before the cluster counts as up without them."""
MASTERS: Final = ("system:masters",)
COLLECTIONS: Final = (10_000, 100, 20)
"""Thresholds of the garbage collector. Reference counting frees nearly everything; at Python's own thresholds the
collector takes a tenth of the time of a write. A look at 10,000 young objects takes 3 ms; at more, a pause would show
in the latency of requests."""

_log = Log(__name__)


class Rendered(Protocol):
    """Metrics for a scrape."""

    def render(self) -> bytes: ...


def run(settings: ControlPlaneSettings) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code. Raises InputError for a store or keys that cannot be used."""
    set_up(settings.logging)
    gc.set_threshold(*COLLECTIONS)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_run(settings))


async def _run(settings: ControlPlaneSettings) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    settings.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        async with _open(settings) as (server, supervisor, registered, page, said):
            tasks = [
                asyncio.create_task(stopping.wait(), name="signals"),
                asyncio.create_task(supervisor.run(), name="supervisor"),
            ]
            await _until_registered(registered, tasks)
            gc.freeze()  # what exists by now stays: the collector need not look at it again
            write_state(settings.directory, server.url, page, **said)
            kubeconfig = settings.directory / KUBECONFIG
            _log.info("The control plane is ready", url=server.url, kubeconfig=str(kubeconfig))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            remove_state(settings.directory)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return 0 if stopping.is_set() else 1
    except (StoreError, IdentityError) as error:
        raise InputError(str(error)) from None


async def _until_registered(registered: asyncio.Event, others: Sequence[asyncio.Task[Any]]) -> None:
    """A cluster that says that it is up has its nodes, unless another task ends first."""
    waiting = asyncio.create_task(registered.wait(), name="nodes' registration")
    await asyncio.wait([waiting, *others], timeout=REGISTERED_S, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


@asynccontextmanager
async def _open(
    settings: ControlPlaneSettings,
) -> AsyncIterator[tuple[Server, Supervisor, asyncio.Event, str, dict[str, Any]]]:
    """The server, the supervisor of the parts that run beside it, whether the hollow nodes are registered, the address
    of the page, and what `situate up` says of the cluster."""
    async with AsyncExitStack() as stack:
        # 1. The store.
        where = settings.store or str(settings.directory / STORE_FILE)
        store, gauges = await _open_store(settings, where)
        stack.push_async_callback(store.aclose)
        # 2. The API without HTTP, and its users.
        cache = Cache(store, shared=where.startswith(SHARED))
        transactions = BindTransactions(
            time.time_ns, new_uid, settings.profile, fails_stray_binds=settings.fails_stray_binds
        )
        called, converted = WebhookMetrics(), ConversionMetrics()
        registry, identity = await _open_registry(settings, store, cache, transactions, called, converted, stack)
        said = await _fill(settings, store, registry)
        # 3. The API on the network.
        binder = Binder(registry, time.time_ns, transactions.node_locks)
        to_kubelets = kubelet_tls(settings.directory, identity)
        nodes = KubeletConnector(registry, to_kubelets, insecure=settings.kubelet_insecure_tls)
        tls = identity.authority.tls(settings.host_names(), now())
        metrics, counts = Metrics(), ControllerMetrics()
        lag = SnapshotLag(registry, settings.snapshot_lag_s)
        views = Views(store, cache)
        stack.push_async_callback(views.aclose)
        # 4. Clients of the API in this process: they begin when it is served, and their health is part of its own.
        others, registered = aggregation(settings.directory, identity, cache), asyncio.Event()
        parts = _parts(settings, store, registry, others, binder, metrics, counts)
        if said["hollowNodes"]:
            parts.append(Part("hollow-nodes", lambda: hollow_fleet(settings, registry, registered).run()))
        else:
            registered.set()
        parts.append(Part("snapshot-lag", lag.run))
        parts.append(Part("revocations", lambda: share_always(registry, identity.authority.folder / REVOKED)))
        signer = CertificateSigner(registry, identity.authority, identity.identity.authorization, now)
        parts.append(Part("certificate-signer", signer.run))
        parts.append(Part("certificates", lambda: renew_certificates(settings, identity, tls, to_kubelets, renewed)))
        if settings.process_node:
            parts.append(Part("machine-node", lambda: machine_agent(settings, registry, nodes, identity.tokens).run()))
        page_url = _add_page(settings, parts, stack)

        def keep_kubeconfig() -> None:
            path, context = settings.directory / KUBECONFIG, context_name(settings.directory)
            ensure_kubeconfig(path, identity.authority, server.url, ADMIN, MASTERS, now(), context)

        async def renewed() -> None:
            keep_kubeconfig()
            others[1].forget_certificates()
            await publish_authorities(registry, identity.authority.bundle.decode())

        async def keep_service() -> None:
            await own_service(settings, registry, server.address[1], shared=where.startswith(SHARED)).run()

        parts.append(Part("own-service", keep_service))
        behind = CacheLag(store, cache)
        gauges[LAG] = (GAUGES[LAG], lambda: behind.seconds)
        parts.append(Part("cache-lag", behind.run))
        supervisor = Supervisor(parts)
        server = await _serve(
            settings,
            gauges,
            behind,
            registry,
            views,
            identity,
            binder,
            nodes,
            others,
            tls,
            (metrics, counts, lag, called, converted),
            supervisor,
        )
        stack.push_async_callback(server.stop)
        keep_kubeconfig()
        yield server, supervisor, registered, page_url, said


async def _fill(settings: ControlPlaneSettings, store: Store, registry: Registry) -> dict[str, Any]:
    """Copy a cluster, if there is a dump of one. Returns what `situate up` says of it. Raises InputError."""
    said: dict[str, Any] = {}
    if settings.copied_from is not None:
        outcome = await copy_cluster(store, registry, read_manifests([str(settings.copied_from)]))
        for what, why in outcome.refused:
            _log.warning("Cannot copy an object", object=what, why=why)
        said = {"copied": dict(outcome.copied), "notes": outcome.notes()}
        if settings.store != MEMORY:
            (settings.directory / COPIED_FROM).write_text(f"{settings.copied_from}\n")
    return {**said, "hollowNodes": settings.nodes + len(hollow_copies(registry))}


def _add_page(settings: ControlPlaneSettings, parts: list[Part], stack: AsyncExitStack) -> str:
    """The address of the page; empty if it is not served."""
    if settings.web_port is None:
        return ""
    page = PagePort(settings.directory, settings.web_port)
    stack.callback(page.close)
    parts.append(Part("page", page.run))
    return page.url


async def _open_registry(
    settings: ControlPlaneSettings,
    store: Store,
    cache: Cache,
    transactions: BindTransactions,
    called: WebhookMetrics,
    converted: ConversionMetrics,
    stack: AsyncExitStack,
) -> tuple[Registry, IdentityParts]:
    """The API as calls, with what every cluster has, and who may call it."""
    identity = open_identity(
        settings.directory,
        cache,
        clock=now,
        wall_ns=time.time_ns,
        new_uid=new_uid,
        audit_policy=read_policy(settings.audit_policy) if settings.audit_policy is not None else None,
        given=settings.given,
        account_issuer=settings.account_issuer,
        allows_all=settings.allows_all,
    )
    identity.identity.audit.start()
    stack.callback(identity.identity.audit.close)
    plugins = chain(cache, settings.profile, accounts=settings.controllers)
    client = WebhookClient(cache)
    custom = CustomKinds(cache, ConversionWebhooks(client, new_uid, converted).convert)
    stack.push_async_callback(client.aclose)
    registry = Registry(
        store,
        wall_ns=time.time_ns,
        new_uid=new_uid,
        cache=cache,
        custom=custom,
        users=user_admission(cache, custom, identity.identity, client, called, new_uid),
        admission=[
            identity.restriction,
            *(one for one in plugins if type(one).__name__ not in settings.without_admission),
            identity.requests,
            identity.escalation,
            ParamRights(cache, ParamFinder(cache, custom), identity.identity),
        ],
        extension=transactions,
        authorize_create=identity.identity.authorize_create,
    )
    await registry.start()
    stack.push_async_callback(registry.aclose)
    await bootstrap(registry, identity.authority.bundle.decode())
    await ensure_service_range(registry, time.time_ns())
    if settings.controllers:
        await ensure_default_class(registry)
    await configure(registry, transactions)
    return registry, identity


async def _open_store(settings: ControlPlaneSettings, where: str) -> tuple[Store, dict[str, Gauge]]:
    """The store, and its metrics."""
    finish_restore(settings.directory)
    providers = read_encryption(settings.encryption) if settings.encryption is not None else {}
    store = await open_store(where, settings.etcd, limit_bytes=settings.limit_bytes, reserve_bytes=RESERVE_BYTES)
    gauges: dict[str, Gauge] = dict(room_gauges(store))
    if not providers:
        return store, gauges
    encrypted = EncryptedStore(store, providers)
    gauges[STALE] = (GAUGES[STALE], lambda: encrypted.stale)
    return encrypted, gauges


async def _serve(
    settings: ControlPlaneSettings,
    gauges: Mapping[str, Gauge],
    behind: CacheLag,
    registry: Registry,
    views: Views,
    identity: IdentityParts,
    binder: Binder,
    nodes: KubeletConnector,
    others: tuple[AggregatedApis, ApiServerConnector],
    tls: ssl.SSLContext,
    rendered: Sequence[Rendered],
    supervisor: Supervisor,
) -> Server:
    placing = placing_specials(binder, Evictor(registry, time.time_ns))
    return await serve(
        HttpSettings(
            address=settings.address,
            port=settings.port,
            hosts=settings.names,
            limits=fit_descriptors(settings.limits),
            version=settings.rules.release,
        ),
        registry,
        identity.identity,
        printers,
        tls=tls,
        names=settings.host_names(),
        create_handlers={
            **{where: restricted(special, identity.restriction) for where, special in placing.items()},
            **identity.create_handlers,
            **NodeJoins(identity.authority, registry, now).handlers(),
        },
        views=views,
        logs=KubeletLogs(registry, nodes),
        nodes=nodes,
        aggregation=others,
        checks={
            "readyz": [
                Check("store", lambda: registry.cache.problem),
                Check("watch-cache", lambda: behind.problem),
                *supervisor.checks(),
            ]
        },
        gauges={
            REVISION: (GAUGES[REVISION], lambda: registry.cache.revision),
            AVAILABLE: (GAUGES[AVAILABLE], lambda: int(not registry.cache.problem)),
            DROPPED: (GAUGES[DROPPED], lambda: identity.identity.audit.dropped),
            SUPPRESSED: (GAUGES[SUPPRESSED], lambda: identity.identity.audit.suppressed),
            UNREADABLE: (GAUGES[UNREADABLE], lambda: sum(1 for _ in registry.cache.unreadable())),
            **gauges,
        },
        metrics=lambda: b"".join(one.render() for one in (*rendered, supervisor)),
    )


def _parts(
    settings: ControlPlaneSettings,
    store: Store,
    registry: Registry,
    others: tuple[AggregatedApis, ApiServerConnector],
    binder: Binder,
    metrics: Metrics,
    counts: ControllerMetrics,
) -> list[Part]:
    parts = [
        Part("compaction", lambda: compact_regularly(store)),
        Part("clock", watch_clock),
        Part("custom-kinds", lambda: DefinitionController(registry, time.time_ns).run()),
        Part("aggregated-apis", lambda: AvailabilityController(registry, *others, time.time_ns).run()),
    ]
    if isinstance(store, EncryptedStore):
        parts.append(Part("encryption", lambda: keep_current(store)))
    if settings.scheduler:
        wanted = SchedulerSettings(
            publishes=True,
            config=settings.config,
            others=settings.plugins or None,
            identity=settings.lease_identity(),
            host=socket.gethostname(),
            quarantine=Quarantine(),
        )
        parts.append(Part("scheduler", lambda: run_scheduler(store, registry, binder, wanted, metrics)))
    if settings.controllers:
        identity = settings.lease_identity()
        drift = settings.moves_drifted

        async def run() -> None:
            await run_controllers(registry, identity, settings.profile, counts, moves_drifted=drift)

        parts.append(Part("controllers", run))
    return parts
