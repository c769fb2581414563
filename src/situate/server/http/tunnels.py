"""Tunnels: a client and a kubelet talk to each other through the server, which passes their bytes on as they come.

A request with an Upgrade header is sent to the kubelet. If the kubelet switches protocols, its answer is the client's,
and from then on the server only copies: it knows neither WebSocket nor SPDY.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from aiohttp import web

from situate.server.errors import StatusError
from situate.server.http.connection import Connection
from situate.server.http.responses import Response, head
from situate.server.http.settings import Limits
from situate.server.kubelet.connection import (
    PIECE_BYTES,
    AnswerError,
    Header,
    NodeConnection,
    ask,
    refusal,
)

ANSWER_S: Final = 30.0
"""For a kubelet to begin its answer."""
FAILED: Final = "error dialing backend: the kubelet of node {0} did not answer: {1}"
PASSED_ON: Final = frozenset(("upgrade", "x-stream-protocol-version", "origin", "user-agent"))
"""Headers of an upgrade that the kubelet gets, beside those of WebSocket. Credentials are not among them."""
_WEBSOCKET: Final = "sec-websocket-"


def wants_upgrade(request: web.BaseRequest) -> bool:
    return "upgrade" in request.headers.get("Connection", "").lower() and bool(request.headers.get("Upgrade"))


def upgrade_headers(request: web.BaseRequest) -> list[Header]:
    """What the kubelet gets of the client's headers."""
    found = [("Connection", "Upgrade")]
    for name, value in request.headers.items():
        if name.lower() in PASSED_ON or name.lower().startswith(_WEBSOCKET):
            found.append((name, value))
    return found


class Tunnel:
    """One tunnel. `stop`, and the end of either connection, end it."""

    def __init__(self, request: web.BaseRequest, node: NodeConnection, limits: Limits) -> None:
        self._request = request
        self._node = node
        self._limits = limits
        self._ended = asyncio.Event()
        self._last = 0.0
        """When bytes passed, in either direction."""

    def stop(self) -> None:
        self._ended.set()

    async def run(self, name: str, method: str, target: str, headers: Iterable[Header], lines: str) -> Response:
        """Ask for the upgrade, and copy until either side ends. `lines` are headers for the client. Raises
        StatusError if the kubelet does not switch protocols."""
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await ask(self._node, method, target, headers)
                if answer.code != HTTPStatus.SWITCHING_PROTOCOLS:
                    raise await refusal(self._node.reader, answer)
        except (AnswerError, OSError, TimeoutError) as error:
            text = FAILED.format(name, str(error) or "no answer in time")
            raise StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", text) from None
        given = "".join(f"{key}: {value}\r\n" for key, value in answer.headers if key.lower() != "date")
        response = Response(HTTPStatus.SWITCHING_PROTOCOLS)
        response.written = response.close = True
        connection, transport = self._request.protocol, self._request.transport
        if not isinstance(connection, Connection) or transport is None or transport.is_closing():
            return response
        client = connection.upgrade(PIECE_BYTES)
        transport.write(head(HTTPStatus.SWITCHING_PROTOCOLS, given + lines))
        await self._copy(client, transport, connection)
        return response

    async def _copy(self, client: asyncio.StreamReader, transport: asyncio.Transport, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        self._last = loop.time()
        tasks = [
            loop.create_task(self._upstream(client)),
            loop.create_task(self._downstream(transport, connection)),
            loop.create_task(self._ended.wait()),
            loop.create_task(self._idle(loop.time)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _upstream(self, client: asyncio.StreamReader) -> None:
        loop, writer = asyncio.get_running_loop(), self._node.writer
        with suppress(OSError):
            while data := await client.read(PIECE_BYTES):
                self._last = loop.time()
                writer.write(data)
                await writer.drain()

    async def _downstream(self, transport: asyncio.Transport, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await self._node.reader.read(PIECE_BYTES):
                self._last = loop.time()
                if transport.is_closing():
                    return
                transport.write(data)
                if connection.paused:
                    await connection.drained(self._request.writer, self._limits.tunnel_idle_s)

    async def _idle(self, now: Callable[[], float]) -> None:
        """Return when nothing has passed for too long."""
        while (left := self._last + self._limits.tunnel_idle_s - now()) > 0:
            await asyncio.sleep(left)
