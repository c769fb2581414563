"""The page's server: its files, logins, streams and questions, over https."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from aiohttp import web

from situate.kube.access import Access
from situate.kube.errors import ApiError
from situate.kube.kinds import WatchedKind
from situate.loop.logs import Log
from situate.web.answers import Answers
from situate.web.assets import PAGE, read_assets, respond
from situate.web.desk import Desk
from situate.web.grants import GrantFolder
from situate.web.guard import LOGIN, Guard, json_body, refusal
from situate.web.limits import (
    KEEP_ALIVE_S,
    LOGIN_S,
    MAX_BODY_BYTES,
    MAX_STREAMS,
    MAX_STREAMS_PER_LOGIN,
    WAITING_S,
    WRITE_S,
)
from situate.web.logins import Login, Logins, Person
from situate.web.model import ClusterModel, ModelEndedError
from situate.web.models import Models, ModelsFullError
from situate.web.rights import user_name
from situate.web.streams import COMMENT, VIEWS, Reading, SummaryReading, event
from situate.wire.errors import InputError

PAGES: Final = (
    "/",
    "/login",
    "/map",
    "/waiting",
    "/placements",
    "/preemptions",
    "/gangs",
    "/probe",
    "/why/{namespace}/{pod}",
)
"""All of them are the one page, whose script shows what the address names."""
SHUTDOWN_S: Final = 2.0
HEADER_BYTES: Final = 16 << 10
BACKLOG: Final = 128

_log = Log(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    own: Access
    """How we reach the API server ourselves."""
    load_desk: Callable[[], Desk]
    """Imports what answers questions."""
    kinds: Sequence[WatchedKind]
    """What a model watches."""
    grants: GrantFolder
    tls: ssl.SSLContext
    cluster: str
    """Its name for people."""
    names: tuple[str, ...] = ()
    """Other host names of ours, beside this machine's loopback."""
    login_s: float = LOGIN_S
    on_login: Callable[[], None] = lambda: None
    """A link was used."""


