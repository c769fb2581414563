"""A proxy in front of the API server that sees every request, and spoils what it is told to.

It ends TLS with the server's own certificate and forwards bearer tokens; a client certificate cannot pass it. Whether a
request is spoiled follows from the seed, the request's path and how often it was made: not from who came first.
HTTP/1.1 only, no upgrades (exec, port-forward).
"""

import asyncio
import random
import re
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
from aiohttp import web
from yarl import URL

from kubernetes.cluster import Cluster
from kubernetes.parts import free_ports

T = TypeVar("T")

# These are about one connection, and each side has its own.
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "host"})
REASONS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
BODY_LIMIT = 64 << 20
STOP_S = 10.0
CLOSING_TURNS = 20


@dataclass(frozen=True, slots=True)
class Match:
    """Requests by method and by where the path matches."""

    method: str
    path: str

    def of(self, method: str, path: str) -> bool:
        return method == self.method and re.search(self.path, path) is not None


BINDS = Match("POST", r"/pods/[^/]+/binding$")
POD_DELETES = Match("DELETE", r"/pods/[^/]+$")
POD_PATCHES = Match("PATCH", r"/pods/[^/]+(/status)?$")


@dataclass(frozen=True, slots=True)
class Fault:
    """A share of the matching requests is answered with `status`; 0 breaks the connection instead of answering.

    `forwarded`: only after the server did what was asked, so that it is the answer that is lost.
    """

    match: Match
    share: float
    status: int
    forwarded: bool = False
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class Faults:
    """All that goes wrong at one time. `refuse` closes the door and breaks what is open."""

    answers: tuple[Fault, ...] = ()
    cut_watches_after_s: float | None = None
    delay_s: float = 0.0
    refuse: bool = False


@dataclass(slots=True)
class Counts:
    """What has happened so far: requests by (method, path), and by kind of fault."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    answered: Counter[int] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    watches: int = 0
    watches_cut: int = 0


class FaultProxy:
    """A context manager; the proxy runs in a thread of its own. Nothing is spoiled before `set`."""

    def __init__(self, cluster: Cluster, seed: int = 0) -> None:
        self.seed = seed
        self.counts = Counts()
        self.faults = Faults()
        self._behind = cluster.url
        self._trust = ssl.create_default_context(cafile=str(cluster.certificate))
        self._serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._serving.load_cert_chain(str(cluster.certificate), str(cluster.key))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy", daemon=True)
        self._runner: web.AppRunner | None = None
        self._site: web.SockSite | None = None
        self._session: aiohttp.ClientSession | None = None
        self._port = free_ports(1)[0]

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def __enter__(self) -> "FaultProxy":
        self._thread.start()
        self._do(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._do(self._stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_S)
            self._loop.close()

    def set(self, faults: Faults) -> None:
        """From now on. Watches that are open already are cut at the new age too."""
        self._do(self._change(faults))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(STOP_S)

    # ── in the proxy's own thread ───────────────────────────────────────────────────────────────────────────────────

    async def _start(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._trust)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._open()

    async def _stop(self) -> None:
        self._break_connections()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()
        # A transport is closed a few turns after it was told to, and one with TLS when the other end agrees; the loop
        # must not stop before, or whoever collects the garbage finds open sockets.
        open_ones = getattr(self._loop, "_transports", {})
        for _ in range(CLOSING_TURNS):
            await asyncio.sleep(0.001)
            if not open_ones:
                return
        for transport in list(open_ones.values()):
            transport.abort()
        await asyncio.sleep(0.01)

    async def _change(self, faults: Faults) -> None:
        self.faults = faults
        if faults.refuse and self._site is not None:
            await self._site.stop()
            self._site = None
            self._break_connections()
        elif not faults.refuse and self._site is None:
            await self._open()

    async def _open(self) -> None:
        """Listen, at the same port each time."""
        if self._runner is None:
            raise RuntimeError("the proxy is not running")
        listening = socket.create_server(("127.0.0.1", self._port))
        self._site = web.SockSite(self._runner, listening, ssl_context=self._serving)
        await self._site.start()

    def _break_connections(self) -> None:
        server = self._runner.server if self._runner else None
        for connection in server.connections if server else ():
            if connection.transport is not None:
                # Python 3.11 forgets what to abort of a TLS transport that was closed twice.
                with suppress(AttributeError):
                    connection.transport.abort()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self.faults.delay_s:
            await asyncio.sleep(self.faults.delay_s)
        body = await request.read()
        fault = self._draw(request.method, request.path)
        if fault is not None and not fault.forwarded:
            self.counts.answered[fault.status] += 1
            return spoiled(request, fault)
        try:
            return await self._forward(request, body, fault)
        except aiohttp.ClientError:
            # The server is down; so then is this connection.
            return broken(request)

    def _draw(self, method: str, path: str) -> Fault | None:
        self.counts.requests[method, path] += 1
        drawn = random.Random(f"{self.seed} {method} {path} {self.counts.requests[method, path]}").random()
        for fault in self.faults.answers:
            if fault.match.of(method, path):
                if drawn < fault.share:
                    return fault
                drawn -= fault.share
        return None

    async def _forward(self, request: web.Request, body: bytes, fault: Fault | None) -> web.StreamResponse:
        if self._session is None:
            raise RuntimeError("the proxy is not running")
        url = f"{self._behind}{request.raw_path}"
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        async with self._session.request(
            request.method, URL(url, encoded=True), headers=headers, data=body or None, allow_redirects=False
        ) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
            if request.query.get("watch") in ("1", "true") and answer.status == HTTPStatus.OK:
                return await self._relay(request, answer, kept)
            whole = await answer.read()
            if fault is not None:
                self.counts.lost[fault.status] += 1
                return spoiled(request, fault)
            kept.pop("Content-Length", None)
            return web.Response(status=answer.status, headers=kept, body=whole)

    async def _relay(
        self, request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> web.StreamResponse:
        """A watch: pass on what comes, until one side ends it or its time is up."""
        self.counts.watches += 1
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        begun = self._loop.time()
        while True:
            limit = self.faults.cut_watches_after_s
            # Without a limit, look up now and then: one may be set while the watch is quiet.
            left = 0.2 if limit is None else begun + limit - self._loop.time()
            if left <= 0:
                self.counts.watches_cut += 1
                return broken(request, response)
            try:
                chunk = await asyncio.wait_for(answer.content.readany(), min(left, 0.2))
            except TimeoutError:
                continue
            except aiohttp.ClientError:
                return broken(request, response)
            if not chunk:
                await response.write_eof()
                return response
            await response.write(chunk)


def spoiled(request: web.Request, fault: Fault) -> web.StreamResponse:
    if fault.status == 0:
        return broken(request)
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": fault.status,
        "reason": REASONS.get(fault.status, ""),
        "message": f"the fault proxy says {fault.status}",
    }
    headers = {} if fault.retry_after_s is None else {"Retry-After": str(fault.retry_after_s)}
    return web.json_response(status, status=fault.status, headers=headers)


def broken(request: web.Request, response: web.StreamResponse | None = None) -> web.StreamResponse:
    """End the connection with no answer, or in the middle of one."""
    if request.transport is not None:
        request.transport.abort()
    return response or web.Response()
