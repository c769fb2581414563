"""Validation of IP addresses and CIDRs by the API server's current rules: no leading zeros, no IPv4-mapped IPv6."""

import re
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from situate.server.kinds.field_errors import Causes

NOT_AN_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NOT_A_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

_ZEROS = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])", re.ASCII)
_MAX_LENGTH = 64  # longer text is not an address


def parse_ip(text: str) -> IPv4Address | IPv6Address | None:
    """As old clients wrote them: leading zeros in IPv4 are ignored."""
    if len(text) > _MAX_LENGTH or "%" in text or not text.isascii():
        return None
    for one in (text, _ZEROS.sub("", text) if ":" not in text else text):
        try:
            return ip_address(one)
        except ValueError:
            continue
    return None


def ip(text: str, path: str, causes: Causes, known: Collection[str] = ()) -> None:
    """`known` are the values of the stored object, which remain valid."""
    if text in known:
        return
    found = parse_ip(text)
    if found is None:
        causes.invalid(path, text, NOT_AN_IP)
    elif ":" not in text and _ZEROS.search(text):
        causes.invalid(path, text, "must not have leading 0s")
    elif isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        causes.invalid(path, text, "must not be an IPv4-mapped IPv6 address")


def cidr(text: str, path: str, causes: Causes, known: Collection[str] = ()) -> None:
    if text in known:
        return
    address, slash, length = text.partition("/")
    found = parse_ip(address)
    if found is None or not slash or not length.isdecimal() or not length.isascii() or len(length) > 3:
        causes.invalid(path, text, NOT_A_CIDR)
        return
    bits = int(length)
    if bits > found.max_prefixlen:
        causes.invalid(path, text, NOT_A_CIDR)
    elif (":" not in address and _ZEROS.search(address)) or (len(length) > 1 and length[0] == "0"):
        causes.invalid(path, text, "must not have leading 0s in IP or prefix length")
    elif isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        causes.invalid(path, text, "must not have an IPv4-mapped IPv6 address")
    elif ip_network((found, bits), strict=False).network_address != found:
        causes.invalid(path, text, "must not have bits set beyond the prefix length")


def is_ipv6(text: str) -> bool:
    return isinstance(parse_ip(text.partition("/")[0]), IPv6Address)


def is_dual_stack(texts: Sequence[str]) -> bool:
    """Whether both IP families occur. Text that is not an address counts as IPv4."""
    families = [is_ipv6(text) for text in texts]
    return True in families and False in families


def endpoint_ip(text: str, path: str, causes: Causes) -> None:
    """Check an address that a service or an endpoint points at."""
    found = parse_ip(text)
    if found is None:
        causes.invalid(path, text, "must be a valid IP address")
        return
    if found.is_unspecified:
        causes.invalid(path, text, f"may not be unspecified ({text})")
    if found.is_loopback:
        causes.invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        causes.invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _link_local_multicast(found):
        causes.invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def _link_local_multicast(found: IPv4Address | IPv6Address) -> bool:
    if isinstance(found, IPv4Address):
        return found.packed[:3] == b"\xe0\x00\x00"
    return found.packed[0] == 0xFF and found.packed[1] & 0x0F == 0x02
