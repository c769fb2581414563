"""SPDY/3.1 framing, as far as kubectl's port-forward needs it: bytes in, frames out, and back. It opens nothing.

Header blocks are compressed, with one compressor for each direction of a connection and a dictionary that the protocol
fixes. There is no flow control: kubectl's library has none.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

MOST_FRAME: Final = 1 << 20
"""The longest frame that is read."""
MOST_HEADERS: Final = 4 << 10
"""The longest header block, decompressed. kubectl's have some hundred bytes."""
FIN: Final = 1
VERSION: Final = 0x8003
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS = 1, 2, 3, 4, 6, 7, 8
CANCEL: Final = 5
"""The status of a reset."""

_WORDS: Final = (
    "options", "head", "post", "put", "delete", "trace", "accept", "accept-charset", "accept-encoding",
    "accept-language", "accept-ranges", "age", "allow", "authorization", "cache-control", "connection", "content-base",
    "content-encoding", "content-language", "content-length", "content-location", "content-md5", "content-range",
    "content-type", "date", "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since",
    "if-none-match", "if-range", "if-unmodified-since", "last-modified", "location", "max-forwards", "pragma",
    "proxy-authenticate", "proxy-authorization", "range", "referer", "retry-after", "server", "te", "trailer",
    "transfer-encoding", "upgrade", "user-agent", "vary", "via", "warning", "www-authenticate", "method", "get",
    "status", "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin",
)  # fmt: skip
_TAIL: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _entry(word: str) -> bytes:
    return struct.pack(">I", len(word)) + word.encode()


DICTIONARY: Final = b"".join(map(_entry, _WORDS)) + _TAIL.encode()


class SpdyError(Exception):
    """The peer does not speak SPDY/3.1 as we read it."""


@dataclass(frozen=True, slots=True)
class Opened:
    stream: int
    headers: Mapping[str, str]
    ended: bool


@dataclass(frozen=True, slots=True)
class Data:
    stream: int
    data: bytes
    ended: bool


@dataclass(frozen=True, slots=True)
class Reset:
    stream: int


@dataclass(frozen=True, slots=True)
class Ping:
    id: int


@dataclass(frozen=True, slots=True)
class GoAway:
    pass


Frame: TypeAlias = Opened | Data | Reset | Ping | GoAway


class FrameReader:
    def __init__(self) -> None:
        self._left = b""
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame | None]:
        """The frames that are complete; None for one that says nothing to us. Raises SpdyError."""
        given, at = self._left + data, 0
        while len(given) >= at + 8:
            first, flags_and_length = struct.unpack_from(">II", given, at)
            flags, length = flags_and_length >> 24, flags_and_length & 0xFFFFFF
            if length > MOST_FRAME:
                raise SpdyError(f"a frame of {length} bytes")
            end = at + 8 + length
            if len(given) < end:
                break
            body, at = given[at + 8 : end], end
            yield self._read(first, flags, body)
        self._left = given[at:]

    def _read(self, first: int, flags: int, body: bytes) -> Frame | None:
        if not first >> 31:
            return Data(first, body, bool(flags & FIN))
        if first >> 16 != VERSION:
            raise SpdyError("it is not SPDY/3")
        kind = first & 0xFFFF
        if kind in (SYN_STREAM, SYN_REPLY, HEADERS):
            at = 10 if kind == SYN_STREAM else 4
            headers = self._headers(body[at:])  # of every kind, because the next ones depend on it
            return Opened(_number(body), headers, bool(flags & FIN)) if kind == SYN_STREAM else None
        if kind == RST_STREAM:
            return Reset(_number(body))
        if kind == PING:
            return Ping(_number(body))
        return GoAway() if kind == GOAWAY else None

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            text = self._inflate.decompress(block, MOST_HEADERS)
        except zlib.error as error:
            raise SpdyError(f"headers that cannot be read: {error}") from None
        if self._inflate.unconsumed_tail:
            raise SpdyError("headers that are too long")
        found: dict[str, str] = {}
        at = 4
        for _ in range(_number(text)):
            name, at = _text(text, at)
            found[name.lower()], at = _text(text, at)
        return found


def _number(data: bytes, at: int = 0) -> int:
    if len(data) < at + 4:
        raise SpdyError("a frame that ends early")
    return int(struct.unpack_from(">I", data, at)[0]) & 0x7FFFFFFF


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = at + 4 + _number(data, at)
    if end > len(data):
        raise SpdyError("a header that ends early")
    return data[at + 4 : end].decode(errors="replace"), end


class FrameWriter:
    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Accept a stream."""
        block = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(SYN_REPLY, 0, struct.pack(">I", stream) + block)

    def data(self, stream: int, data: bytes, *, ended: bool = False) -> bytes:
        return struct.pack(">II", stream, (FIN if ended else 0) << 24 | len(data)) + data

    def reset(self, stream: int) -> bytes:
        return _control(RST_STREAM, 0, struct.pack(">II", stream, CANCEL))

    def ping(self, number: int) -> bytes:
        return _control(PING, 0, struct.pack(">I", number))


def _control(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack(">HHI", VERSION, kind, flags << 24 | len(body)) + body
