"""One HTTP/2 connection (RFC 9113) that carries gRPC calls. Knows nothing of etcd.

What is sent within one turn of the event loop is one write to the socket. Bytes that the peer has no room for wait
here. The reader of a stream decides how much of it the peer may send.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Protocol, cast
from urllib.parse import unquote

from situate.store.etcd import hpack
from situate.store.etcd.rpc import RpcError, StatusCode, status_of, unavailable

STREAM_WINDOW: Final = 4 << 20
"""How much of one stream the peer may send before we have made room again."""
CONNECTION_WINDOW: Final = 64 << 20
MAX_NUMBER: Final = 1 << 30
"""Streams are numbered up to twice this; a connection that comes here is replaced."""
MAX_KEPT_BLOCKS: Final = 256
MAX_FRAME_BYTES: Final = 1 << 14
"""HTTP/2's default, which we leave as it is."""
MAX_BLOCK_BYTES: Final = 1 << 20

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _AWAY, _WINDOW, _MORE_HEADERS = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _WITH_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_TABLE_SIZE, _PUSH, _MAX_STREAMS, _INITIAL_WINDOW, _MAX_FRAME = 1, 2, 3, 4, 5
_CANCEL: Final = 8
_DEFAULT_WINDOW: Final = 65_535
_FRAME: Final = struct.Struct(">IBI")  # 24 bits of length and 8 of the type are packed as one number
_HEAD: Final = 9
_NUMBER: Final = struct.Struct(">I")
_SETTING: Final = struct.Struct(">HI")
_MESSAGE_HEAD: Final = 5
_NO_STATUS: Final = "the peer has ended the stream without a status"


class Stream(Protocol):
    """One call, as the connection sees it."""

    number: int
    room: int
    """How many bytes the peer takes."""
    partial: bytearray
    """The beginning of a message."""
    whole: int
    """How long it will be, or its head."""
    owed: int
    """Bytes received for which we have not made room again."""
    deadline: float

    def started(self) -> None:
        """It has a number now."""

    def heard(self, message: bytes) -> None: ...

    def held(self) -> int:
        """Bytes heard that nobody has read yet."""

    def ended(self, error: RpcError | None) -> None: ...


