"""aiohttp's connection with a deadline for headers, a Status for malformed HTTP, and a callback for its end."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader as StreamBuffer
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Final, Protocol, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from situate.server.errors import StatusError, bad_request
from situate.server.http.flow_control import ANONYMOUS, EXEMPT, FlowControl
from situate.server.http.responses import status_response
from situate.server.http.settings import Limits

MAKE_ROOM: Final = 50
"""A full server looks for this part of its limit at once, because it has to look at all connections to find idle ones.
It closes one for each that comes: many at once would delay everybody."""
ROOM_IDLE_S: Final = 2.0
"""How long a connection of a known caller is idle before it may be closed for another one."""


LEAST_UNREAD: Final = 64 << 10
"""What counts as unread of a connection that waits for its client, since there are buffers that cannot be seen."""


class Connection(RequestHandler):
    __slots__ = (
        "address", "content", "flow", "head_since", "held", "known", "level", "on_lost",
        "pause_since", "pausing", "peer", "tunnel",
    )  # fmt: skip

    def __init__(
        self, manager: web.Server, *, loop: asyncio.AbstractEventLoop, address: str = "", **options: Any
    ) -> None:
        super().__init__(manager, loop=loop, **options)
        self.address = address
        """The client's."""
        self.content: StreamReader | None = None
        """The body of the last request."""
        self.held = 0
        """Bytes of heads that are incomplete, or of requests that came before the last one was answered."""
        self.known = False
        """Whether a caller with valid credentials has used it."""
        self.pausing: asyncio.Future[None] | None = None
        self.pause_since = 0.0
        self.level = ANONYMOUS
        """Of the last request."""
        self.flow = ""
        """Of the last request."""
        self.on_lost: Callable[[], None] | None = None
        self.head_since = 0.0
        """When a request started whose headers are incomplete; 0: none."""
        self.peer: bytes | bool | None = False
        """The client's certificate (DER), None if it has none; False: not looked up yet."""
        self.tunnel: StreamBuffer | None = None
        """Gets the client's bytes once they are no longer HTTP."""

    @property
    def paused(self) -> bool:
        """Whether the send buffer is above its limit."""
        return self._paused

    def upgrade(self, size: int) -> StreamBuffer:
        """Stop reading HTTP: from now on the client's bytes go into the buffer that is returned, and reading pauses
        while it holds more than twice this size."""
        self.tunnel = buffer = StreamBuffer(limit=size, loop=self._loop)
        if self.transport is not None:
            buffer.set_transport(self.transport)
        early, self._message_tail = self._message_tail, b""
        if early:
            buffer.feed_data(early)
        return buffer

    def serves(self, level: str, flow: str) -> None:
        """Note that a request of this flow has arrived."""
        self.flow = flow
        self.level = level
        if level != ANONYMOUS:
            self.known = True

    async def take_turn(self) -> None:
        """Before a piece of a large response: let the others send, too."""
        if isinstance(self._manager, Listener):
            await self._manager.flows.take_turn(self.level, self.flow)
        await asyncio.sleep(0)

    async def drained(self, writer: AbstractStreamWriter, seconds: float) -> None:
        """Wait until the client has read most of what was sent. Raises ConnectionError if it does not in time, or has
        too many other connections from which it does not read."""
        listener, transport, flow = self._manager, self.transport, self.flow
        if not isinstance(listener, Listener) or transport is None:
            return
        size = max(transport.get_write_buffer_size(), LEAST_UNREAD)
        counted = self.level != EXEMPT
        if counted and not listener.flows.hold_unread(flow, size):
            self.abort()
            raise ConnectionAbortedError("too many bytes sent to this user are unread")
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await writer.drain()
        except TimeoutError:
            self.abort()
            raise ConnectionAbortedError("the client does not read") from None
        finally:
            if counted:
                listener.flows.release_unread(flow, size)

    async def pause(self, seconds: float) -> None:
        """Read no further request for a while: the last one was refused with Retry-After."""
        self.pausing, self.pause_since = self._loop.create_future(), self._loop.time()
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
        cast(asyncio.Transport, transport).set_write_buffer_limits(high=LEAST_UNREAD)

    @property
    def idle_since(self) -> float | None:
        """When it began to wait for a request; None: it has one, or a part of one."""
        waiter = self._waiter
        if waiter is None or waiter.done() or self.head_since:
            return None
        return self._next_keepalive_close_time - self._keepalive_timeout

    @property
    def waiting_since(self) -> float | None:
        """When it began to wait for a request or for the rest of a head, or to pause; None: it serves a request."""
        if self.pausing is not None:
            return self.pause_since
        return self.head_since or self.idle_since

    def gives_way(self, now: float) -> bool:
        """Whether it may be closed for another one."""
        since = self.waiting_since
        return since is not None and (not self.known or now - since > ROOM_IDLE_S)

    def abort(self) -> None:
        """Close the connection without waiting for the client."""
        # Abort first: Python 3.11 forgets what to abort of a TLS transport that was closed twice.
        if self.transport is not None:
            self.transport.abort()
        self.force_close()

    def _handle_request(
        self, request: web.BaseRequest, start_time: float | None, request_handler: Any
    ) -> Coroutine[Any, Any, tuple[web.StreamResponse, bool]]:
        self.content = request.content
        return super()._handle_request(request, start_time, request_handler)

    def data_received(self, data: bytes) -> None:
        if self.tunnel is not None:
            if not self.tunnel.at_eof():
                self.tunnel.feed_data(data)
            return
        # Also while the response is sent, or the connection pauses.
        ahead = self._waiter is None and self.content is not None and self.content.is_eof()
        super().data_received(data)
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            if not self.head_since:
                self.head_since = self._loop.time()
                self.let_go()  # earlier input was read
            self._hold(len(data))
        else:
            self.head_since = 0.0
            if ahead:
                self._hold(len(data))
            elif self.held:  # the head is complete, and nothing came ahead of its turn
                self.let_go()

    def _hold(self, size: int) -> None:
        listener = self._manager
        if not isinstance(listener, Listener):
            return
        self.held += size
        listener.held += size
        if listener.held > listener.limits.heads_bytes:
            self.abort()
        elif self.held > listener.limits.head_bytes:
            waiter = self._waiter
            if waiter is None:  # the next requests are read when this one is answered
                if not self._buffer_paused:
                    self._pause_reading_for_buffer()
                return
            self._messages.append((_ErrInfo(status=431, exc=LineTooLong("", 0), message=""), EMPTY_PAYLOAD))
            if not waiter.done():
                waiter.set_result(None)

    def let_go(self) -> None:
        """Buffered input was read or dropped."""
        if self.held and isinstance(self._manager, Listener):
            self._manager.held -= self.held
        self.held = 0

    def resume_reading(self, resume_parser: bool = True) -> None:
        """aiohttp calls this for every body, even if nothing was paused. Then the parser need not run again."""
        if self._reading_paused or self._buffer_paused:
            super().resume_reading(resume_parser)

    def connection_lost(self, exc: BaseException | None) -> None:
        tell, self.on_lost = self.on_lost, None
        if self.tunnel is not None:
            self.tunnel.feed_eof()
        self.let_go()
        if isinstance(self._manager, Listener):
            self._manager.left(self)
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


