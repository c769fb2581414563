"""Responses as bytes: headers, bodies, Statuses, Warning headers.

A response is one write to the connection. aiohttp's own response classes cost more than the rest of a read.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from http import HTTPStatus
from time import time
from typing import Any, Final

import msgspec
from aiohttp import HttpVersion11, web

from situate.server.errors import StatusError

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
JOIN_BYTES: Final = 64 << 10
"""Headers and body up to this size are one write."""
SLOW_CLIENT_S: Final = 30.0
"""For a client to read a piece of a large response."""
WARNING_CHARS: Final = 256
WARNINGS_BYTES: Final = 4096
GZIP_LEVEL: Final = 1

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


async def _drained(request: web.BaseRequest, transport: asyncio.Transport) -> None:
    """Wait until the client has read most of what was sent. A client that reads nothing for long is disconnected."""
    try:
        async with asyncio.timeout(SLOW_CLIENT_S):
            await request.writer.drain()
    except TimeoutError:
        transport.abort()
        raise ConnectionAbortedError("the client does not read") from None
    if transport.is_closing():
        raise ConnectionResetError("the client is gone")


class Response:
    """The response to a request. aiohttp calls `prepare` and `write_eof`."""

    __slots__ = ("body", "close", "code", "content_type", "headers", "keep_alive", "pause_s", "reason", "written")

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
        self.pause_s = 0.0
        """How long to read nothing more from the connection: of a client that was told to come again later."""

    async def prepare(self, request: web.BaseRequest) -> None:
        self.keep_alive = request.keep_alive and not self.close
        if self.written:
            return
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        # Test for the plain types first: isinstance(…, Iterator) takes longer than sending the response.
        if not isinstance(self.body, (bytes, tuple)) and isinstance(self.body, Iterator):
            if request.version >= HttpVersion11:
                await self._send_chunked(request, transport, self.body)
                return
            self.body = list(self.body)
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
            if self.pause_s and (pause := getattr(request.protocol, "pause", None)) is not None:
                await pause(self.pause_s)
            # A client that sends requests and reads no responses.
            if getattr(request.protocol, "paused", False):
                await _drained(request, transport)
            return
        transport.write(first)
        for piece in pieces:
            await _drained(request, transport)
            transport.write(piece)
        await _drained(request, transport)

    async def _send_chunked(
        self, request: web.BaseRequest, transport: asyncio.Transport, pieces: Iterator[bytes]
    ) -> None:
        """In chunks, since the length is not known."""
        kind = f"Content-Type: {self.content_type}\r\nTransfer-Encoding: chunked\r\n"
        closing = "" if self.keep_alive else "Connection: close\r\n"
        self.written = True
        first = head(self.code, f"{kind}Cache-Control: no-cache, private\r\n{closing}{self.headers}")
        request.writer.output_size += len(first)
        transport.write(first)
        for piece in pieces:
            transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            # Yield to other tasks, even if this client reads as fast as we write.
            await asyncio.sleep(0)
            await _drained(request, transport)
        transport.write(b"0\r\n\r\n")

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
    pieces = (response.body,) if isinstance(response.body, bytes) else tuple(response.body)
    size = sum(map(len, pieces))
    if size < threshold:
        response.body = pieces
        return response
    response.body = await asyncio.to_thread(_gzip, pieces) if size >= thread else _gzip(pieces)
    response.headers += "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
    return response


def _gzip(pieces: Sequence[bytes]) -> bytes:
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join((*map(packer.compress, pieces), packer.flush()))
