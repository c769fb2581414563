"""How to reach one API server, and with which credentials."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Protocol


class Credentials(Protocol):
    """Our credentials. They change while we run. Failures are ApiErrors with `sent` False."""

    @property
    def version(self) -> int:
        """Grows whenever the credentials change."""

    @property
    def certificate(self) -> int:
        """Grows when open connections use a client certificate that was replaced."""

    async def header(self) -> str | None:
        """The current Authorization header, if there is one."""

    async def renew(self, version: int) -> bool:
        """The server refused `version` with 401: get newer credentials. False: there are none."""


class Fixed:
    """Always the same header, or none."""

    version = 0
    certificate = 0

    def __init__(self, header: str | None) -> None:
        self._header = header

    async def header(self) -> str | None:
        return self._header

    async def renew(self, version: int) -> bool:
        return False


ANONYMOUS = Fixed(None)


@dataclass(frozen=True, slots=True)
class Access:
    """One API server. `Access("http://127.0.0.1:8001")` is enough for one without authentication."""

    server: str
    """Address without a trailing slash; it may have a path."""
    where: str = ""
    """Where we found this, for messages: `/root/.kube/config, context "dev"`."""
    tls: ssl.SSLContext | None = None
    """Shared with the credentials, which load new client certificates into it."""
    credentials: Credentials = ANONYMOUS
    namespace: str = "default"
    proxy: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Impersonation headers, sent with every request. A name may repeat."""
