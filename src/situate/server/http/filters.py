"""What every request passes, in this order: where to, who, in the name of whom, is there room, may they, then the work.

Whatever goes wrong on the way is an answer with a Status. A fault of our own is one line in the log, a 500 and a count.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import traceback
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from time import perf_counter
from typing import Final, cast

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError
from msgspec import Struct

from situate.loop.logs import Log
from situate.server.errors import StatusError, bad_request, too_many_requests
from situate.server.http import query as queries
from situate.server.http.connection import Connection
from situate.server.http.host_allowlist import Hosts
from situate.server.http.metrics import Meter, What
from situate.server.http.ports import Gate
from situate.server.http.query import Query
from situate.server.http.responses import Answer, compressed, of_status, warning
from situate.server.http.routing import Routing
from situate.server.http.settings import Limits
from situate.server.http.urls import NO_PLACE, Place, located, verb_of
from situate.server.identity.attributes import Attributes
from situate.server.registry.store_errors import status_error
from situate.server.registry.warning import collecting
from situate.server.requests import Caller
from situate.store.errors import StoreError

__all__ = ["Front"]

SYSTEM: Final = "system:masters"
BUSY: Final = "too many requests, please try again later"
STOPPING: Final = "the server is shutting down"
LATE: Final = "the request did not finish within the time that it may take"
PANIC: Final = "A request failed for a fault of the server"
INTERNAL: Final = "an error on the server: its log has more under request {id}"
_READS: Final = ("get", "list", "watch", "head", "options")
_SHOWN: Final = {"create": "POST", "update": "PUT"}
_NOTHING: Final = Attributes("")
_log = Log(__name__)


class Call(Struct):
    """What is known about a request so far: for its log line, the audit and the counts."""

    id: str
    began: float
    received_ns: int
    place: Place = NO_PLACE
    query: Query = msgspec.field(default_factory=dict)
    asked: Attributes = _NOTHING
    caller: Caller | None = None
    speaker: Caller | None = None
    """Who was authenticated, if the caller is somebody that they speak for."""
    decision: str = ""
    lane: str = ""
    long: bool = False
    """A watch, or a log that is followed: it may last, and is not counted as in flight."""
    counted: What | None = None
    late: bool = False


class Front:
    def __init__(
        self,
        routing: Routing,
        gate: Gate,
        hosts: Hosts,
        meter: Meter,
        limits: Limits,
        wall_ns: Callable[[], int],
    ) -> None:
        self._routing = routing
        self._gate = gate
        self._hosts = hosts
        self._meter = meter
        self._limits = limits
        self._wall_ns = wall_ns
        self._running: dict[asyncio.Task[object], Call] = {}
        self._numbers = itertools.count(1)
        run = secrets.token_hex(8)
        self._run = f"{run[:8]}-{run[8:12]}-4{run[12:15]}-8{run[13:16]}-"
        self.stopping = False
        self._most = {"readOnly": limits.reads, "mutating": limits.writes}

    @property
    def running(self) -> int:
        """Requests that are being answered, watches among them."""
        return len(self._running)

    # -- one request ---------------------------------------------------------------------------------------------

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        call = Call(self._id(request), perf_counter(), self._wall_ns())
        task = cast("asyncio.Task[object]", request.task)
        self._running[task] = call
        warnings: list[str] = []
        try:
            with collecting() as warnings:
                answer = await self._guarded(request, call)
        except asyncio.CancelledError:
            if not call.late:
                raise
            task.uncancel()
            answer = of_status(StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", LATE))
            answer.close = True
        finally:
            del self._running[task]
            self._leave(call)
        if warnings and not answer.written:
            answer.headers += warning(warnings)
        answer.headers += f"Audit-Id: {call.id}\r\n"
        if self.stopping:
            answer.close = True
        self._note(request, call, answer)
        return cast(web.StreamResponse, answer)

    async def _guarded(self, request: web.BaseRequest, call: Call) -> Answer:
        """An answer, whatever happens."""
        try:
            return await self._filtered(request, call)
        except StatusError as error:
            answer = of_status(error)
        except StoreError as error:
            answer = of_status(status_error(error))
        except (RequestPayloadError, HttpProcessingError) as error:
            answer = of_status(bad_request(f"the body of the request could not be read: {error}"))
            answer.close = True
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - the last line of defence: one request must not take the server down
            self._meter.panics += 1
            keys = {"request": call.id, "method": request.method, "path": call.place.path or request.raw_path}
            frame = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {error}"
            _log.error(PANIC, err=what, at=f"{Path(frame.filename).name}:{frame.lineno}", **keys)
            text = INTERNAL.format(id=call.id)
            answer = of_status(StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", text))
        # What is still to come of a body is not read to its end for a client that was refused.
        answer.close = answer.close or not request.content.is_eof()
        return answer

    async def _filtered(self, request: web.BaseRequest, call: Call) -> Answer:
        # 1. Where to.
        headers = request.headers
        raw_path, _, raw_query = request.raw_path.partition("?")
        self._hosts.check(headers.get("Host", ""))
        call.place = place = located(raw_path)
        call.query = query = queries.parsed(raw_query)
        watch = place.plural != "" and queries.flag(query, "watch") is True
        verb = verb_of(request.method, place, watch)
        call.asked = _attributes(verb, place, query)
        # 2. Who.
        agent = headers.get("User-Agent", "")
        peer = request.protocol.certificate() if isinstance(request.protocol, Connection) else None
        call.caller = caller = self._gate.authenticate(peer, headers.get("Authorization", ""), agent)
        # 3. In the name of whom.
        if _impersonates(headers):
            call.caller = self._gate.impersonate(caller, headers.items())
            call.speaker, caller = caller, call.caller
        # 4. Is there room.
        call.long = verb == "watch" or (place.subresource == "log" and queries.flag(query, "follow") is True)
        self._enter(call, verb, caller)
        # 5. May they.
        try:
            self._gate.authorize(caller, call.asked)
        except StatusError:
            call.decision = "forbid"
            raise
        call.decision = "allow"
        # 6. The work.
        answer = await self._routing.answer(request, place, verb, query, caller, call.id)
        encoding = headers.get("Accept-Encoding", "")
        if encoding and answer.code == HTTPStatus.OK:
            limits = self._limits
            return await compressed(answer, encoding, limits.gzip_bytes, limits.gzip_thread_bytes)
        return answer

    def _enter(self, call: Call, verb: str, caller: Caller) -> None:
        if self.stopping:
            text = STOPPING
            raise StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", text, retry_after_s=1)
        if call.long:
            call.counted = what = self._what(call)
            self._meter.long_running[what] = self._meter.long_running.get(what, 0) + 1
            return
        lane = "readOnly" if verb in _READS else "mutating"
        if self._meter.in_flight[lane] >= self._most[lane] and SYSTEM not in caller.groups:
            self._meter.refuse(lane)
            raise too_many_requests(BUSY, retry_after_s=1)
        self._meter.in_flight[lane] += 1
        call.lane = lane

    def _leave(self, call: Call) -> None:
        if call.lane:
            self._meter.in_flight[call.lane] -= 1
        if call.counted is not None:
            self._meter.long_running[call.counted] -= 1

    # -- afterwards ----------------------------------------------------------------------------------------------

    def _note(self, request: web.BaseRequest, call: Call, answer: Answer) -> None:
        what = self._what(call)
        self._meter.note(what, answer.code, None if call.long else perf_counter() - call.began)
        remote = request.remote
        self._gate.audit.record(
            call.speaker or call.caller,
            call.asked,
            uri=request.raw_path,
            code=answer.code,
            received_ns=call.received_ns,
            version=call.place.version,
            audit_id=call.id,
            agent=request.headers.get("User-Agent", ""),
            sources=(remote,) if remote else (),
            impersonated=call.caller if call.speaker is not None else None,
            decision=call.decision,
            reason=answer.reason,
        )

    def _what(self, call: Call) -> What:
        """The labels of a request in the counts. What is not served has no name there: clients must not make series."""
        place, resource = call.place, call.place.resource
        verb = _SHOWN.get(call.asked.verb, call.asked.verb.upper())
        if resource is None:
            known = verb in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
            return (verb if known else "other", "", "", "", "", "")
        scope = "cluster" if not place.namespace else "resource" if place.name else "namespace"
        return (verb, resource.group, resource.version, resource.plural, place.subresource, scope)

    def _id(self, request: web.BaseRequest) -> str:
        """The client's own, if it gave one that is fit to be shown."""
        given = request.headers.get("Audit-Id", "")
        if given and len(given) <= 64 and given.replace("-", "").isalnum() and given.isascii():
            return given
        return f"{self._run}{next(self._numbers):012x}"

    # -- time ----------------------------------------------------------------------------------------------------

    def sweep(self, now: float) -> None:
        """End requests that take too long. `now` is of the clock that perf_counter is."""
        oldest = now - self._limits.request_s
        for task, call in list(self._running.items()):
            if not call.long and call.began < oldest and not call.late:
                call.late = True
                task.cancel()


def _impersonates(headers: Iterable[str]) -> bool:
    return any(name[:1] in "iI" and name.lower().startswith("impersonate-") for name in headers)


def _attributes(verb: str, place: Place, query: Query) -> Attributes:
    """What is asked, as an authorizer sees it."""
    if not place.plural:
        return Attributes(verb, path=place.path)
    name, fields = place.name, ""
    if query and not name:
        name = queries.name_in(query)
        fields = query.get("fieldSelector", "")
    return Attributes(verb, place.group, place.plural, place.subresource, place.namespace, name, "", fields)
