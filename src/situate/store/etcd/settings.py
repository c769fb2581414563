"""Which etcd, and how long to wait for it. Values only; flags and files are for whoever runs the server."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

PREFIX: Final = "/situate"
# A request of 1.5 MiB is the most that etcd takes; a list or a burst of events may be much longer.
RECEIVE_BYTES: Final = 1 << 30


class EtcdSettings(Struct, frozen=True, kw_only=True):
    """All keys are under the prefix. Certificates and keys are in PEM."""

    endpoints: tuple[str, ...]
    prefix: str = PREFIX
    ca: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    tls: bool = False
    """Also without certificates of our own; the system's authorities are trusted then."""
    username: str = ""
    password: str = ""
    request_s: float = 5.0
    """How long one endpoint has to answer; then the next is asked."""
    give_up_s: float = 20.0
    """How long to go on asking altogether."""
    marks_ttl_s: int = 600
    """How long the marks of our transactions outlive us."""

    @property
    def secure(self) -> bool:
        return self.tls or self.ca is not None or self.certificate is not None
