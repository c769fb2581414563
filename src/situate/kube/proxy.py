"""The proxy for a server if the kubeconfig has none: from the environment, as Go programs read it.

HTTPS_PROXY (or HTTP_PROXY for an http address), unless NO_PROXY names the host: `*`, a name and all below it, `.name`
for only those below, an address, a CIDR, each with an optional port. localhost and loopback addresses never have one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit


def from_environment(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy for this server, with a scheme, if there is one."""
    url = urlsplit(server)
    name = "https_proxy" if url.scheme == "https" else "http_proxy"
    proxy = environ.get(name.upper()) or environ.get(name)
    if not proxy or _exempt(url, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _exempt(url: SplitResult, no_proxy: str) -> bool:
    host = (url.hostname or "").rstrip(".")
    port = str(url.port or (443 if url.scheme == "https" else 80))
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    return any(entry == "*" or (entry and _names(entry, host, port, address)) for entry in entries)


def _names(entry: str, host: str, port: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    if _address(entry) is None:
        before, colon, after = entry.rpartition(":")
        if colon and after.isdigit():
            if after != port:
                return False
            entry = before
        entry = entry.strip("[]")
    if address is not None:
        return _address(entry) == address
    name = entry.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
