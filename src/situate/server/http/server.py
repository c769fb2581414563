"""The server: put together, started, and stopped so that nobody loses an answer."""

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
from situate.server.discovery import Discovery
from situate.server.http.connection import Listener
from situate.server.http.filters import RequestFilters
from situate.server.http.health import Health
from situate.server.http.host_allowlist import HostAllowlist
from situate.server.http.metrics import RequestMetrics
from situate.server.http.objects import ObjectHandler
from situate.server.http.pod_logs import PodLogHandler
from situate.server.http.ports import ComputedResources, CreateHandlers, Gate, LogSource, Tables
from situate.server.http.routing import Router
from situate.server.http.scale import ScaleHandler
from situate.server.http.settings import ServerSettings
from situate.server.http.streams import OpenStreams
from situate.server.http.watches import WatchHandler
from situate.server.identity.network import check_listening
from situate.server.openapi import OpenApi
from situate.server.registry.registry import Registry
from situate.wire.errors import InputError

__all__ = ["Server", "serve"]

SWEEP_S: Final = 1.0
BACKLOG: Final = 1024
LEAST_S: Final = 0.1
POLL_S: Final = 0.01
_DICE: Final = random.SystemRandom()
_log = Log(__name__)


class Server:
    """A server that listens. `serve` makes one."""

    def __init__(
        self,
        settings: ServerSettings,
        front: RequestFilters,
        streams: OpenStreams,
        meter: RequestMetrics,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._settings = settings
        self._front = front
        self._streams = streams
        self._tls = tls
        self.meter = meter
        self._listener: Listener | None = None
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it got, where any would do."""
        if self._server is None or not self._server.sockets:
            raise InputError("the server does not listen")
        host, port, *_ = self._server.sockets[0].getsockname()
        return str(host), int(port)

    @property
    def url(self) -> str:
        host, port = self.address
        named = f"[{host}]" if ":" in host else host
        return f"{'https' if self._tls is not None else 'http'}://{named}:{port}"

    async def start(self) -> None:
        """Raises InputError for an address that cannot be had."""
        settings, limits = self._settings, self._settings.limits
        check_listening(settings.address, tls=self._tls is not None)
        self._listener = Listener(
            self._front.handle,
            head_s=limits.head_s,
            most=limits.connections,
            access_log=None,
            keepalive_timeout=limits.idle_s,
            lingering_time=limits.linger_s,
            max_line_size=limits.line_bytes,
            max_field_size=limits.line_bytes,
            max_headers=limits.headers,
            auto_decompress=False,
        )
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._listener,
                settings.address,
                settings.port,
                backlog=BACKLOG,
                ssl=self._tls,
                ssl_handshake_timeout=limits.handshake_s if self._tls is not None else None,
            )
        except OSError as error:
            raise InputError(_no_port(settings, error)) from None
        self._sweeper = loop.create_task(self._sweep())
        _log.info("Serving", url=self.url)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            self._front.sweep(time.perf_counter())
            if self._listener is not None:
                self._listener.sweep(loop.time())

    async def stop(self) -> None:
        """No new requests, watches ended, those in flight finished, but for no longer than Limits.stop_s."""
        if self._server is None or self._listener is None:
            return
        self._front.stopping = True
        self._server.close()
        self._streams.stop()
        self._listener.pre_shutdown()
        deadline = time.perf_counter() + self._settings.limits.stop_s
        while self._front.running and time.perf_counter() < deadline:
            await asyncio.sleep(POLL_S)
        # Answers that are still being sent have what is left of the time.
        await self._listener.shutdown(max(deadline - time.perf_counter(), LEAST_S))
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAST_S):
                await self._server.wait_closed()
        self._server = None


def _no_port(settings: ServerSettings, error: OSError) -> str:
    place = f"{settings.address}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{place} is in use already: stop whoever has it, or choose another port (0: any that is free)"
    if error.errno == errno.EACCES:
        return f"{place} may not be listened on: choose a port above 1023"
    return f"{place} cannot be listened on: {error.strerror or error}"


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
    checks: Mapping[str, Sequence[Check]] | None = None,
    gauges: Mapping[str, tuple[str, Callable[[], float]]] | None = None,
    metrics: Callable[[], bytes] = bytes,
    wall_ns: Callable[[], int] = time.time_ns,
    dice: Callable[[], float] = _DICE.random,
) -> Server:
    """A server that listens already. `names` are those in its certificate; `checks` by healthz, livez, readyz;
    `metrics` those of others in the process, as text."""
    limits = settings.limits
    meter = RequestMetrics(gauges, metrics)
    objects = ObjectHandler(registry, tables, wall_ns)
    streams = OpenStreams(limits.slow_s)
    routing = Router(
        settings,
        objects,
        WatchHandler(registry, streams, limits, dice),
        ScaleHandler(registry),
        PodLogHandler(registry, logs, streams),
        create_handlers or {},
        Health(checks or {}),
        meter,
        Discovery(),
        OpenApi(),
        views,
    )
    hosts = HostAllowlist((*names, *settings.hosts, settings.address))
    front = RequestFilters(routing, gate, hosts, meter, limits, wall_ns)
    server = Server(settings, front, streams, meter, tls)
    await server.start()
    return server
