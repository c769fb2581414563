"""The filters of every request: URL, authentication, impersonation, limits, authorization; then the handler.

A request takes a slot once its body has been read, so that a client which never sends it holds a connection and nothing
else.

Every error becomes a response with a Status. A bug in the server is logged, counted and answered with 500.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from time import perf_counter
from typing import Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError
from msgspec.structs import replace

from situate.loop.fair_slots import QueueFullError
from situate.loop.logs import Log
from situate.server.errors import StatusError, bad_request
from situate.server.http import query as queries
from situate.server.http.connection import Connection
from situate.server.http.flow_control import (
    ANONYMOUS,
    EXEMPT,
    HEALTH,
    MUTATING,
    READ_ONLY,
    SYSTEM,
    WORKLOAD,
    FlowControl,
    flow_of,
)
from situate.server.http.host_allowlist import HostAllowlist
from situate.server.http.metrics import RequestLabels, RequestMetrics
from situate.server.http.pod_streams import STREAMING
from situate.server.http.ports import Gate
from situate.server.http.presentation import present
from situate.server.http.query import Query
from situate.server.http.request_state import RequestState
from situate.server.http.responses import Response, compress, status_response, warning_headers
from situate.server.http.routing import Router
from situate.server.http.settings import Limits
from situate.server.http.tunnels import wants_upgrade
from situate.server.http.urls import PROXY, RequestUrl, parse_url, verb_of
from situate.server.identity.audit.event import MAX_BODY_BYTES, AuditRecord
from situate.server.identity.authorization.attributes import Attributes
from situate.server.registry.store_errors import status_error
from situate.server.registry.warning import collect_annotations, collecting
from situate.server.requests import Caller
from situate.store.errors import StoreError

STOPPING: Final = "the server is shutting down"
LATE: Final = "the request did not finish within its time limit"
PANIC: Final = "A request failed because of a bug in the server"
INTERNAL: Final = "an error on the server: see request {id} in its log"
CHECK_CREDENTIALS_S: Final = 5.0
"""How often to check whether the callers of watches and followed logs are still known."""
TUNNELS: Final = frozenset((*STREAMING, PROXY))
"""Subresources whose requests are connections to nodes."""
_READS: Final = ("get", "list", "watch", "head", "options")
_SHOWN: Final = {"create": "POST", "update": "PUT"}
_OPENAPI: Final = "/openapi"
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_log = Log(__name__)


class RequestFilters:
    def __init__(
        self,
        routing: Router,
        gate: Gate,
        hosts: HostAllowlist,
        metrics: RequestMetrics,
        limits: Limits,
        flows: FlowControl,
        wall_ns: Callable[[], int],
    ) -> None:
        self._routing = routing
        self._gate = gate
        self._hosts = hosts
        self._metrics = metrics
        self._limits = limits
        self._flows = flows
        self._wall_ns = wall_ns
        self._running: dict[asyncio.Task[object], RequestState] = {}
        self._numbers = itertools.count(1)
        run = secrets.token_hex(8)
        self._run = f"{run[:8]}-{run[8:12]}-4{run[12:15]}-8{run[13:16]}-"
        self.stopping = False
        self._next_check = 0.0

    @property
    def running(self) -> int:
        """Requests being served, including watches."""
        return len(self._running)

    # -- one request ---------------------------------------------------------------------------------------------

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        state = RequestState(self._id(request), perf_counter(), self._wall_ns(), self._flows, self._metrics.in_flight)
        task = cast("asyncio.Task[object]", request.task)
        self._running[task] = state
        warnings: list[str] = []
        collect_annotations(state.annotations)
        try:
            with collecting() as warnings:
                response = await self._handle(request, state)
        except asyncio.CancelledError:
            if not state.late:
                raise
            task.uncancel()
            queued = state.waiting is not None and state.waiting.cancelled()
            error = self._flows.refused("wait") if queued else StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", LATE)
            response = status_response(error)
            response.close = True
        finally:
            del self._running[task]
            self._leave(state)
        if warnings and not response.written:
            response.headers += warning_headers(warnings)
        response.headers += f"Audit-Id: {state.id}\r\n"
        if self.stopping:
            response.close = True
        if response.code == HTTPStatus.TOO_MANY_REQUESTS:
            response.pause_s = max(state.pause_s, self._limits.refused_pause_s)
        elif state.pause_s:
            response.pause_s = state.pause_s
        self._record(request, state, response)
        return cast(web.StreamResponse, response)

    async def _handle(self, request: web.BaseRequest, state: RequestState) -> Response:
        """A response, whatever happens."""
        try:
            return await self._filtered(request, state)
        except StatusError as error:
            response = await self._presented(request, state, status_response(error))
            if state.caller is None:  # it failed before or during authentication
                self._spend_budget(request, state)
        except StoreError as error:
            response = status_response(status_error(error))
        except (RequestPayloadError, HttpProcessingError) as error:
            response = status_response(bad_request(f"the body of the request could not be read: {error}"))
            response.close = True
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - the last line of defence: one request must not take the server down
            self._metrics.panics += 1
            keys = {"request": state.id, "method": request.method, "path": state.url.path or request.raw_path}
            frame = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {error}"
            _log.error(PANIC, err=what, at=f"{Path(frame.filename).name}:{frame.lineno}", **keys)
            text = INTERNAL.format(id=state.id)
            response = status_response(StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", text))
        # Do not read the rest of the body of a request that was refused.
        response.close = response.close or not request.content.is_eof()
        return response

    async def _filtered(self, request: web.BaseRequest, state: RequestState) -> Response:
        # 1. The URL.
        headers = request.headers
        raw_path, _, raw_query = request.raw_path.partition("?")
        self._hosts.check(headers.get("Host", ""))
        state.url = url = self._routing.resolve(parse_url(raw_path))
        state.query = query = queries.parse_query(raw_query)
        watch = url.plural != "" and queries.flag(query, "watch") is True
        verb = verb_of(request.method, url, watch)
        state.attributes = _attributes(verb, url, query)
        # 2. Authentication.
        agent = headers.get("User-Agent", "")
        if not agent.isascii():  # it may have any bytes, and is written into objects
            agent = agent.encode(errors="surrogateescape").decode(errors="replace")
        peer = request.protocol.certificate() if isinstance(request.protocol, Connection) else None
        state.caller = caller = self._gate.authenticate(peer, headers.get("Authorization", ""), agent)
        # 3. Impersonation.
        if _impersonates(headers):
            state.caller = self._gate.impersonate(caller, headers.items())
            state.impersonator, caller = caller, state.caller
        # 4. Limits.
        self._limit(request, state, verb, state.impersonator or caller)
        if state.long_running:
            state.credentials = (peer, headers.get("Authorization", ""))
        lane = READ_ONLY if verb in _READS else MUTATING
        # The handler of a write takes the slot when it has read the body.
        if lane == READ_ONLY and not state.long_running and (waiting := state.enter(lane)) is not None:
            await waiting
        # 5. Authorization.
        try:
            self._gate.authorize(caller, state.attributes)
            if url.subresource in TUNNELS and verb == "get" and _enters(url, request):
                self._gate.authorize(caller, state.attributes._replace(verb="create"))
        except StatusError:
            state.decision = "forbid"
            if state.level == WORKLOAD and not self._flows.may_be_refused(state.flow, state.started):
                state.pause_s = self._limits.refused_pause_s
            # Sending a refusal takes a turn, too.
            if not state.lane and not state.long_running and (waiting := state.enter(lane)) is not None:
                await waiting
            raise
        state.decision = "allow"
        # 6. The handler.
        if state.long_running and self._gate.audit.has_policy:
            self._start_stream(request, state)
        response = await self._routing.handle(request, url, verb, query, caller, state)
        if response.is_large:
            await self._take_turn(state, response)
        state.response = response.body
        response = await self._presented(request, state, response)
        encoding = headers.get("Accept-Encoding", "")
        if encoding and response.code == HTTPStatus.OK:
            limits = self._limits
            return await compress(response, encoding, limits.gzip_bytes, limits.gzip_thread_bytes)
        return response

    async def _presented(self, request: web.BaseRequest, state: RequestState, response: Response) -> Response:
        if state.url.path.startswith(_OPENAPI):
            return response
        headers = request.headers
        return await present(response, headers.get("Accept", ""), state.query, headers.get("User-Agent", ""))

    async def _take_turn(self, state: RequestState, response: Response) -> None:
        """Few large lists are sent at the same time, and users take turns. Raises StatusError (429)."""
        flows, flow = self._flows, state.flow
        lists = flows.system_large_lists if state.level in (EXEMPT, SYSTEM) else flows.large_lists
        try:
            waiting = lists.enter(flow)
        except QueueFullError:
            raise self._flows.refused("largeLists") from None
        if waiting is not None:
            try:
                await waiting
            except asyncio.CancelledError:
                if not waiting.cancelled():
                    lists.leave(flow)
                raise
        response.on_sent = partial(lists.leave, flow)

    def _limit(self, request: web.BaseRequest, state: RequestState, verb: str, sender: Caller) -> None:
        """Find the level and the flow of a request. Raises StatusError."""
        if self.stopping:
            text = STOPPING
            raise StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", text, retry_after_s=1)
        url = state.url
        state.level, state.flow = flow_of(sender)
        if isinstance(request.protocol, Connection):
            request.protocol.serves(state.level, state.flow)
        if state.level == ANONYMOUS:
            state.flow = request.remote or ""
            if not url.plural and url.path.startswith(_HEALTH):
                state.level = HEALTH
            elif not self._spend_budget(request, state):
                raise self._flows.refused("anonymous")
        state.long_running = verb == "watch" or url.subresource == "log" or url.subresource in TUNNELS
        if state.long_running:
            self._flows.open_stream(state.level, state.flow, state.started)
            if url.subresource in TUNNELS:
                self._open_tunnel(state)
            state.labels = what = self._labels(state)
            self._metrics.long_running[what] = self._metrics.long_running.get(what, 0) + 1
        elif asked_s := queries.timeout_s(state.query):
            state.limit_s = asked_s

    def _open_tunnel(self, state: RequestState) -> None:
        try:
            self._flows.open_tunnel(state.level, state.flow)
        except StatusError:
            self._flows.close_stream(state.level, state.flow)
            raise
        state.tunnel = True

    def _spend_budget(self, request: web.BaseRequest, state: RequestState) -> bool:
        """Count a request without valid credentials in the budget of its address. Beyond it, its connection pauses."""
        if self._flows.within_budget(request.remote or "", state.started):
            return True
        state.pause_s = self._limits.anonymous_pause_s
        return False

    def _leave(self, state: RequestState) -> None:
        state.leave()
        if state.labels is not None:
            self._metrics.long_running[state.labels] -= 1
            self._flows.close_stream(state.level, state.flow)
        if state.tunnel:
            self._flows.close_tunnel(state.level, state.flow)

    # -- afterwards ----------------------------------------------------------------------------------------------

    def _record(self, request: web.BaseRequest, state: RequestState, response: Response) -> None:
        what = self._labels(state)
        self._metrics.observe(what, response.code, None if state.long_running else perf_counter() - state.started)
        record = self._audit_record(request, state, response.code, response.reason)
        if self._gate.audit.has_policy:
            body = state.response if state.response is not None else response.body
            record = replace(
                record,
                content_type=request.headers.get("Content-Type", ""),
                request=state.body,
                response=_joined(body),
            )
        self._gate.audit.record(record)

    def _start_stream(self, request: web.BaseRequest, state: RequestState) -> None:
        self._gate.audit.start_stream(self._audit_record(request, state, HTTPStatus.OK, ""))

    def _audit_record(self, request: web.BaseRequest, state: RequestState, code: int, reason: str) -> AuditRecord:
        remote = request.remote
        return AuditRecord(
            state.impersonator or state.caller,
            state.attributes,
            request.raw_path,
            code,
            state.received_ns,
            state.url.version,
            state.id,
            request.headers.get("User-Agent", ""),
            (remote,) if remote else (),
            state.caller if state.impersonator is not None else None,
            state.decision,
            reason,
            state.long_running,
            annotations=state.annotations,
        )

    def _labels(self, state: RequestState) -> RequestLabels:
        """The labels of a request. A path that is not served has none, so that clients cannot create series."""
        url, resource = state.url, state.url.resource
        verb = _SHOWN.get(state.attributes.verb, state.attributes.verb.upper())
        if resource is None:
            known = verb in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
            return (verb if known else "other", "", "", "", "", "")
        scope = "cluster" if not url.namespace else "resource" if url.name else "namespace"
        return (verb, resource.group, resource.version, resource.plural, url.subresource, scope)

    def _id(self, request: web.BaseRequest) -> str:
        """The client's Audit-Id, if it has one that is safe to show."""
        given = request.headers.get("Audit-Id", "")
        if given and len(given) <= 64 and given.replace("-", "").isalnum() and given.isascii():
            return given
        return f"{self._run}{next(self._numbers):012x}"

    # -- time ----------------------------------------------------------------------------------------------------

    def sweep(self, now: float) -> None:
        """Cancel requests that take too long. `now` is a time of perf_counter."""
        if now >= self._next_check:
            self._next_check = now + CHECK_CREDENTIALS_S
            self._end_unknown()
        oldest_body = now - self._limits.body_s
        for task, state in list(self._running.items()):
            if state.long_running or state.late:
                continue
            limit_s = min(state.limit_s, self._limits.request_s)
            if state.started < now - limit_s or (state.reading and state.started < oldest_body):
                state.late = True
                task.cancel()

    def _end_unknown(self) -> None:
        """End watches and logs whose callers were revoked, or have expired. The client's next request is refused."""
        known: dict[tuple[bytes | None, str], bool] = {}  # many watches have the same credentials
        for task, state in list(self._running.items()):
            if state.credentials is not None:
                if state.credentials not in known:
                    known[state.credentials] = self._is_known(*state.credentials)
                if not known[state.credentials]:
                    state.credentials = None
                    task.cancel()

    def _is_known(self, peer: bytes | None, authorization: str) -> bool:
        try:
            self._gate.authenticate(peer, authorization)
        except StatusError:
            return False
        return True


def _joined(body: object) -> bytes | None:
    """A body for the audit log; None if it is too long, or is made while it is sent."""
    if isinstance(body, bytes):
        return body
    if isinstance(body, list | tuple) and sum(map(len, body)) <= MAX_BODY_BYTES:
        return b"".join(body)
    return None


def _enters(url: RequestUrl, request: web.BaseRequest) -> bool:
    """Whether a GET needs the right to create as well: it opens a stream into a container or a node."""
    return url.subresource != PROXY or wants_upgrade(request)


def _impersonates(headers: Iterable[str]) -> bool:
    return any(name[:1] in "iI" and name.lower().startswith("impersonate-") for name in headers)


def _attributes(verb: str, url: RequestUrl, query: Query) -> Attributes:
    """The attributes of a request for the authorizer."""
    if not url.plural:
        return Attributes(verb, path=url.path)
    name, fields = url.name, ""
    if query and not name:
        name = queries.name_in(query)
        fields = query.get("fieldSelector", "")
    return Attributes(verb, url.group, url.plural, url.subresource, url.namespace, name, "", fields)