class Http2Connection(asyncio.Protocol):
    """`lost` is called once, when it has ended or should be replaced."""

    def __init__(self, lost: Callable[[Http2Connection], None]) -> None:
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.streams: dict[int, Stream] = {}
        self._next = 1
        self._rest = b""
        self._out: list[bytes] = []
        self._blocked: deque[tuple[Stream, bytes, bool]] = deque()
        self._waiting: deque[tuple[Stream, bytes, bytes, bool]] = deque()
        """Calls beyond the number that the peer takes at once."""
        self._most_streams = 1 << 31
        self._room = _DEFAULT_WINDOW
        self._stream_room = _DEFAULT_WINDOW
        self._frame_bytes = MAX_FRAME_BYTES
        self._owed = 0
        self._block: tuple[int, int, bytes] | None = None
        self._blocks: dict[bytes, tuple[StatusCode | None, str]] = {}
        self.replaced = False
        self.heard_at = self._loop.time()
        self.pinged = False

    # -- the socket ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        settings = ((_TABLE_SIZE, 0), (_PUSH, 0), (_INITIAL_WINDOW, STREAM_WINDOW))
        body = b"".join(_SETTING.pack(*setting) for setting in settings)
        self._write(_PREFACE + _frame(_SETTINGS, 0, 0, body))
        self._make_room(0, CONNECTION_WINDOW - _DEFAULT_WINDOW)

    def connection_lost(self, error: Exception | None) -> None:
        self._end(f"the connection was lost: {error}" if error else "the connection was closed")

    def abort(self, why: str) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._end(why)

    def _end(self, why: str) -> None:
        self._replace()
        self._transport = None
        streams = self.calls()
        self.streams.clear()
        self._waiting.clear()
        self._blocked.clear()
        for stream in streams:
            stream.ended(unavailable(why))

    def _replace(self) -> None:
        if not self.replaced:
            self.replaced = True
            self._lost(self)

    def calls(self) -> list[Stream]:
        """All that have not ended, also those that wait for their turn."""
        return [*self.streams.values(), *(stream for stream, *_ in self._waiting)]

    def _write(self, data: bytes) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(data)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None and out:
            self._transport.write(b"".join(out))

    def data_received(self, data: bytes) -> None:
        self.heard_at, self.pinged = self._loop.time(), False
        if self._rest:
            data = self._rest + data
        at, size = 0, len(data)
        try:
            while size - at >= _HEAD:
                packed, flags, number = _FRAME.unpack_from(data, at)
                length = packed >> 8
                end = at + _HEAD + length
                if end > size:
                    if length > MAX_FRAME_BYTES:
                        raise hpack.HeaderError(f"a frame of {length} bytes")
                    break
                self._take(packed & 0xFF, flags, number & 0x7FFFFFFF, data[at + _HEAD : end])
                at = end
        except (hpack.HeaderError, struct.error, IndexError, ValueError, LookupError) as error:
            self.abort(f"this is not HTTP/2: {error}")
            return
        self._rest = data[at:]

    # -- sending -------------------------------------------------------------------------------------------------

    def start(self, stream: Stream, block: bytes, message: bytes | None, ends: bool) -> None:
        """Open a stream with these headers, and a message if there is one."""
        body = b"" if message is None else framed(message)
        if len(self.streams) >= self._most_streams:
            self._waiting.append((stream, block, body, ends))
        else:
            self._start(stream, block, body, ends)

    def _start(self, stream: Stream, block: bytes, body: bytes, ends: bool) -> None:
        number = self._next
        self._next += 2
        if number > MAX_NUMBER:
            self._replace()
        stream.number, stream.room = number, self._stream_room
        self.streams[number] = stream
        self._write(_FRAME.pack(len(block) << 8 | _HEADERS, _END_HEADERS, number) + block)
        if body or ends:
            self.send(stream, body, ends)
        stream.started()

    def send(self, stream: Stream, body: bytes, ends: bool) -> None:
        size = len(body)
        if not self._blocked and size <= self._room and size <= stream.room and size <= self._frame_bytes:
            self._room -= size
            stream.room -= size
            self._write(_FRAME.pack(size << 8, _END_STREAM if ends else 0, stream.number) + body)
        else:
            self._blocked.append((stream, body, ends))
            self._send_blocked()

    def _send_blocked(self) -> None:
        """As much as the peer has room for, in order within a stream."""
        left: deque[tuple[Stream, bytes, bool]] = deque()
        stuck: set[int] = set()
        while self._blocked:
            stream, body, ends = self._blocked.popleft()
            while stream.number not in stuck:
                size = min(len(body), self._room, stream.room, self._frame_bytes)
                if size <= 0 and body:
                    break
                part, body = body[:size], body[size:]
                self._room -= size
                stream.room -= size
                self._write(_FRAME.pack(size << 8, _END_STREAM if ends and not body else 0, stream.number) + part)
                if not body:
                    break
            else:
                left.append((stream, body, ends))
                continue
            if body:
                stuck.add(stream.number)
                left.append((stream, body, ends))
        self._blocked = left

    def cancel(self, stream: Stream) -> None:
        """Tell the peer to forget a stream, without notifying the stream itself."""
        if self.streams.pop(stream.number, None) is not None:
            self._write(_frame(_RESET, 0, stream.number, _NUMBER.pack(_CANCEL)))
            self._gone(stream)
        else:
            self._waiting = deque(one for one in self._waiting if one[0] is not stream)

    def ping(self) -> None:
        self.pinged = True
        self._write(_frame(_PING, 0, 0, bytes(8)))

    def make_room(self, stream: Stream) -> None:
        """Let the peer send more of a stream of which enough was read."""
        free = stream.owed - stream.held()
        if free >= STREAM_WINDOW // 2 and stream.number in self.streams:
            stream.owed -= free
            self._make_room(stream.number, free)

    def _make_room(self, number: int, size: int) -> None:
        self._write(_frame(_WINDOW, 0, number, _NUMBER.pack(size)))

    # -- receiving -----------------------------------------------------------------------------------------------

    def _take(self, kind: int, flags: int, number: int, body: bytes) -> None:
        if self._block is not None and kind != _MORE_HEADERS:
            raise ValueError("headers are interrupted")
        if kind == _DATA:
            self._take_data(flags, number, body)
        elif kind == _HEADERS:
            if flags & _PADDED:
                body = body[1 : len(body) - body[0]]
            if flags & _WITH_PRIORITY:
                body = body[5:]
            self._take_headers(flags, number, body)
        elif kind == _MORE_HEADERS:
            if self._block is None:
                raise ValueError("headers continue that did not begin")
            first_flags, number, first = self._block
            self._block = None
            self._take_headers(first_flags & ~_END_HEADERS | flags & _END_HEADERS, number, first + body)
        else:
            self._take_control(kind, flags, number, body)

    def _take_control(self, kind: int, flags: int, number: int, body: bytes) -> None:
        if kind == _WINDOW:
            more = _NUMBER.unpack(body)[0] & 0x7FFFFFFF
            if number == 0:
                self._room += more
            elif number in self.streams:
                self.streams[number].room += more
            if self._blocked:
                self._send_blocked()
        elif kind == _SETTINGS and not flags & _ACK:
            self._take_settings(body)
        elif kind == _PING and not flags & _ACK:
            self._write(_frame(_PING, _ACK, 0, body))
        elif kind == _RESET:
            self._ended(number, unavailable(f"the peer has reset the stream: {_NUMBER.unpack(body)[0]}"))
        elif kind == _AWAY:
            last = _NUMBER.unpack_from(body)[0] & 0x7FFFFFFF
            self._replace()
            for unheard in [one for one in self.streams if one > last]:
                self._ended(unheard, unavailable("the peer goes away"))

    def _take_settings(self, body: bytes) -> None:
        for setting, value in _SETTING.iter_unpack(body):
            if setting == _INITIAL_WINDOW:
                for stream in self.streams.values():
                    stream.room += value - self._stream_room
                self._stream_room = value
            elif setting == _MAX_FRAME:
                self._frame_bytes = value
            elif setting == _MAX_STREAMS:
                self._most_streams = value
        self._write(_frame(_SETTINGS, _ACK, 0, b""))
        self._send_blocked()

    def _take_data(self, flags: int, number: int, body: bytes) -> None:
        self._owed += len(body)
        if self._owed >= CONNECTION_WINDOW // 2:
            self._make_room(0, self._owed)
            self._owed = 0
        stream = self.streams.get(number)
        if stream is None:
            return
        stream.owed += len(body)
        if flags & _PADDED:
            body = body[1 : len(body) - body[0]]
        if stream.partial:
            stream.partial += body
            if len(stream.partial) >= stream.whole:
                body, stream.partial = bytes(stream.partial), bytearray()
                _take_messages(stream, body)
        else:
            _take_messages(stream, body)
        if flags & _END_STREAM:
            self._ended(number, RpcError(StatusCode.INTERNAL, _NO_STATUS))
        elif stream.owed >= STREAM_WINDOW // 2:
            self.make_room(stream)

    def _take_headers(self, flags: int, number: int, block: bytes) -> None:
        if not flags & _END_HEADERS:
            if len(block) > MAX_BLOCK_BYTES:
                raise ValueError("too many headers")
            self._block = flags, number, block
            return
        known = self._blocks.get(block)
        if known is None:
            if len(self._blocks) >= MAX_KEPT_BLOCKS:
                self._blocks.clear()
            known = self._blocks[block] = _status(hpack.decode(block))
        code, details = known
        if code is StatusCode.OK:
            self._ended(number, None)
        elif code is not None:
            self._ended(number, RpcError(code, details))
        elif flags & _END_STREAM:
            self._ended(number, RpcError(StatusCode.INTERNAL, _NO_STATUS))

    def _ended(self, number: int, error: RpcError | None) -> None:
        stream = self.streams.pop(number, None)
        if stream is not None:
            self._gone(stream)
            stream.ended(error)

    def _gone(self, stream: Stream) -> None:
        """What is left of its request is not sent; the next call may begin."""
        if self._blocked:
            self._blocked = deque(one for one in self._blocked if one[0] is not stream)
        while self._waiting and len(self.streams) < self._most_streams:
            self._start(*self._waiting.popleft())


