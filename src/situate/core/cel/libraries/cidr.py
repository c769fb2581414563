"""Networks in expressions."""

from collections.abc import Sequence
from typing import Any, Final

from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.formatting import go_quote
from situate.core.cel.functions import Function, Library, member, overload
from situate.core.cel.libraries.addresses import AddressError, Prefix, parse_prefix
from situate.core.cel.libraries.ip import IP, IPValue, parse_ip, parse_ip_cost
from situate.core.cel.meter import ceil_of, one, plain_size
from situate.core.cel.types import BOOL, INT, STRING, opaque
from situate.core.cel.values import ExtensionValue, Value

CIDR: Final = opaque("net.CIDR")
PARSE_ERROR: Final = "network address parse error during conversion from string: "


class CIDRValue(ExtensionValue):
    __slots__ = ("prefix", "size")
    type_name = "net.CIDR"
    go_name = "CIDR"

    def __init__(self, prefix: Prefix) -> None:
        self.prefix = prefix
        self.size = -(-prefix.length // 8)

    def equal(self, other: Value) -> Value:
        return self.prefix == other.prefix if isinstance(other, CIDRValue) else no_such_overload()


def _parse(text: str) -> Any:
    try:
        prefix = parse_prefix(text)
    except AddressError as error:
        return ErrorValue(f"{PARSE_ERROR}{PARSE_ERROR}{error}")
    if prefix.address.is_mapped:
        return ErrorValue(f"{PARSE_ERROR}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return CIDRValue(prefix)


def _contains_ip_text(cidr: CIDRValue, text: str) -> Any:
    # cel-go forgets why the text is no address.
    ip = parse_ip(text)
    return cidr.prefix.contains(ip.address) if isinstance(ip, IPValue) else no_such_overload()


def _contains_cidr(cidr: CIDRValue, other: CIDRValue) -> bool:
    return cidr.prefix.overlaps(other.prefix) and cidr.prefix.length <= other.prefix.length


def _contains_cidr_text(cidr: CIDRValue, text: str) -> Any:
    other = _parse(text)
    return other if isinstance(other, ErrorValue) else _contains_cidr(cidr, other)


def _contains_cost(args: Sequence[Any], result: Any, overload_id: str) -> int:
    size = plain_size(args[0])
    cost = ceil_of(size + size)
    if overload_id.startswith("cidr_contains_cidr"):
        cost += ceil_of(size) + 1
    return cost + ceil_of(plain_size(args[1])) if overload_id.endswith("_string") else cost


LIBRARY = Library(
    (
        Function("cidr", (overload("string_to_cidr", (STRING,), CIDR, _parse),), cost=parse_ip_cost),
        Function(
            "containsIP",
            (
                member("cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_ip_text),
                member("cidr_contains_ip_ip", (CIDR, IP), BOOL, lambda cidr, ip: cidr.prefix.contains(ip.address)),
            ),
            cost=_contains_cost,
        ),
        Function(
            "containsCIDR",
            (
                member("cidr_contains_cidr_string", (CIDR, STRING), BOOL, _contains_cidr_text),
                member("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr),
            ),
            cost=_contains_cost,
        ),
        Function("ip", (member("cidr_ip", (CIDR,), IP, lambda cidr: IPValue(cidr.prefix.address)),)),
        Function(
            "prefixLength", (member("cidr_prefix_length", (CIDR,), INT, lambda cidr: cidr.prefix.length),), cost=one
        ),
        Function(
            "masked", (member("cidr_masked", (CIDR,), CIDR, lambda cidr: CIDRValue(cidr.prefix.masked())),), cost=one
        ),
        Function(
            "isCIDR",
            (overload("is_cidr", (STRING,), BOOL, lambda text: not isinstance(_parse(text), ErrorValue)),),
            cost=parse_ip_cost,
        ),
        Function("string", (overload("cidr_to_string", (CIDR,), STRING, lambda cidr: str(cidr.prefix)),)),
    ),
    types=(CIDR,),
)
