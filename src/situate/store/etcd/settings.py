"""The address of etcd, and timeouts."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

PREFIX: Final = "/situate"


class EtcdSettings(Struct, frozen=True, kw_only=True):
    """All keys are under the prefix. Certificates and keys are in PEM."""

    endpoints: tuple[str, ...]
    prefix: str = PREFIX
    ca: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    tls: bool = False
    """Also without our own certificates; then the system's authorities are trusted."""
    username: str = ""
    password: str = ""
    request_s: float = 3.0
    """The timeout of one endpoint, before the next is tried."""
    scan_s: float = 10.0
    """The same for a page of a scan, which may be long."""
    give_up_s: float = 20.0
    """The timeout of all attempts together."""
    markers_ttl_s: int = 600
    """How long the markers of our transactions outlive the process."""

    @property
    def secure(self) -> bool:
        return self.tls or self.ca is not None or self.certificate is not None
