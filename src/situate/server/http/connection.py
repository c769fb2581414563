"""aiohttp's connection with a deadline for headers, a Status for malformed HTTP, and a callback for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler

from situate.server.errors import StatusError, bad_request
from situate.server.http import heap
from situate.server.http.flow_control import ANONYMOUS
from situate.server.http.responses import status_response

TRIM_AFTER_CONNECTIONS: Final = 128
"""So many new connections leave enough free memory behind to trim the heap. Their handshakes take longer than the trim,
so a client that keeps reconnecting cannot keep the server busy with it."""


class Connection(RequestHandler):
    __slots__ = ("flow", "head_since", "known", "on_lost", "pausing", "peer")

    def __init__(self, manager: web.Server, *, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(manager, loop=loop, **options)
        self.known = False
        """Whether a caller with valid credentials has used it."""
        self.pausing: asyncio.Future[None] | None = None
        self.flow = ""
        """Of the last request."""
        self.on_lost: Callable[[], None] | None = None
        self.head_since = 0.0
        """When a request started whose headers are incomplete; 0: none."""
        self.peer: bytes | bool | None = False
        """The client's certificate (DER), None if it has none; False: not looked up yet."""

    @property
    def paused(self) -> bool:
        """Whether the send buffer is above its limit."""
        return self._paused

    def serves(self, level: str, flow: str) -> None:
        """A request of this flow has come."""
        self.flow = flow
        if level != ANONYMOUS:
            self.known = True

    async def pause(self, seconds: float) -> None:
        """Read no further request for a while: this client was told to come again later."""
        self.pausing = self._loop.create_future()
        timer = self._loop.call_later(seconds, self.go_on)
        try:
            await self.pausing
        finally:
            timer.cancel()
            self.pausing = None

    def go_on(self) -> None:
        """End a pause."""
        if self.pausing is not None and not self.pausing.done():
            self.pausing.set_result(None)

    def certificate(self) -> bytes | None:
        if self.peer is False:
            found = self.transport.get_extra_info("ssl_object") if self.transport is not None else None
            self.peer = found.getpeercert(True) if found is not None else None
        return cast("bytes | None", self.peer)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if isinstance(self._manager, Listener) and self._manager.full:
            self.force_close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            if not self.head_since:
                self.head_since = self._loop.time()
        else:
            self.head_since = 0.0

    def resume_reading(self, resume_parser: bool = True) -> None:
        """aiohttp calls this for every body, even if nothing was paused. Then the parser need not run again."""
        if self._reading_paused or self._buffer_paused:
            super().resume_reading(resume_parser)

    def connection_lost(self, exc: BaseException | None) -> None:
        tell, self.on_lost = self.on_lost, None
        super().connection_lost(exc)
        self.go_on()
        if tell is not None:
            tell()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The response to a request that could not be parsed. Our handler answers everything else."""
        if isinstance(exc, LineTooLong):
            text = "the request line or a header of the request is too large"
            error = StatusError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "RequestHeaderFieldsTooLarge", text)
        else:
            first = (message or "").strip().splitlines()[:1]
            error = bad_request(f"the request is not HTTP/1.1: {first[0].rstrip(':') if first else 'malformed'}")
        if request.writer.output_size > 0:
            raise ConnectionError("a response was started already")
        response = status_response(error)
        response.close = True
        return cast(web.StreamResponse, response)


class Listener(web.Server):
    """Accepts connections up to a limit, closes those whose headers never end, and trims the heap after a rush."""

    def __init__(self, handler: Any, *, head_s: float, most: int, **options: Any) -> None:
        super().__init__(handler, **options)
        self._head_s = head_s
        self._most = most
        self._came = self._came_before = 0
        """Connections since the last sweep, and in the interval before."""

    @property
    def full(self) -> bool:
        return len(self._connections) > self._most

    def __call__(self) -> RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._came += 1

    def end_pauses(self) -> None:
        for connection in self.connections:
            if isinstance(connection, Connection):
                connection.go_on()

    def sweep(self, now: float) -> None:
        for connection in self.connections:
            began = connection.head_since if isinstance(connection, Connection) else 0.0
            if began and now - began > self._head_s:
                connection.force_close()
        if self._came + self._came_before >= TRIM_AFTER_CONNECTIONS:  # earlier ones may have started to watch only now
            heap.trim_heap()
        self._came_before, self._came = self._came, 0
