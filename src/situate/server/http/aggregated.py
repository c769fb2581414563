"""Serves aggregated APIs: a request that is authorized here is passed on to the API server behind the APIService, with
its user in headers.
"""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from aiohttp import web

from situate.server.admission.webhooks.client import CallError
from situate.server.admission.webhooks.endpoints import UnresolvedError
from situate.server.aggregation.apis import AggregatedApi, AggregatedApis
from situate.server.aggregation.connector import ApiServerConnector, user_headers
from situate.server.errors import StatusError, bad_request
from situate.server.http import bodies
from situate.server.http.flow_control import MUTATING
from situate.server.http.forwarding import forward, forwarded_headers, unreached
from situate.server.http.request_state import RequestState
from situate.server.http.responses import Response
from situate.server.http.streams import OpenStreams
from situate.server.http.tunnels import wants_upgrade
from situate.server.kubelet.connection import NodeConnection
from situate.server.requests import Caller

REQUESTS_PER_API: Final = 100
"""Requests to one API at the same time, watches included: a server that never answers keeps no more of them waiting."""
UNAVAILABLE: Final = "the API {0}.{1} is not available: {2}"
BUSY: Final = "too many requests wait for the API {0}.{1}"
NO_UPGRADES: Final = "requests with an Upgrade header are not passed on to aggregated APIs"
DOTS: Final = "the path has a segment . or .., which is not passed on to aggregated APIs"
REMOTE: Final = "x-remote-"
_SEGMENTS: Final = frozenset((".", ".."))
_BODIES: Final = ("POST", "PUT", "PATCH", "DELETE")


class AggregationHandler:
    def __init__(self, apis: AggregatedApis, connector: ApiServerConnector, streams: OpenStreams, most: int) -> None:
        """`most`: bytes of a body."""
        self.apis = apis
        self._connector = connector
        self._streams = streams
        self._most = most
        self._running: Counter[str] = Counter()

    async def handle(
        self, http: web.BaseRequest, api: AggregatedApi, caller: Caller, state: RequestState, target: str, headers: str
    ) -> Response:
        """`target`: the path on the other server. `headers`: further ones of the response. Raises StatusError."""
        if wants_upgrade(http):
            raise bad_request(NO_UPGRADES)
        if not _SEGMENTS.isdisjoint(unquote(target.partition("?")[0]).split("/")):
            raise bad_request(DOTS)  # the other server may take the path for another than the one that was authorized
        if api.problem:
            raise _unavailable(UNAVAILABLE.format(api.version, api.group, api.problem))
        given = [one for one in forwarded_headers(http) if not one[0].lower().startswith(REMOTE)]
        try:
            given += user_headers(caller)
        except ValueError as error:
            raise bad_request(f"the user cannot be named in a header: {error}") from None
        if self._running[api.name] >= REQUESTS_PER_API:
            text = BUSY.format(api.version, api.group)
            raise StatusError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", text, retry_after_s=1)
        self._running[api.name] += 1
        try:
            body = b""
            if http.method in _BODIES:
                body = state.body = await bodies.read_body(http, self._most, state)
                if (waiting := state.enter(MUTATING)) is not None:
                    await waiting
            connection = await self._connect(api)
            try:
                return await forward(self._streams, http, connection, target, given, body, headers, may_redirect=False)
            finally:
                connection.abort()
        finally:
            self._running[api.name] -= 1
            if not self._running[api.name]:
                del self._running[api.name]

    async def _connect(self, api: AggregatedApi) -> NodeConnection:
        try:
            return await self._connector.connect(api)
        except (CallError, UnresolvedError) as error:
            raise _unavailable(UNAVAILABLE.format(api.version, api.group, error)) from None
        except (OSError, TimeoutError) as error:
            raise unreached(str(error) or "no answer in time") from None


def _unavailable(text: str) -> StatusError:
    return StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", text, retry_after_s=1)