class PageServer:
    """Use in `async with`, on a socket that listens."""

    def __init__(self, settings: PageSettings, listening: socket.socket) -> None:
        self._settings = settings
        self._socket = listening
        self.logins = Logins(life_s=settings.login_s)
        self.models = Models(settings.own, settings.load_desk, settings.kinds)
        self._guard = Guard(self.logins, settings.names)
        self._guard.port = listening.getsockname()[1]
        self._assets = read_assets()
        self._streams = 0
        answers = Answers(self.models)
        application = web.Application(middlewares=[self._guard.check, _errors], client_max_size=MAX_BODY_BYTES)
        application.on_response_prepare.append(self._guard.add_headers)
        routes = application.router
        for path in PAGES:
            routes.add_get(path, self._page)
        routes.add_get("/favicon.ico", self._icon)
        routes.add_get("/assets/{name}", self._asset)
        routes.add_post("/api/login", self._log_in)
        routes.add_post("/api/logout", self._log_out)
        routes.add_get("/api/me", self._me)
        routes.add_get("/stream/{view}", self._stream)
        answers.add_to(routes)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=SHUTDOWN_S, max_field_size=HEADER_BYTES
        )

    async def __aenter__(self) -> PageServer:
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket, ssl_context=self._settings.tls, backlog=BACKLOG).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        await self.models.aclose()

    @property
    def idle(self) -> bool:
        """Whether nobody is logged in, and nobody looks."""
        return not self._streams and not self.logins.any_left()

    # -- files ---------------------------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.Response:
        return respond(self._assets[PAGE], request)

    async def _icon(self, request: web.Request) -> web.Response:
        return respond(self._assets["icon.svg"], request)

    async def _asset(self, request: web.Request) -> web.Response:
        found = self._assets.get(request.match_info["name"])
        return respond(found, request) if found is not None else refusal(404, "there is no such file")

    # -- logins --------------------------------------------------------------------------------------------------

    async def _log_in(self, request: web.Request) -> web.Response:
        """By the token of a link, or by a bearer token of the API server."""
        if not self.logins.may_try():
            return refusal(429, "too many attempts to log in failed; wait a minute")
        body = await json_body(request)
        link, bearer = str(body.get("link") or ""), str(body.get("token") or "")
        if bearer:
            person = Person(token=bearer, namespace=str(body.get("namespace") or ""))
        else:
            grant = self._settings.grants.redeem(link)
            if grant is None:
                self.logins.failed()
                return refusal(403, "this link was used already, or has expired; `situate web --login` makes a new one")
            person = Person(grant.user, grant.groups, namespace=grant.namespace)
        try:
            async with self.models.client(person) as client:
                name = await user_name(client)
        except (ApiError, ValueError) as error:
            self.logins.failed()
            return refusal(403, f"the API server does not accept this login: {error}")
        cookie, login = self.logins.begin(person, name or person.user)
        if not bearer:
            self._settings.on_login()
        _log.info("Somebody logged in", user=login.name)
        response = web.json_response(self._described(login))
        self._guard.set_cookie(response, cookie, self._settings.login_s)
        return response

    async def _log_out(self, request: web.Request) -> web.Response:
        self.logins.end(request.cookies.get(self._guard.cookie, ""))
        response = web.json_response({})
        self._guard.set_cookie(response, "", 0)
        return response

    async def _me(self, request: web.Request) -> web.Response:
        return web.json_response(self._described(request[LOGIN]))

    def _described(self, login: Login) -> dict[str, Any]:
        return {
            "user": login.name,
            "cluster": self._settings.cluster,
            "server": self._settings.own.server,
            "secondsLeft": int(self.logins.left_s(login)),
        }

    # -- streams -------------------------------------------------------------------------------------------------

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        login, view = request[LOGIN], VIEWS.get(request.match_info["view"])
        if view is None:
            return refusal(404, "there is no such view")
        if self._streams >= MAX_STREAMS or login.streams >= MAX_STREAMS_PER_LOGIN:
            return refusal(429, "too many pages are open")
        self._streams += 1
        login.streams += 1
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        try:
            await response.prepare(request)
            try:
                async with self.models.of(login.person, whole=False) as kept:
                    readings: list[Reading] = [SummaryReading(kept.model), view(kept.model)]
                    while await self._send(response, login, kept.model, readings):
                        pass
            except (ApiError, ModelEndedError, ModelsFullError) as error:
                await response.write(event("ended", {"why": str(error)}))
            return response
        except (ConnectionError, TimeoutError):
            return response  # the reader is gone, or takes nothing
        finally:
            self._streams -= 1
            login.streams -= 1

    async def _send(
        self, response: web.StreamResponse, login: Login, model: ClusterModel, readings: list[Reading]
    ) -> bool:
        """Send what there is, and wait for more; whether there can be more."""
        tick, left_s = model.tick, self.logins.left_s(login)
        if left_s <= 0:
            await response.write(event("expired", {"why": "your login has expired"}))
            return False
        data = b"".join([one.next() for one in readings])
        async with asyncio.timeout(WRITE_S):
            if data:
                await response.write(data)
        if model.ended:
            await response.write(event("ended", {"why": model.ended}))
            return False
        wait_s = min(left_s, WAITING_S if any(one.late for one in readings) else KEEP_ALIVE_S)
        if not await model.after(tick, wait_s) and wait_s == KEEP_ALIVE_S:
            async with asyncio.timeout(WRITE_S):
                await response.write(COMMENT)
        return True


@web.middleware
async def _errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """One line for whatever goes wrong; never a traceback."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return refusal(error.status, error.reason)
    except InputError as error:
        return refusal(400, str(error))
    except ModelsFullError as error:
        return refusal(503, str(error))
    except ModelEndedError as error:
        return refusal(503, str(error))
    except ApiError as error:
        return refusal(error.status if error.status in (401, 403, 404) else 502, error.message)
    except TimeoutError:
        return refusal(504, "the answer took too long")
