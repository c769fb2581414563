"""IP addresses in expressions."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.formatting import go_quote
from situate.core.cel.functions import Function, Library, member, overload
from situate.core.cel.libraries.addresses import Address, AddressError, parse_address
from situate.core.cel.meter import STRING_FACTOR, ceil_of, one, plain_size
from situate.core.cel.types import BOOL, INT, STRING, opaque
from situate.core.cel.values import ExtensionValue, Value

IP: Final = opaque("net.IP")


class IPValue(ExtensionValue):
    __slots__ = ("address", "size")
    type_name = "net.IP"
    go_name = "IP"

    def __init__(self, address: Address) -> None:
        self.address = address
        self.size = address.bits // 8

    def equal(self, other: Value) -> Value:
        return self.address == other.address if isinstance(other, IPValue) else no_such_overload()


def parse_ip(text: str) -> Any:
    try:
        address = parse_address(text)
    except AddressError as error:
        return ErrorValue(f"IP Address {go_quote(text)} parse error during conversion from string: {error}")
    if address.zone:
        return ErrorValue(f"IP address {go_quote(text)} with zone value is not allowed")
    if address.is_mapped:
        return ErrorValue(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return IPValue(address)


def _is_canonical(text: str) -> Any:
    found = parse_ip(text)
    return found if isinstance(found, ErrorValue) else str(found.address) == text


def _top(address: Address, bits: int) -> int:
    return address.number >> (address.bits - bits)


def _is_loopback(address: Address) -> bool:
    return _top(address, 8) == 127 if address.bits == 32 else address.number == 1


def _is_link_local(address: Address) -> bool:
    return _top(address, 16) == 0xA9FE if address.bits == 32 else _top(address, 16) & 0xFFC0 == 0xFE80


def _is_link_local_multicast(address: Address) -> bool:
    return _top(address, 24) == 0xE00000 if address.bits == 32 else _top(address, 16) & 0xFF0F == 0xFF02


def _is_multicast(address: Address) -> bool:
    return _top(address, 4) == 0xE if address.bits == 32 else _top(address, 8) == 0xFF


def _is_global(address: Address) -> bool:
    if address.number == 0 or (address.bits == 32 and address.number == 2**32 - 1):
        return False
    return not (_is_loopback(address) or _is_multicast(address) or _is_link_local(address))


def _test(name: str, overload_id: str, test: Callable[[Address], bool]) -> Function:
    return Function(name, (member(overload_id, (IP,), BOOL, lambda ip: test(ip.address)),), cost=one)


def parse_ip_cost(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return 1 if overload_id == "cidr_ip" else ceil_of(plain_size(args[0]))


def _canonical_cost(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil_of(plain_size(args[0]), 2 * STRING_FACTOR)


LIBRARY = Library(
    (
        Function("ip", (overload("string_to_ip", (STRING,), IP, parse_ip),), cost=parse_ip_cost),
        Function("family", (member("ip_family", (IP,), INT, lambda ip: 4 if ip.address.bits == 32 else 6),), cost=one),
        Function(
            "ip.isCanonical", (overload("ip_is_canonical", (STRING,), BOOL, _is_canonical),), cost=_canonical_cost
        ),
        _test("isUnspecified", "ip_is_unspecified", lambda address: address.number == 0),
        _test("isLoopback", "ip_is_loopback", _is_loopback),
        _test("isLinkLocalMulticast", "ip_is_link_local_multicast", _is_link_local_multicast),
        _test("isLinkLocalUnicast", "ip_is_link_local_unicast", _is_link_local),
        _test("isGlobalUnicast", "ip_is_global_unicast", _is_global),
        Function(
            "isIP",
            (overload("is_ip", (STRING,), BOOL, lambda text: not isinstance(parse_ip(text), ErrorValue)),),
            cost=parse_ip_cost,
        ),
        Function("string", (overload("ip_to_string", (IP,), STRING, lambda ip: str(ip.address)),)),
    ),
    types=(IP,),
)
