"""Responses as bytes: headers, bodies, Statuses, Warning headers.

A response is one write to the connection. aiohttp's own response classes cost more than the rest of a read.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from http import HTTPStatus
from time import monotonic, time
from typing import Any, Final, Protocol, cast

import msgspec
from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from situate.server.errors import StatusError

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
JOIN_BYTES: Final = 64 << 10
"""Headers and body up to this size are one write."""
SLOW_CLIENT_S: Final = 30.0
"""For a client to read a piece of a large response."""
RESPONSE_S: Final = 60.0
"""For a client to read all of a response that is no stream."""
WARNING_CHARS: Final = 256
WARNINGS_BYTES: Final = 4096
GZIP_LEVEL: Final = 1
PACKED: Final = "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"

encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode
_PHRASES: Final = {one.value: one.phrase for one in HTTPStatus}
_NO_BODY: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class _Clock:
    """The Date header, formatted once a second."""

    second = 0
    line = ""


def _date() -> str:
    now = int(time())
    if now != _Clock.second:
        _Clock.second = now
        _Clock.line = f"Date: {formatdate(now, usegmt=True)}\r\n"
    return _Clock.line


def head(code: int, lines: str) -> bytes:
    """The status line and the headers; `lines` are all headers but the date."""
    return f"HTTP/1.1 {code} {_PHRASES.get(code, '')}\r\n{lines}{_date()}\r\n".encode("latin-1", "replace")


class Unread(Protocol):
    """A connection whose client may be slow."""

    @property
    def paused(self) -> bool:
        """Whether there is too much that the client has not read."""

    async def drained(self, writer: AbstractStreamWriter, seconds: float) -> None:
        """Wait until the client has read most of it. Raises ConnectionError if it does not."""

    async def take_turn(self) -> None:
        """Let others send, too."""

    async def pause(self, seconds: float) -> None:
        """Read no further request for a while."""


async def _drained(request: web.BaseRequest, transport: asyncio.Transport, deadline: float) -> None:
    """Wait until the client has read most of what was sent. A client that reads nothing for long is disconnected."""
    connection = cast(Unread, request.protocol)
    if connection.paused:
        await connection.drained(request.writer, min(SLOW_CLIENT_S, deadline - monotonic()))
    if transport.is_closing():
        raise ConnectionResetError("the client is gone")


class Response:
    """The response to a request. aiohttp calls `prepare` and `write_eof`."""

    __slots__ = (
        "body",
        "close",
        "code",
        "content_type",
        "headers",
        "keep_alive",
        "on_sent",
        "packer",
        "pause_s",
        "reason",
        "written",
    )

    def __init__(
        self,
        code: int,
        body: bytes | Sequence[bytes] | Iterator[bytes] = b"",
        content_type: str = JSON,
        headers: str = "",
    ) -> None:
        """An iterator is sent piece by piece, as the client reads; it must not raise."""
        self.code = code
        self.body = body
        self.content_type = content_type
        self.headers = headers
        """Header lines, each with its CRLF."""
        self.reason = ""
        self.close = False
        self.written = False
        """A stream has sent it already."""
        self.keep_alive = True
        self.packer: zlib._Compress | None = None
        """Compresses the pieces of an iterator."""
        self.on_sent: Callable[[], None] | None = None
        """To call when the response has been sent, or cannot be."""
        self.pause_s = 0.0
        """How long to read nothing more from the connection, after a refusal with Retry-After."""

    @property
    def is_large(self) -> bool:
        # Test for the plain types first: isinstance(…, Iterator) takes longer than sending the response.
        return not isinstance(self.body, (bytes, tuple)) and isinstance(self.body, Iterator)

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send the response."""
        try:
            await self._send(request)
        finally:
            if self.on_sent is not None:
                self.on_sent()

    async def _send(self, request: web.BaseRequest) -> None:
        self.keep_alive = request.keep_alive and not self.close
        if self.written:
            return
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        if not isinstance(self.body, (bytes, tuple)) and isinstance(self.body, Iterator):
            await self._send_flow(request, transport, self.body)
            return
        pieces = (self.body,) if isinstance(self.body, bytes) else self.body
        size = sum(map(len, pieces))
        length = f"Content-Length: {size}\r\n" if self.code not in _NO_BODY else ""
        kind = f"Content-Type: {self.content_type}\r\n" if size else ""
        closing = "" if self.keep_alive else "Connection: close\r\n"
        caching = "" if "Cache-Control" in self.headers else "Cache-Control: no-cache, private\r\n"
        first = head(self.code, f"{kind}{length}{caching}{closing}{self.headers}")
        if request.method == "HEAD":
            pieces, size = (), 0
        self.written = True
        request.writer.output_size += len(first) + size
        if size <= JOIN_BYTES:
            transport.write(b"".join((first, *pieces)))
            connection = cast(Unread, request.protocol)
            if self.pause_s:
                await connection.pause(self.pause_s)
            # A client that sends requests and reads no responses.
            if connection.paused:
                await _drained(request, transport, monotonic() + SLOW_CLIENT_S)
            return
        deadline = monotonic() + RESPONSE_S
        transport.write(first)
        for piece in pieces:
            # In slices, because the transport keeps what the client does not read.
            for start in range(0, len(piece), JOIN_BYTES):
                transport.write(piece[start : start + JOIN_BYTES])
                await _drained(request, transport, deadline)
                await cast(Unread, request.protocol).take_turn()

    async def _send_flow(self, request: web.BaseRequest, transport: asyncio.Transport, pieces: Iterator[bytes]) -> None:
        """In chunks, since the length is not known; to a client that knows no chunks, until the connection ends."""
        chunked = request.version >= HttpVersion11
        self.keep_alive &= chunked
        framing = "Transfer-Encoding: chunked\r\n" if chunked else ""
        closing = "" if self.keep_alive else "Connection: close\r\n"
        self.written = True
        kind = f"Content-Type: {self.content_type}\r\n{framing}"
        first = head(self.code, f"{kind}Cache-Control: no-cache, private\r\n{closing}{self.headers}")
        request.writer.output_size += len(first)
        deadline, packer = monotonic() + RESPONSE_S, self.packer
        transport.write(first)
        for each in pieces:
            piece = each if packer is None else await asyncio.to_thread(packer.compress, each)
            await self._send_slices(request, transport, piece, deadline, chunked=chunked)
        if packer is not None:
            await self._send_slices(request, transport, packer.flush(), deadline, chunked=chunked)
        if chunked:
            transport.write(b"0\r\n\r\n")

    async def _send_slices(
        self, request: web.BaseRequest, transport: asyncio.Transport, piece: bytes, deadline: float, *, chunked: bool
    ) -> None:
        for start in range(0, len(piece), JOIN_BYTES):
            some = piece[start : start + JOIN_BYTES]
            transport.write(b"%x\r\n%b\r\n" % (len(some), some) if chunked else some)
            await _drained(request, transport, deadline)
            # Even if this client reads as fast as we write: other requests must run, too.
            await cast(Unread, request.protocol).take_turn()

    async def write_eof(self, data: bytes = b"") -> None:
        """`prepare` has sent everything."""


