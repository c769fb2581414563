"""Nothing off loopback without TLS and identity: whether a server may listen as it is told to. A pure check."""

from __future__ import annotations

import ipaddress
from typing import Final

from situate.server.identity.secret_files import IdentityError

__all__ = ["check_listening", "is_loopback"]

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


def check_listening(host: str, *, tls: bool, identity: bool) -> None:
    """Raises if others could reach what must not be open to them."""
    if is_loopback(host):
        return
    missing = [name for name, there in (("TLS", tls), ("identity", identity)) if not there]
    if missing:
        shown = host or "every address"
        raise IdentityError(
            f"will not listen on {shown} without {' and '.join(missing)}: others could reach it; "
            "listen on 127.0.0.1, or turn that on"
        )
