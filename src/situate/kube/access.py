"""How to reach one API server, and as whom: what a kubeconfig's context, or the pod we run in, comes down to."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Protocol


class Credentials(Protocol):
    """What we show the API server; changes while we run. Failures are ApiErrors with `sent` False."""

    @property
    def version(self) -> int:
        """Goes up whenever something else is shown than before."""

    @property
    def certificate(self) -> int:
        """Goes up when connections made before show a client certificate that has been replaced."""

    async def header(self) -> str | None:
        """The Authorization header, as of now; None: there is none to send."""

    async def renew(self, version: int) -> bool:
        """What was shown at `version` was refused (401): get something newer. False: there is nothing newer."""


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
    """One API server. `Access("http://127.0.0.1:8001")` is enough for one that asks nothing."""

    server: str
    """Address without a slash at the end; may have a path."""
    where: str = ""
    """Where this was found, for messages: `/root/.kube/config, context "dev"`."""
    tls: ssl.SSLContext | None = None
    """Shared with the credentials, which put new client certificates into it."""
    credentials: Credentials = ANONYMOUS
    namespace: str = "default"
    proxy: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request: impersonation. A name may come more than once."""