def framed(message: bytes) -> bytes:
    """A message of gRPC, not compressed."""
    return b"\0" + _NUMBER.pack(len(message)) + message


def _frame(kind: int, flags: int, number: int, body: bytes) -> bytes:
    return _FRAME.pack(len(body) << 8 | kind, flags, number) + body


def _take_messages(stream: Stream, body: bytes) -> None:
    at, size = 0, len(body)
    while size - at >= _MESSAGE_HEAD:
        end = at + _MESSAGE_HEAD + _NUMBER.unpack_from(body, at + 1)[0]
        if end > size:
            stream.whole = end - at
            stream.partial += body[at:]
            return
        if body[at]:
            raise ValueError("a compressed message")
        stream.heard(body[at + _MESSAGE_HEAD : end])
        at = end
    if at < size:
        stream.whole = _MESSAGE_HEAD
        stream.partial += body[at:]


def _status(headers: Mapping[str, str]) -> tuple[StatusCode | None, str]:
    """The status of a call; None: these are the first headers of a response."""
    if "grpc-status" in headers:
        return status_of(headers["grpc-status"]), unquote(headers.get("grpc-message", ""))
    if headers.get(":status", "200") != "200":
        return StatusCode.UNAVAILABLE, f"HTTP status {headers[':status']}"
    return None, ""
