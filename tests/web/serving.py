"""A control plane and its page in this process, and browsers without a screen."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from cli.control_plane.running import Client, running
from situate.cli.cluster.connection import KUBECONFIG
from situate.cli.commands.web.desk import CommandDesk
from situate.cli.control_plane.settings import ControlPlaneSettings
from situate.cli.input.devices import also_devices
from situate.kube.kinds import ALL_KINDS
from situate.kube.kubeconfig import find_access
from situate.web.grants import GrantFolder
from situate.web.limits import LOGIN_S
from situate.web.server import PageServer, PageSettings

WITHIN_S = 30.0


class Visitor:
    """A browser: it keeps its cookie, and names its origin as browsers do."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session
        self.origin = url

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        async with self.session.get(self.url + path, headers=headers, allow_redirects=False) as response:
            return response.status, await _body(response)

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        sent = {"Origin": self.origin, **headers}
        async with self.session.post(self.url + path, json=body, headers=sent) as response:
            return response.status, await _body(response)

    async def events(self, view: str, names: tuple[str, ...] = ()) -> AsyncGenerator[tuple[str, Any], None]:
        """The events of a stream, or those of these names."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=WITHIN_S)
        async with self.session.get(f"{self.url}/stream/{view}", timeout=timeout) as response:
            assert response.status == 200, await response.text()
            name = ""
            async for raw in response.content:
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: ") and (not names or name in names):
                    yield name, msgspec.json.decode(line.removeprefix("data: "))


async def _body(response: aiohttp.ClientResponse) -> Any:
    return await response.json() if response.content_type == "application/json" else await response.text()


@contextlib.asynccontextmanager
async def visiting(url: str) -> AsyncIterator[Visitor]:
    jar = aiohttp.CookieJar(unsafe=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=tls)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:
        yield Visitor(url, session)


@dataclass(slots=True)
class PageWorld:
    api: Client
    page: PageServer
    grants: GrantFolder
    url: str
    settings: ControlPlaneSettings

    def visitor(self) -> contextlib.AbstractAsyncContextManager[Visitor]:
        return visiting(self.url)

    @contextlib.asynccontextmanager
    async def person(self, user: str = "", namespace: str = "") -> AsyncIterator[Visitor]:
        """Somebody who is logged in: the administrator, unless a user is named."""
        async with self.visitor() as visitor:
            code, found = await visitor.post("/api/login", {"link": self.grants.create(user, (), namespace)})
            assert code == 200, found
            yield visitor


@contextlib.asynccontextmanager
async def page_world(
    directory: Path, *, nodes: int = 3, login_s: float = LOGIN_S, zones: int = 3
) -> AsyncIterator[PageWorld]:
    settings = ControlPlaneSettings(directory=directory, nodes=nodes, zones=zones)
    async with running(settings) as api:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(directory / "pki" / "server.pem")
        listening = socket.create_server(("127.0.0.1", 0))
        grants = GrantFolder(directory / "page")
        own = find_access(str(directory / KUBECONFIG), None, None)
        made = PageSettings(
            own=own,
            load_desk=CommandDesk,
            kinds=also_devices(ALL_KINDS),
            grants=grants,
            tls=tls,
            cluster="test",
            login_s=login_s,
        )
        async with PageServer(made, listening) as page:
            url = f"https://127.0.0.1:{listening.getsockname()[1]}"
            yield PageWorld(api, page, grants, url, settings)


async def first(visitor: Visitor, view: str, name: str, holds: Any = lambda _: True) -> Any:
    """The first event of this name for which something holds."""
    async with asyncio.timeout(WITHIN_S), contextlib.aclosing(visitor.events(view, (name,))) as events:
        async for _, value in events:
            if holds(value):
                return value
    raise AssertionError(f"the stream of {view} ended")
