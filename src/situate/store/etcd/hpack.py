"""The headers of HTTP/2 (RFC 7541), as far as a gRPC client needs them. Pure.

We send every header as a literal, and tell the peer that our table of earlier headers has no room. So a block depends
on no other block: equal headers are equal bytes, both ways, and blocks can be kept in a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

# In the static table of the RFC: where each name that we use stands first, and whole headers.
_NAMES: Final = {":authority": 1, ":path": 4, "content-type": 31}
_WHOLE: Final = {(":method", "POST"): 3, (":scheme", "http"): 6, (":scheme", "https"): 7}
_STATUSES: Final = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}
_STATIC_HEADERS: Final = 61
_STATUS: Final = ":status"

# RFC 7541, appendix B: the bytes whose code has this many bits. Codes count up from the first to the last of them.
_BY_LENGTH: Final = {
    5: b"012aceiost",
    6: b" %-./3456789=A_bdfghlmnpru",
    7: b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    8: b"&*,;XZ",
    10: b'!"()?',
    11: b"'+|",
    12: b"#>",
    13: b"\x00$@[]~",
    14: b"^}",
    15: b"<`{",
    19: b"\\\xc3\xd0",
    20: bytes.fromhex("808283a2b8c2e0e2"),
    21: bytes.fromhex("99a1a7acb0b1b3d1d8d9e3e5e6"),
    22: bytes.fromhex("8184858688929a9ca0a3a4a9aaadb2b5b9babbbdbec4c6e4e8e9"),
    23: bytes.fromhex("0187898a8b8c8d8f93959697989b9d9ea5a6a8aeafb4b6b7bcbfc5e7ef"),
    24: bytes.fromhex("098e9091949fabced7e1eced"),
    25: bytes.fromhex("c7cfeaeb"),
    26: bytes.fromhex("c0c1c8c9cacdd2d5dadbeef0f2f3ff"),
    27: bytes.fromhex("cbccd3d4d6dddedff1f4f5f6f7f8fafbfcfdfe"),
    28: bytes.fromhex("020304050607080b0c0e0f1011121314151718191a1b1c1d1e1f7fdcf9"),
    30: b"\n\r\x16",
}
_MAX_PADDING_BITS: Final = 7


class HeaderError(Exception):
    """Not a block of headers that we can read."""


def encode(headers: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(_header(name, value) for name, value in headers)


def _header(name: str, value: str) -> bytes:
    whole = _WHOLE.get((name, value))
    if whole is not None:
        return bytes((0x80 | whole,))
    known = _NAMES.get(name)
    head = b"\x00" + _text(name) if known is None else _number(known, 4)
    return head + _text(value)


def _text(value: str) -> bytes:
    data = value.encode()
    return _number(len(data), 7) + data


def _number(value: int, bits: int) -> bytes:
    """With a prefix of this many bits, in a byte whose other bits are zero."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((value,))
    made = bytearray((most,))
    value -= most
    while value >= 0x80:
        made.append(0x80 | value & 0x7F)
        value >>= 7
    made.append(value)
    return bytes(made)


def decode(block: bytes) -> Mapping[str, str]:
    """The headers by name. Those whose names are in the static table are left out, but for the status: gRPC's are not
    in it. HeaderError for a block that refers to an earlier one."""
    try:
        return dict(_headers(block))
    except (IndexError, ValueError) as error:
        raise HeaderError(f"not a block of headers: {error}") from None


def _headers(block: bytes) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(block):
        first = block[at]
        if first & 0x80:
            index, at = _read_number(block, at, 7)
            if index > _STATIC_HEADERS:
                raise ValueError("it refers to an earlier block")
            if index in _STATUSES:
                yield _STATUS, _STATUSES[index]
            continue
        if first & 0xE0 == 0x20:  # the size of the peer's table, which we do not have
            _, at = _read_number(block, at, 5)
            continue
        index, at = _read_number(block, at, 6 if first & 0x40 else 4)
        if index > _STATIC_HEADERS:
            raise ValueError("it refers to an earlier block")
        name = _STATUS if index in _STATUSES else ""
        if not index:
            name, at = _read_text(block, at)
        value, at = _read_text(block, at)
        if name:
            yield name, value


def _read_number(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while True:
        value += (block[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not block[at - 1] & 0x80:
            return value, at


def _read_text(block: bytes, at: int) -> tuple[str, int]:
    coded = block[at] & 0x80
    length, at = _read_number(block, at, 7)
    data = block[at : at + length]
    if len(data) < length:
        raise ValueError("it is cut off")
    return (_decompressed(data) if coded else data).decode(errors="replace"), at + length


@cache
def _codes() -> dict[tuple[int, int], int]:
    """The byte of each code, by its length and value."""
    codes: dict[tuple[int, int], int] = {}
    code = last = 0
    for length, symbols in _BY_LENGTH.items():
        code <<= length - last
        last = length
        for symbol in symbols:
            codes[length, code] = symbol
            code += 1
    return codes


def _decompressed(data: bytes) -> bytes:
    codes, made, code, length = _codes(), bytearray(), 0, 0
    for byte in data:
        for shift in range(7, -1, -1):
            code, length = code << 1 | byte >> shift & 1, length + 1
            symbol = codes.get((length, code))
            if symbol is not None:
                made.append(symbol)
                code = length = 0
    if length > _MAX_PADDING_BITS or code != (1 << length) - 1:
        raise ValueError("a text is cut off")
    return bytes(made)
