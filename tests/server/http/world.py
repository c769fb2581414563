"""A server on loopback with a registry over memory, and a client that writes bytes: what the tests of HTTP share."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from situate.loop.health import Check
from situate.server.aggregation.apis import AggregatedApis
from situate.server.aggregation.connector import ApiServerConnector
from situate.server.errors import StatusError
from situate.server.http.ports import CreateHandler, LogSource, NodeConnector
from situate.server.http.server import Server, serve
from situate.server.http.settings import Limits, ServerSettings
from situate.server.identity.audit.event import AuditRecord
from situate.server.identity.authorization.attributes import Attributes, forbidden_error
from situate.server.registry.cache import Cache
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM, Caller, Object, Target
from situate.server.resources import BY_KIND
from situate.server.tables import printers
from situate.server.views.views import Views
from situate.store.memory import MemoryStore

NOW_NS = 1_700_000_000_000_000_000
PODS = "/api/v1/namespaces/default/pods"
WITHIN_S = 10.0


def told(story: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(WITHIN_S):
            await story()

    asyncio.run(within())


@dataclass
class Noted:
    """An audit log in a list."""

    records: list[AuditRecord] = field(default_factory=list)
    has_policy: bool = False

    def start_stream(self, record: AuditRecord) -> None:
        self.records.append(record)

    def record(self, record: AuditRecord) -> None:
        self.records.append(record)


@dataclass
class Door:
    """Lets everybody in who does not say `wrong`; and they may do everything but what is `barred`."""

    audit: Noted = field(default_factory=Noted)
    groups: tuple[str, ...] = ("system:authenticated",)
    barred: tuple[str, ...] = ()
    broken: bool = False

    def authenticate(self, peer: bytes | None, authorization: str, agent: str = "") -> Caller:
        if authorization == "Bearer wrong":
            raise StatusError(401, "Unauthorized", "Unauthorized")
        if self.broken:
            raise ZeroDivisionError("a fault of our own")
        return Caller("certified" if peer else "alice", self.groups, agent=agent)

    def impersonate(self, caller: Caller, headers: Iterable[tuple[str, str]]) -> Caller:
        return Caller(dict(headers)["Impersonate-User"], (), agent=caller.agent)

    def authorize(self, caller: Caller, attributes: Attributes) -> None:
        if attributes.verb in self.barred:
            raise forbidden_error(caller, attributes, "")


@dataclass
class Reply:
    code: int
    headers: dict[str, str]
    body: bytes
    warnings: list[str] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        status = self.json
        assert status["kind"] == "Status", status
        assert status["code"] == self.code
        return str(status["message"])


class Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        host: str = "localhost",
    ) -> None:
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"Host": host, "Content-Type": "application/json"} | dict(headers or {})
        if body is not None and "Transfer-Encoding" not in given:
            given["Content-Length"] = str(len(data))
        lines = "".join(f"{key}: {value}\r\n" for key, value in given.items() if value)
        self.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + data)

    async def head(self) -> Reply:
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        pairs = [line.split(": ", 1) for line in lines]
        warnings = [value for key, value in pairs if key == "Warning"]
        return Reply(int(first.split()[1]), {key.lower(): value for key, value in pairs}, b"", warnings)

    async def reply(self, *, to_head: bool = False) -> Reply:
        reply = await self.head()
        if reply.headers.get("transfer-encoding") == "chunked":
            pieces = []
            while piece := await self.chunk():
                pieces.append(piece)
            reply.body = b"".join(pieces)
        elif not to_head:
            reply.body = await self.reader.readexactly(int(reply.headers.get("content-length", "0")))
        return reply

    async def chunk(self) -> bytes:
        size = int(await self.reader.readline(), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def ended(self) -> bool:
        """Whether the server has closed the connection, and sent nothing more."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.writer.close()


@dataclass
class World:
    server: Server
    registry: Registry
    door: Door
    client_tls: ssl.SSLContext | None = None
    aggregation: tuple[AggregatedApis, ApiServerConnector] | None = None

    @asynccontextmanager
    async def line(self, limit: int = 1 << 20) -> AsyncIterator[Line]:
        host, port = self.server.address
        line = Line(*await asyncio.open_connection(host, port, ssl=self.client_tls, limit=limit))
        try:
            yield line
        finally:
            line.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        host: str = "localhost",
    ) -> Reply:
        async with self.line() as line:
            line.request(method, path, body, headers, host)
            return await line.reply(to_head=method == "HEAD")

    async def get(self, path: str, accept: str = "") -> Reply:
        return await self.ask("GET", path, headers={"Accept": accept})


@asynccontextmanager
async def world(
    *,
    limits: Limits | None = None,
    door: Door | None = None,
    tls: ssl.SSLContext | None = None,
    client_tls: ssl.SSLContext | None = None,
    specials: Mapping[tuple[str, str, str], CreateHandler] | None = None,
    logs: LogSource | None = None,
    nodes: NodeConnector | None = None,
    servers: Callable[[Cache], ApiServerConnector] | None = None,
    checks: Mapping[str, list[Check]] | None = None,
    store: MemoryStore | None = None,
) -> AsyncIterator[World]:
    """`store`: one in which there is a namespace already."""
    door = door or Door()
    uids = count(1)
    kept = store or MemoryStore()
    registry = Registry(kept, wall_ns=lambda: NOW_NS, new_uid=lambda: f"uid-{next(uids)}")
    await registry.start()
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    if store is None:
        await registry.create(Target(BY_KIND["v1", "Namespace"], "", "default"), namespace, SYSTEM)
    settings = ServerSettings(port=0, limits=limits or Limits())
    aggregation = (AggregatedApis(registry.cache), servers(registry.cache)) if servers is not None else None
    server = await serve(
        settings,
        registry,
        door,
        printers,
        tls=tls,
        create_handlers=specials,
        views=Views(kept, registry.cache),
        logs=logs,
        nodes=nodes,
        aggregation=aggregation,
        checks=checks,
        wall_ns=lambda: NOW_NS,
        rand=lambda: 0.5,
    )
    try:
        yield World(server, registry, door, client_tls, aggregation)
    finally:
        await server.stop()
        await registry.aclose()
        # A fault of the server is a fault, whatever the test was about.
        assert server.metrics.panics == 0 or door.broken


def pod(name: str = "p", **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def deployment(name: str = "web", replicas: int = 3) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
