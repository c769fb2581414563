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
    head_bytes: int = 128 << 10
    """Of the request line and all headers; then 431."""
    heads_bytes: int = 64 * MIB
    """Of all heads that are incomplete; then the connection that sends more is closed."""
    reads: int = 400
    """Read requests in flight of users; the next ones wait in the queues of their users."""
    reads_per_user: int = 200
    writes: int = 200
    writes_per_user: int = 100
    system_reads: int = 200
    """Slots that only nodes and the parts of the control plane can take."""
    system_writes: int = 200
    queue: int = 500
    """Requests of one user that wait for a slot; then 429."""
    turn: int = 2
    """Requests of one user that start in one turn of the event loop; the next ones wait for the next turn."""
    system_turn: int = 16
    """The same for a node or a part of the control plane."""
    streams: int = 6_000
    """Watches and logs of users; then 429. Those of nodes and of the control plane's parts are not limited."""
    streams_per_user: int = 2_000
    piece_s: float = 0.002
    """Between two pieces, of 64 KiB at most, of different watches and large responses of one user, if they have to wait
    for each other. A watch that has waited sends more events at once."""
    stream_rate: float = 50.0
    """New watches and logs of one user a second, after a burst; then 429."""
    stream_burst: float = 200.0
    tunnels: int = 1_000
    """Of users, to nodes: exec, attach, port-forward, proxy; then 429. They count as watches, too."""
    tunnels_per_user: int = 200
    tunnel_idle_s: float = 4 * 3600.0
    """A tunnel through which nothing passes for so long is closed, as kubelets do it."""
    bodies_bytes: int = 64 * MIB
    """Of bodies of requests that are read, wait or run, without those that came with their headers; then 429.
    Users, the system (nodes and the control plane's parts) and administrators have such a budget each."""
    bodies_bytes_per_user: int = 16 * MIB
    body_s: float = 30.0
    """From the headers of a request to the end of its body; then 504."""
    anonymous: int = 20
    """Requests in flight of callers without credentials, and as many watches of theirs; then 429."""
    anonymous_rate: float = 50.0
    """Requests a second, from one address, without credentials or with wrong ones. The next ones are answered 429 (or
    401), and nothing more is read from their connections for `anonymous_pause_s`."""
    anonymous_burst: float = 100.0
    anonymous_rate_total: float = 500.0
    """The same for all addresses together."""
    anonymous_peers: int = 1_024
    """Addresses whose budgets are remembered."""
    anonymous_pause_s: float = 5.0
    forbidden_rate: float = 50.0
    """Refusals (403) of one user a second, after a burst. After the next ones, nothing more is read from their
    connections for `refused_pause_s`."""
    forbidden_burst: float = 100.0
    counted_users: int = 1_024
    """Users whose refusals and new streams are counted. The one that was counted least recently is forgotten."""
    refused_pause_s: float = 1.0
    """How long nothing more is read from a connection whose request was answered 429. It is the Retry-After."""
    unread_bytes_per_user: int = 64 * MIB
    """Sent to one user and not read by its clients; then the connection is cut."""
    large_lists: int = 16
    """Lists of more than 200 objects or 1 MiB that are sent at the same time; the next ones wait for their turn.
    As many again are for the system and administrators."""
    large_lists_per_user: int = 2
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
    batch_bytes: int = 64 << 10
    """Of watch events in one write."""
    gzip_bytes: int = 128 << 10
    """Responses from this size on are compressed, if the client accepts gzip."""
    gzip_thread_bytes: int = 1 * MIB
    """From this size on, in a thread."""
    stop_s: float = 10.0
    """For requests in flight when the server stops."""
    connections: int = 10_000
    """Then one that waits for its client is closed for a new one, or the new one if none waits."""
    connections_per_address: int = 2_500
    """The same for the connections from one address; 0: no limit, for a server behind a load balancer."""
    handshake_burst: float = 64.0
    """TLS handshakes of an address that start one right after the other, 10 ms apart: a handshake takes as long as
    several requests."""
    handshake_rate: float = 50.0
    """A second, after the burst. The next ones wait."""
    handshakes: int = 5
    """Addresses whose handshakes start at the same time. The others take turns with them."""
    handshake_wait_s: float = 60.0
    unknown_idle_s: float = 15.0
    """`idle_s` of a connection without any request of a caller with valid credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    address: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0: any free port."""
    hosts: tuple[str, ...] = ()
    """Host names to accept, besides those of this machine and of the certificate; `*`: any."""
    limits: Limits = Limits()
    version: str = "v1.36.4"
