"""A connection to a kubelet, and HTTP/1.1 on it: one request, then its answer as a stream, or the bytes of an upgrade.

A kubelet is not trusted to be well-behaved: heads, chunks and refusals have limits.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec

from situate.server.errors import StatusError

HEAD_BYTES: Final = 64 << 10
"""Of the head of an answer, and the buffer of a connection."""
PIECE_BYTES: Final = 64 << 10
REFUSAL_BYTES: Final = 50_000
"""How much of a refusal is read."""
CHUNK_LINE_BYTES: Final = 1_000
MAX_LENGTH_DIGITS: Final = 18
"""Of the length of a body."""
TRAILER_LINES: Final = 100
HOP_HEADERS: Final = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
"""Headers that are about one connection, and not passed on."""
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,15}[ \t]*")
_ENDS_LINE: Final = ("\r", "\n", "\0")
"""What some clients take for the end of a line: a header with it may be more than one."""
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

Header = tuple[str, str]


class AnswerError(Exception):
    """What came is not an HTTP answer, or ended early; the message is one line."""


@dataclass(frozen=True, slots=True)
class NodeConnection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    host: str
    """For the Host header."""

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(1.0):
                await self.writer.wait_closed()

    def abort(self) -> None:
        self.writer.transport.abort()


@dataclass(frozen=True, slots=True)
class AnswerHead:
    code: int
    headers: tuple[Header, ...]

    def get(self, name: str) -> str:
        """The first header of this name, in lower case; "" if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")


async def ask(
    connection: NodeConnection, method: str, target: str, headers: Iterable[Header], body: bytes = b""
) -> AnswerHead:
    """Send a request and read the head of its answer. Raises AnswerError, OSError."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {connection.host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body or method not in ("GET", "HEAD"):
        lines.append(f"Content-Length: {len(body)}")
    connection.writer.write("\r\n".join((*lines, "", "")).encode("latin-1", "replace") + body)
    await connection.writer.drain()
    head = await read_head(connection.reader)
    while HTTPStatus.CONTINUE <= head.code < HTTPStatus.OK and head.code != HTTPStatus.SWITCHING_PROTOCOLS:
        head = await read_head(connection.reader)
    return head


async def read_head(reader: asyncio.StreamReader) -> AnswerHead:
    """Raises AnswerError."""
    try:
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        what = "is too long" if isinstance(error, asyncio.LimitOverrunError) else "ended early"
        raise AnswerError(f"the head of the answer {what}") from None
    first, *lines = text.removesuffix("\r\n\r\n").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal() or int(rest[:3]) < HTTPStatus.CONTINUE:
        raise AnswerError("the answer is not HTTP/1.1")
    if any(mark in line for line in lines for mark in _ENDS_LINE):
        raise AnswerError("the answer has a header with a control character")
    pairs = (line.partition(":") for line in lines)
    return AnswerHead(int(rest[:3]), tuple((name.strip(), value.strip()) for name, _, value in pairs))


async def read_body(reader: asyncio.StreamReader, head: AnswerHead, method: str = "GET") -> AsyncIterator[bytes]:
    """The body in pieces, as they come. Raises AnswerError if it ends early."""
    if method == "HEAD" or head.code in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        return
    if "chunked" in head.get("transfer-encoding").lower():
        async for piece in _chunks(reader):
            yield piece
        return
    length = head.get("content-length")
    if not length:  # until the connection ends
        while piece := await reader.read(PIECE_BYTES):
            yield piece
        return
    if not length.isdecimal() or len(length) > MAX_LENGTH_DIGITS:
        raise AnswerError("the length of the answer is not a number")
    async for piece in _exactly(reader, int(length)):
        yield piece


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size:
        piece = await reader.read(min(size, PIECE_BYTES))
        if not piece:
            raise AnswerError("the answer ended early")
        size -= len(piece)
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        digits = (await _line(reader)).partition(b";")[0]
        if not _CHUNK_SIZE.fullmatch(digits):  # int() takes signs, too
            raise AnswerError("the answer has a chunk without a size")
        size = int(digits, 16)
        if not size:
            break
        async for piece in _exactly(reader, size):
            yield piece
        if await _line(reader):
            raise AnswerError("the answer has a chunk without an end")
    for _ in range(TRAILER_LINES):
        if not await _line(reader):
            return


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readuntil(b"\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise AnswerError("the answer ended early") from None
    if len(line) > CHUNK_LINE_BYTES:
        raise AnswerError("the answer has a chunk with a long head")
    return line[:-2]


async def refusal(reader: asyncio.StreamReader, head: AnswerHead) -> StatusError:
    """An answer that is an error, as a Status: with the kubelet's code and words."""
    body = b""
    with suppress(AnswerError, OSError):
        async for piece in read_body(reader, head):
            body += piece
            if len(body) >= REFUSAL_BYTES:
                break
    text = body[:REFUSAL_BYTES].decode(errors="replace").strip()
    with suppress(msgspec.DecodeError, msgspec.ValidationError):
        text = msgspec.json.decode(body, type=_Refusal).message or text
    code = head.code if head.code >= HTTPStatus.BAD_REQUEST else HTTPStatus.BAD_GATEWAY
    reason = _REASONS.get(code, "InternalError" if code >= HTTPStatus.INTERNAL_SERVER_ERROR else "BadRequest")
    return StatusError(code, reason, text or f"the kubelet answered {head.code}")


class _Refusal(msgspec.Struct):
    """A Status, as far as it is read."""

    message: str = ""
