"""What is known about a request so far, and what it holds: a slot, a stream, the bytes of its body."""

from __future__ import annotations

import asyncio
import math

import msgspec
from msgspec import Struct

from situate.server.http.flow_control import EXEMPT, FlowControl
from situate.server.http.metrics import RequestLabels
from situate.server.http.query import Query
from situate.server.http.urls import NO_URL, RequestUrl
from situate.server.identity.authorization.attributes import Attributes
from situate.server.requests import Caller

_NOTHING = Attributes("")


class RequestState(Struct):
    """For the request's log line, the audit log, the metrics, and its share of the server."""

    id: str
    started: float
    received_ns: int
    flows: FlowControl
    in_flight: dict[str, int]
    """By lane."""
    url: RequestUrl = NO_URL
    query: Query = msgspec.field(default_factory=dict)
    attributes: Attributes = _NOTHING
    caller: Caller | None = None
    impersonator: Caller | None = None
    """The authenticated user, if it impersonates the caller."""
    decision: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    """Of its event in the audit log."""
    level: str = EXEMPT
    flow: str = ""
    lane: str = ""
    """readOnly or mutating, while it has a slot or waits for one."""
    waiting: asyncio.Future[None] | None = None
    """The request is waiting for a slot."""
    reading: bool = False
    """Whether its body is still being read."""
    body_bytes: int = 0
    """Of its body, as far as they count in the budget."""
    long_running: bool = False
    """A watch, a log or a tunnel: not counted as in flight."""
    tunnel: bool = False
    """It counts as a tunnel to a node."""
    labels: RequestLabels | None = None
    limit_s: float = math.inf
    """How long the client gives it, if that is less than the server does."""
    late: bool = False
    body: bytes = b""
    response: object = None
    """The body of the response before compression."""
    credentials: tuple[bytes | None, str] | None = None
    """Of a long-running request: the client's certificate and the Authorization header, to be checked again."""
    pause_s: float = 0.0
    """How long to read nothing more from the connection after the response."""

    def enter(self, lane: str) -> asyncio.Future[None] | None:
        """Take a slot, or await the future. Raises StatusError (429)."""
        self.waiting = waiting = self.flows.enter(self.level, lane, self.flow)
        self.lane = lane
        self.in_flight[lane] += 1
        return waiting

    def hold(self, size: int) -> None:
        """Count bytes of the body. Raises StatusError (429)."""
        self.flows.hold_body(self.level, self.flow, size)
        self.body_bytes += size

    def leave(self) -> None:
        """Give back everything it holds."""
        if self.lane:
            self.in_flight[self.lane] -= 1
            waiting = self.waiting
            if waiting is None or (waiting.done() and not waiting.cancelled()):
                self.flows.leave(self.level, self.lane, self.flow)
            else:
                waiting.cancel()
            self.lane = ""
        if self.body_bytes:
            self.flows.release_body(self.level, self.flow, self.body_bytes)
            self.body_bytes = 0
