"""The limits of the HTTP side, each with a name; and where it listens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULT_PORT", "Limits", "ServerSettings"]

DEFAULT_PORT: Final = 6443
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a client may take. Reaching any of them is an answer, not an accident."""

    body_bytes: int = 3 * MIB
    """Of a request; more is answered with 413 before it is read."""
    line_bytes: int = 64 << 10
    """Of the request line, and of one header; more is answered with 431 (or 400)."""
    headers: int = 128
    reads: int = 400
    """Requests in flight that change nothing; one more is answered with 429."""
    writes: int = 200
    request_s: float = 60.0
    """For a request that is no watch; then it is answered with 504."""
    head_s: float = 32.0
    """From the first byte of a request till the end of its headers."""
    idle_s: float = 90.0
    """Between two requests on a connection."""
    handshake_s: float = 10.0
    linger_s: float = 1.0
    """How long what is left of a refused body is read and thrown away, so that the client sees the answer."""
    watch_least_s: float = 1800.0
    """A watch that names no end lasts a random time of at least this, and at most twice of it."""
    slow_s: float = 10.0
    """A client that takes in nothing for so long, while there is something to take, is cut off."""
    batch_bytes: int = 256 << 10
    """Of watch events in one write."""
    gzip_bytes: int = 128 << 10
    """Answers from this size on are compressed for whoever accepts it."""
    gzip_thread_bytes: int = 1 * MIB
    """And from this size on in a thread."""
    stop_s: float = 10.0
    """For requests in flight when the server stops."""
    connections: int = 10_000
    """One more is closed as it comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0: any that is free."""
    hosts: tuple[str, ...] = ()
    """Names by which clients may call the server, besides those of this machine and of the certificate; `*`: any."""
    limits: Limits = Limits()
    version: str = "v1.36.4-situate"
