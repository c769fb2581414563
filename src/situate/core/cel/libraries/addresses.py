"""IP addresses and networks, parsed as Go's net/netip does, with its messages."""

from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final

from situate.core.cel.formatting import go_quote

_MAPPED: Final = 0xFFFF << 32
_HEX = frozenset("0123456789abcdefABCDEF")
_DIGITS = frozenset("0123456789")


class AddressError(ValueError):
    """Not an address; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Address:
    bits: int  # 32 or 128
    number: int
    zone: str = ""

    @property
    def is_mapped(self) -> bool:
        return self.bits == 128 and self.number >> 32 == 0xFFFF

    def __str__(self) -> str:
        if self.bits == 32:
            return ".".join(str(self.number >> shift & 255) for shift in (24, 16, 8, 0))
        return str(IPv6Address(self.number))


@dataclass(frozen=True, slots=True)
class Prefix:
    address: Address
    length: int

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    def masked(self) -> "Prefix":
        rest = self.address.bits - self.length
        return Prefix(Address(self.address.bits, self.address.number >> rest << rest), self.length)

    def contains(self, address: Address) -> bool:
        rest = self.address.bits - self.length
        return self.address.bits == address.bits and self.address.number >> rest == address.number >> rest

    def overlaps(self, other: "Prefix") -> bool:
        shorter = min(self.length, other.length)
        return Prefix(self.address, shorter).contains(other.address)


def _wrong(text: str, message: str, at: str = "") -> AddressError:
    shown = f" (at {go_quote(at)})" if at else ""
    return AddressError(f"ParseAddr({go_quote(text)}): {message}{shown}")


def parse_address(text: str) -> Address:
    """Raises AddressError."""
    for character in text:
        if character == ".":
            return Address(32, _parse_four(text, text))
        if character == ":":
            return _parse_six(text)
        if character == "%":
            raise _wrong(text, "missing IPv6 address")
    raise _wrong(text, "unable to parse IP")


def _parse_four(text: str, part: str) -> int:
    fields: list[int] = []
    value, digits = 0, 0
    for index, character in enumerate(part):
        if character in _DIGITS:
            if digits == 1 and value == 0:
                raise _wrong(text, "IPv4 field has octet with leading zero")
            value = value * 10 + int(character)
            digits += 1
            if value > 255:
                raise _wrong(text, "IPv4 field has value >255")
        elif character == ".":
            if index in (0, len(part) - 1) or part[index - 1] == ".":
                raise _wrong(text, "IPv4 field must have at least one digit", part[index:])
            if len(fields) == 3:
                raise _wrong(text, "IPv4 address too long")
            fields.append(value)
            value, digits = 0, 0
        else:
            raise _wrong(text, "unexpected character", part[index:])
    if len(fields) < 3:
        raise _wrong(text, "IPv4 address too short")
    return int.from_bytes(bytes((*fields, value)))


def _parse_six(text: str) -> Address:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _wrong(text, "zone must be a non-empty string")
    ip = bytearray()
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis = 0
        rest = rest[2:]
        if not rest:
            return Address(128, 0, zone)
    while len(ip) < 16:
        length = _group_length(text, rest)
        if rest[length : length + 1] == ".":
            _check_embedded(text, rest, len(ip), ellipsis)
            ip += _parse_four(text, rest).to_bytes(4)
            rest = ""
            break
        ip += int(rest[:length], 16).to_bytes(2)
        rest = rest[length:]
        if not rest:
            break
        if rest[0] != ":":
            raise _wrong(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _wrong(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _wrong(text, "multiple :: in address", rest)
            ellipsis = len(ip)
            rest = rest[1:]
            if not rest:
                break
    if rest:
        raise _wrong(text, "trailing garbage after address", rest)
    return Address(128, int.from_bytes(_expanded(text, ip, ellipsis)), zone)


def _check_embedded(text: str, rest: str, length: int, ellipsis: int) -> None:
    if ellipsis < 0 and length != 12:
        raise _wrong(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if length + 4 > 16:
        raise _wrong(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)


def _group_length(text: str, rest: str) -> int:
    length = 0
    while length < len(rest) and rest[length] in _HEX:
        if length > 3:
            raise _wrong(text, "each group must have 4 or less digits", rest)
        length += 1
    if not length:
        raise _wrong(text, "each colon-separated field must have at least one digit", rest)
    return length


def _expanded(text: str, ip: bytearray, ellipsis: int) -> bytes:
    if len(ip) == 16:
        if ellipsis >= 0:
            raise _wrong(text, "the :: must expand to at least one field of zeros")
        return bytes(ip)
    if ellipsis < 0:
        raise _wrong(text, "address string too short")
    return bytes(ip[:ellipsis]) + bytes(16 - len(ip)) + bytes(ip[ellipsis:])


def parse_prefix(text: str) -> Prefix:
    """Raises AddressError."""
    before, slash, length = text.rpartition("/")
    start = f"netip.ParsePrefix({go_quote(text)}): "
    if not slash:
        raise AddressError(f"{start}no '/'")
    try:
        address = parse_address(before)
    except AddressError as error:
        raise AddressError(f"{start}{error}") from None
    if address.zone:
        raise AddressError(f"{start}IPv6 zones cannot be present in a prefix")
    wrong = f"{start}bad bits after slash: {go_quote(length)}"
    if not length or not set(length) <= _DIGITS or (len(length) > 1 and length[0] == "0") or len(length) > 18:
        raise AddressError(wrong)
    if int(length) > address.bits:
        raise AddressError(f"{start}prefix length out of range")
    return Prefix(address, int(length))