class AcceptedClient(Protocol):
    """Somebody whose handshake is not finished."""

    address: str
    """"" once it no longer counts, or its connection does."""

    def abort(self) -> None:
        """Close it, and tell the listener."""


class Listener(web.Server):
    """The open connections: as many as the limits allow. It closes those that are idle for too long, or whose headers
    never end."""

    def __init__(self, handler: Any, limits: Limits, flows: FlowControl, **options: Any) -> None:
        super().__init__(handler, **options)
        self.flows: Final = flows
        self.limits: Final = limits
        self.held = 0
        """The sum of `Connection.held`."""
        self.refused = 0
        """Connections closed because a limit was reached."""
        self.open = 0
        """Connections, also those in their handshake."""
        self._by_address: dict[str, int] = {}
        self._opening: OrderedDict[AcceptedClient, str] = OrderedDict()
        """Those whose handshake is not finished, the oldest first, with their addresses."""
        self._opening_from: dict[str, OrderedDict[AcceptedClient, None]] = {}
        """The same by address."""
        self._idle: dict[str, deque[Connection]] = {}
        """What `_make_room` may close, by address or ("") from any, as found by the last search; empty: nothing, and it
        does not search again before the next sweep."""

    # -- coming and going --------------------------------------------------------------------------------------------

    def admit(self, client: AcceptedClient) -> bool:
        """Count a client that was accepted. False: there is no room."""
        address = client.address
        limits, count = self.limits, self._by_address.get(address, 0)
        if limits.connections_per_address and count >= limits.connections_per_address:
            room = self._make_room(address, limits.connections_per_address)
        else:
            room = self.open < limits.connections or self._make_room("", limits.connections)
        if not room:
            self.refused += 1
            return False
        self.open += 1
        self._by_address[address] = self._by_address.get(address, 0) + 1
        self._opening[client] = address
        self._opening_from.setdefault(address, OrderedDict())[client] = None
        return True

    def connection(self, client: AcceptedClient) -> Connection:
        """The connection of a client, which counts from now on in its place."""
        address, client.address = client.address, ""
        return Connection(self, loop=self._loop, address=address, **self._kwargs)

    def opened(self, client: AcceptedClient) -> None:
        """The handshake has ended, successfully or not. May be called twice."""
        address = self._opening.pop(client, None)
        if address is not None:
            same = self._opening_from[address]
            del same[client]
            if not same:
                del self._opening_from[address]

    def left(self, gone: AcceptedClient | Connection) -> None:
        """The client or its connection is gone. May be called twice."""
        address, gone.address = gone.address, ""
        if not address:
            return
        self.open -= 1
        count = self._by_address.pop(address) - 1
        if count:
            self._by_address[address] = count

    def _make_room(self, address: str, limit: int) -> bool:
        """Close a connection, from this address or ("") from any: the oldest in a handshake, or else one that waits,
        preferably without a known caller and for long. Whether there was one."""
        opening = self._opening_from.get(address) if address else self._opening
        if opening:
            next(iter(opening)).abort()
            return True
        now = self._loop.time()
        while True:
            found = self._idle.get(address)
            if found is None:
                found = self._idle[address] = self._search(address, now, max(1, limit // MAKE_ROOM))
            if not found:
                return False
            connection = found.popleft()
            if not found:
                del self._idle[address]  # search again for the next one
            if connection.address and connection.gives_way(now):
                self.left(connection)
                connection.abort()
                return True

    def _search(self, address: str, now: float, most: int) -> deque[Connection]:
        idle: list[tuple[bool, float, int, Connection]] = []
        for number, one in enumerate(self._connections):
            if (
                isinstance(one, Connection)
                and (one.address == address if address else one.address)
                and one.gives_way(now)
            ):
                idle.append((one.known, one.waiting_since or 0.0, number, one))
        idle.sort()
        return deque(one for _, _, _, one in idle[:most])

    def __call__(self) -> RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)

    # -- time --------------------------------------------------------------------------------------------------------

    def end_pauses(self) -> None:
        for connection in self.connections:
            if isinstance(connection, Connection):
                connection.go_on()

    def sweep(self, now: float) -> None:
        limits = self.limits
        self._idle.clear()
        for connection in self.connections:
            if not isinstance(connection, Connection):
                continue
            if connection.head_since:
                if now - connection.head_since > limits.head_s:
                    connection.abort()
                continue
            since = connection.idle_since
            if since is not None:
                connection.let_go()
                if not connection.known and now - since > limits.unknown_idle_s:
                    connection.abort()