def object_response(code: int, obj: Any) -> Response:
    return Response(code, encode(obj) + b"\n")


def status_response(error: StatusError) -> Response:
    headers = f"Retry-After: {error.retry_after_s}\r\n" if error.retry_after_s else ""
    response = Response(int(error.code), encode(error.status()) + b"\n", JSON, headers)
    response.reason = error.reason
    return response


def warning_headers(texts: Sequence[str]) -> str:
    """Warning headers, as kubectl prints them. Long ones are cut; what exceeds the limit is left out."""
    lines: list[str] = []
    room = WARNINGS_BYTES
    cut = sum(map(len, texts)) > WARNINGS_BYTES
    for text in dict.fromkeys(texts):
        shown = "".join(letter if letter.isprintable() else " " for letter in text)
        shown = shown[:WARNING_CHARS] if cut else shown
        quoted = shown.replace("\\", "\\\\").replace('"', '\\"')
        # Headers are bytes: UTF-8, as Go writes it.
        line = f'Warning: 299 - "{quoted}"\r\n'.encode().decode("latin-1")
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    return "".join(lines)


async def compress(response: Response, accept_encoding: str, threshold: int, thread: int) -> Response:
    """The response, compressed if it is large and the client accepts gzip."""
    if response.written or "gzip" not in accept_encoding:
        return response
    if not isinstance(response.body, (bytes, tuple)) and isinstance(response.body, Iterator):
        response.packer = _packer()
        response.headers += PACKED
        return response
    pieces = (response.body,) if isinstance(response.body, bytes) else tuple(response.body)
    size = sum(map(len, pieces))
    if size < threshold:
        response.body = pieces
        return response
    response.body = await asyncio.to_thread(_gzip, pieces) if size >= thread else _gzip(pieces)
    response.headers += PACKED
    return response


def _packer() -> zlib._Compress:
    return zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)


def _gzip(pieces: Sequence[bytes]) -> bytes:
    packer = _packer()
    return b"".join((*map(packer.compress, pieces), packer.flush()))
