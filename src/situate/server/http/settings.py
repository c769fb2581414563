"""The settings and limits of the HTTP server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEFAULT_PORT: Final = 6443
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a client may use. Exceeding a limit is an HTTP error."""

    body_bytes: int = 3 * MIB
    """Of a request; 413 before more is read."""
    line_bytes: int = 64 << 10
    """Of the request line, and of one header; then 431 (or 400)."""
    headers: int = 128
    reads: int = 400
    """Read requests in flight; then 429."""
    writes: int = 200
    request_s: float = 60.0
    """For a request that is not long-running; then 504."""
    head_s: float = 32.0
    """From the first byte of a request to the end of its headers."""
    idle_s: float = 90.0
    """Between two requests on a connection."""
    handshake_s: float = 10.0
    linger_s: float = 1.0
    """How long to read and discard the rest of a refused body, so that the client sees the response."""
    watch_least_s: float = 1800.0
    """A watch without a timeout lasts a random time between this and twice this."""
    slow_s: float = 10.0
    """A client that reads nothing for so long, while there is data for it, is disconnected."""
    batch_bytes: int = 256 << 10
    """Of watch events in one write."""
    gzip_bytes: int = 128 << 10
    """Responses from this size on are compressed, if the client accepts gzip."""
    gzip_thread_bytes: int = 1 * MIB
    """From this size on, in a thread."""
    stop_s: float = 10.0
    """For requests in flight when the server stops."""
    connections: int = 10_000
    """Further ones are closed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0: any free port."""
    hosts: tuple[str, ...] = ()
    """Host names to accept, besides those of this machine and of the certificate; `*`: any."""
    limits: Limits = Limits()
    version: str = "v1.36.4-situate"
