"""Whether a server may listen on an address: off loopback only with TLS. Callers always need an identity there."""

from __future__ import annotations

import ipaddress
from typing import Final

from situate.wire.errors import InputError

LOCAL: Final = ("localhost", "ip6-localhost")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it. A name other than localhost may lead anywhere; "" is every address."""
    bare = host.removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return bare.lower() in LOCAL
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def check_listening(host: str, *, tls: bool) -> None:
    """Raises InputError if others could reach the server and read what it says."""
    if not tls and not is_loopback(host):
        shown = host or "every address"
        raise InputError(
            f"will not listen on {shown} without TLS: others could reach it; listen on 127.0.0.1, or turn that on"
        )
