"""The HTTP server: builds it, starts it, and stops it without losing a response."""

from __future__ import annotations

import asyncio
import errno
import random
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from situate.loop.health import Check
from situate.loop.logs import Log
from situate.server.aggregation.apis import AggregatedApis
from situate.server.aggregation.connector import ApiServerConnector
from situate.server.http.acceptor import Acceptor
from situate.server.http.aggregated import AggregationHandler
from situate.server.http.api_documents import ApiDocuments
from situate.server.http.connection import Listener
from situate.server.http.filters import RequestFilters
from situate.server.http.flow_control import FlowControl
from situate.server.http.health import Health
from situate.server.http.host_allowlist import HostAllowlist
from situate.server.http.metrics import RequestMetrics
from situate.server.http.objects import ObjectHandler
from situate.server.http.pod_logs import PodLogHandler
from situate.server.http.pod_streams import PodStreamHandler
from situate.server.http.ports import ComputedResources, CreateHandlers, Gate, LogSource, NodeConnector, Tables
from situate.server.http.proxying import ProxyHandler
from situate.server.http.routing import Router
from situate.server.http.scale import ScaleHandler
from situate.server.http.settings import ServerSettings
from situate.server.http.streams import OpenStreams
from situate.server.http.watches import WatchHandler
from situate.server.identity.network import check_listening
from situate.server.registry.registry import Registry
from situate.server.resources import served_by
from situate.wire.errors import InputError

SWEEP_S: Final = 1.0
LEAST_S: Final = 0.1
POLL_S: Final = 0.01
_RANDOM: Final = random.SystemRandom()
_log = Log(__name__)


class Server:
    """A listening server. Use `serve`."""

    def __init__(
        self,
        settings: ServerSettings,
        filters: RequestFilters,
        flows: FlowControl,
        streams: OpenStreams,
        metrics: RequestMetrics,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._settings = settings
        self._filters = filters
        self._flows = flows
        self._streams = streams
        self._tls = tls
        self.metrics = metrics
        self._listener: Listener | None = None
        self._acceptor: Acceptor | None = None
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The host and port it listens on."""
        if self._acceptor is None or not self._acceptor.sockets:
            raise InputError("the server does not listen")
        host, port, *_ = self._acceptor.sockets[0].getsockname()
        return str(host), int(port)

    @property
    def url(self) -> str:
        host, port = self.address
        named = f"[{host}]" if ":" in host else host
        return f"{'https' if self._tls is not None else 'http'}://{named}:{port}"

    async def start(self) -> None:
        """Raises InputError if it cannot listen on the address."""
        settings, limits = self._settings, self._settings.limits
        check_listening(settings.address, tls=self._tls is not None)
        self._listener = Listener(
            self._filters.handle,
            limits,
            self._flows,
            access_log=None,
            keepalive_timeout=limits.idle_s,
            lingering_time=limits.linger_s,
            max_line_size=limits.line_bytes,
            max_field_size=limits.line_bytes,
            max_headers=limits.headers,
            auto_decompress=False,
        )
        loop = asyncio.get_running_loop()
        acceptor = Acceptor(self._listener, self._tls)
        try:
            await acceptor.start(settings.address, settings.port)
        except OSError as error:
            raise InputError(_listen_error(settings, error)) from None
        self._acceptor = acceptor
        self.metrics.watch_connections(self._listener)
        self._sweeper = loop.create_task(self._sweep())
        _log.info("Serving", url=self.url)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            self._filters.sweep(time.perf_counter())
            if self._listener is not None:
                self._listener.sweep(loop.time())

    async def stop(self) -> None:
        """Refuse new requests, end watches, and finish requests in flight within Limits.stop_s."""
        if self._acceptor is None or self._listener is None:
            return
        self._filters.stopping = True
        self._acceptor.close()
        self._streams.stop()
        self._listener.pre_shutdown()
        deadline = time.perf_counter() + self._settings.limits.stop_s
        while self._filters.running and time.perf_counter() < deadline:
            await asyncio.sleep(POLL_S)
        self._listener.end_pauses()
        # Responses still being sent have the rest of the time.
        await self._listener.shutdown(max(deadline - time.perf_counter(), LEAST_S))
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        self._acceptor = None


def _listen_error(settings: ServerSettings, error: OSError) -> str:
    address = f"{settings.address}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{address} is in use: stop the other process, or choose another port (0: any free one)"
    if error.errno == errno.EACCES:
        return f"{address} needs privileges to listen on: choose a port above 1023"
    return f"{address} cannot be used: {error.strerror or error}"


async def serve(
    settings: ServerSettings,
    registry: Registry,
    gate: Gate,
    tables: Tables,
    *,
    tls: ssl.SSLContext | None,
    names: Iterable[str] = (),
    create_handlers: CreateHandlers | None = None,
    views: ComputedResources | None = None,
    logs: LogSource | None = None,
    nodes: NodeConnector | None = None,
    aggregation: tuple[AggregatedApis, ApiServerConnector] | None = None,
    checks: Mapping[str, Sequence[Check]] | None = None,
    gauges: Mapping[str, tuple[str, Callable[[], float]]] | None = None,
    metrics: Callable[[], bytes] = bytes,
    wall_ns: Callable[[], int] = time.time_ns,
    rand: Callable[[], float] = _RANDOM.random,
) -> Server:
    """Start a server. `names` are those in its certificate; `checks` are by healthz, livez, readyz; `metrics` returns
    the text of other metrics of the process."""
    limits = settings.limits
    request_metrics = RequestMetrics(gauges, metrics)
    flows = FlowControl(limits, request_metrics)
    objects = ObjectHandler(registry, tables, wall_ns)
    streams = OpenStreams(limits.slow_s)
    routing = Router(
        settings,
        registry,
        objects,
        WatchHandler(registry, streams, limits, rand),
        ScaleHandler(registry),
        PodLogHandler(registry, logs, streams),
        PodStreamHandler(registry, nodes, streams, limits),
        ProxyHandler(registry, nodes, streams, limits),
        create_handlers or {},
        Health(checks or {}),
        request_metrics,
        ApiDocuments(registry.custom, served_by(settings.version), aggregation[0] if aggregation else None),
        views,
        AggregationHandler(*aggregation, streams, limits.body_bytes) if aggregation else None,
    )
    hosts = HostAllowlist((*names, *settings.hosts, settings.address))
    filters = RequestFilters(routing, gate, hosts, request_metrics, limits, flows, wall_ns)
    server = Server(settings, filters, flows, streams, request_metrics, tls)
    await server.start()
    return server
