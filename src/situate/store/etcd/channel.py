"""Calls to one endpoint: unary ones and streams, over one HTTP/2 connection that is made again when it is lost."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Any, Final

from msgspec import Struct

from situate.store.etcd import hpack
from situate.store.etcd.http2 import Http2Connection, framed
from situate.store.etcd.protocol import Method
from situate.store.etcd.rpc import EOF, EOS, RpcError, StatusCode, unavailable

CONNECT_S: Final = 2.0
"""The timeout of an attempt to connect."""
SWEEP_S: Final = 0.1
"""How often to look for calls whose time is up."""
KEEPALIVE_S: Final = 6.0
"""Ping a connection that has been silent for so long. etcd closes connections that ping more often than every five
seconds."""
PING_TIMEOUT_S: Final = 3.0
"""A connection whose ping is not answered in this time is closed."""
MAX_KEPT_BLOCKS: Final = 64
_FOR_EVER: Final = float("inf")
_WITHOUT_END: Final = "etcd has answered without a message"

Metadata = tuple[tuple[str, str], ...]


class _Job(Struct, gc=False):
    """A call that waits for the connection."""

    stream: UnaryCall | StreamCall
    block: bytes
    message: bytes | None


class UnaryCall(asyncio.Future[Any]):
    """The answer of a call. Whoever cancels it takes the call back."""

    def __init__(self, channel: Channel, response: Any, deadline: float) -> None:
        super().__init__()
        self._channel = channel
        self._response = response
        self._body: bytes | None = None
        self.connection: Http2Connection | None = None
        self.number = self.room = self.owed = self.whole = 0
        self.partial = bytearray()
        self.deadline = deadline

    def started(self) -> None: ...

    def heard(self, message: bytes) -> None:
        self._body = message

    def held(self) -> int:
        return 0

    def ended(self, error: RpcError | None) -> None:
        if self.done():
            return
        if error is not None:
            self.set_exception(error)
        elif self._body is None:
            self.set_exception(RpcError(StatusCode.INTERNAL, _WITHOUT_END))
        else:
            self.set_result(self._response.FromString(self._body))

    def cancel(self, msg: Any = None) -> bool:
        if self.done():
            return False
        self._channel.forget(self)
        return super().cancel(msg)


class StreamCall:
    """A stream of messages both ways."""

    def __init__(self, channel: Channel, method: Method, deadline: float) -> None:
        self._channel = channel
        self._response = method.response
        self._heard: deque[bytes] = deque()
        self._held = 0
        self._end: RpcError | EOS | None = None
        self._reader: asyncio.Future[None] | None = None
        self._unsent: list[bytes] = []
        self.connection: Http2Connection | None = None
        self.number = self.room = self.owed = self.whole = 0
        self.partial = bytearray()
        self.deadline = deadline

    def started(self) -> None:
        """Send what was written before."""
        unsent, self._unsent = self._unsent, []
        for message in unsent:
            self._send(message)

    async def write(self, request: Any) -> None:
        message = framed(request.SerializeToString())
        if isinstance(self._end, RpcError):
            raise self._end
        self._send(message)

    def _send(self, message: bytes) -> None:
        if self.connection is None or not self.number:
            self._unsent.append(message)
        else:
            self.connection.send(self, message, ends=False)

    async def read(self) -> Any:
        """The next message; EOF: the peer has ended the stream. RpcError if it is broken."""
        while not self._heard:
            if self._end is EOF:
                return EOF
            if isinstance(self._end, RpcError):
                raise self._end
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        message = self._heard.popleft()
        self._held -= len(message)
        if self.connection is not None:
            self.connection.make_room(self)
        return self._response.FromString(message)

    def heard(self, message: bytes) -> None:
        self._heard.append(message)
        self._held += len(message)
        self._wake()

    def held(self) -> int:
        return self._held

    def ended(self, error: RpcError | None) -> None:
        if self._end is None:
            self._end = EOF if error is None else error
            self._wake()

    def cancel(self) -> None:
        """The peer forgets the stream, and a reader fails."""
        if self._end is None:
            self._channel.forget(self)
            self.ended(RpcError(StatusCode.CANCELLED, "the stream was cancelled"))

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class Channel:
    """Create it in the event loop that uses it. It connects with the first call."""

    def __init__(self, endpoint: str, tls: ssl.SSLContext | None = None) -> None:
        self._endpoint = endpoint
        host, _, port = endpoint.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._connection: Http2Connection | None = None
        self._connections: set[Http2Connection] = set()
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: list[_Job] = []
        self._blocks: dict[tuple[str, Metadata], bytes] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    def call(self, method: Method, request: Any, metadata: Metadata, timeout_s: float) -> UnaryCall:
        """RpcError, or CancelledError, if it is not answered: then nobody knows what the peer did."""
        made = UnaryCall(self, method.response, self._loop.time() + timeout_s)
        self._start(_Job(made, self._block(method.path, metadata), request.SerializeToString()))
        return made

    def stream(self, method: Method, metadata: Metadata, timeout_s: float | None = None) -> StreamCall:
        deadline = _FOR_EVER if timeout_s is None else self._loop.time() + timeout_s
        made = StreamCall(self, method, deadline)
        self._start(_Job(made, self._block(method.path, metadata), None))
        return made

    def _block(self, path: str, metadata: Metadata) -> bytes:
        known = self._blocks.get((path, metadata))
        if known is None:
            if len(self._blocks) >= MAX_KEPT_BLOCKS:  # tokens change
                self._blocks.clear()
            headers = (
                (":method", "POST"),
                (":scheme", "http" if self._tls is None else "https"),
                (":path", path),
                (":authority", self._endpoint),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
                *metadata,
            )
            known = self._blocks[path, metadata] = hpack.encode(headers)
        return known

    def _start(self, job: _Job) -> None:
        if self._closed:
            job.stream.ended(unavailable("the channel is closed"))
            return
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(SWEEP_S, self._sweep)
        if self._connection is not None:
            self._send(self._connection, job)
            return
        self._waiting.append(job)
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._connect())

    def _send(self, connection: Http2Connection, job: _Job) -> None:
        job.stream.connection = connection
        connection.start(job.stream, job.block, job.message, ends=job.message is not None)

    async def _connect(self) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                _, made = await self._loop.create_connection(
                    lambda: Http2Connection(self._lost),
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls else None,
                )
        except (OSError, TimeoutError) as error:
            waiting, self._waiting = self._waiting, []
            for job in waiting:
                job.stream.ended(unavailable(f"cannot connect to {self._endpoint}: {str(error) or 'no answer'}"))
        else:
            if self._closed:
                made.abort("the channel is closed")
                return
            self._connections.add(made)
            if not made.replaced:
                self._connection = made
            waiting, self._waiting = self._waiting, []
            for job in waiting:
                self._send(made, job)
        finally:
            self._connecting = None

    def _lost(self, connection: Http2Connection) -> None:
        """Use another one for what comes next."""
        if self._connection is connection:
            self._connection = None

    def forget(self, stream: UnaryCall | StreamCall) -> None:
        """Take a call back."""
        if stream.connection is not None:
            stream.connection.cancel(stream)
        else:
            self._waiting = [job for job in self._waiting if job.stream is not stream]

    def _sweep(self) -> None:
        """End the calls whose time is up, and look after the connections."""
        self._sweeping, now = None, self._loop.time()
        for connection in list(self._connections):
            for stream in [one for one in connection.calls() if one.deadline < now]:
                connection.cancel(stream)
                stream.ended(_late())
            silent_s = now - connection.heard_at
            if connection.replaced and not connection.streams:
                self._connections.discard(connection)
                connection.abort("the connection was replaced")
            elif silent_s > KEEPALIVE_S + PING_TIMEOUT_S and connection.pinged:
                connection.abort("the peer does not answer a ping")
            elif silent_s > KEEPALIVE_S and not connection.pinged:
                connection.ping()
        late = [job for job in self._waiting if job.stream.deadline < now]
        if late:
            self._waiting = [job for job in self._waiting if job not in late]
            for job in late:
                job.stream.ended(_late())
        if (self._connections or self._waiting or self._connecting) and not self._closed:
            self._sweeping = self._loop.call_later(SWEEP_S, self._sweep)

    async def close(self) -> None:
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        for job in self._waiting:
            job.stream.ended(unavailable("the channel is closed"))
        self._waiting.clear()
        for connection in list(self._connections):
            connection.abort("the channel is closed")
        self._connections.clear()


def _late() -> RpcError:
    return RpcError(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
