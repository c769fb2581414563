"""What every request to the page goes through: its Host, its Origin, its login; and the headers of every response.

- The Host must be a name of ours, so that no other name can be bound to our address (DNS rebinding).
- A request that changes something must come from our own origin, and a script of another site may read nothing.
- The browser runs our own files alone, frames us nowhere, and asks nobody else for anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from situate.server.errors import StatusError
from situate.server.http.host_allowlist import HostAllowlist
from situate.web.logins import Login, Logins
from situate.wire.errors import InputError

LOGIN: Final[web.RequestKey[Login]] = web.RequestKey("login", Login)
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}
OPEN: Final = ("/api/login",)
"""What needs no login, beside the files of the page itself."""
GUARDED: Final = ("/api/", "/stream/")
SAFE: Final = ("GET", "HEAD")
OWN_SITE: Final = ("same-origin", "none")
"""`none`: somebody typed the address."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def refusal(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)


async def json_body(request: web.Request) -> dict[str, Any]:
    """Raises InputError."""
    try:
        return msgspec.json.decode(await request.read(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InputError("the body is not a JSON object") from None


class Guard:
    """The middleware, and the cookie."""

    def __init__(self, logins: Logins, names: Iterable[str] = ()) -> None:
        self._logins = logins
        self._hosts = HostAllowlist(names)
        self.port = 0
        """Set when it is known. Cookies do not tell ports apart, so the name of ours does."""

    @property
    def cookie(self) -> str:
        return f"__Host-situate-{self.port}"

    def set_cookie(self, response: web.StreamResponse, value: str, life_s: float) -> None:
        """`__Host-` makes browsers insist on https, and on this host alone."""
        response.set_cookie(
            self.cookie, value, max_age=int(life_s), path="/", secure=True, httponly=True, samesite="Strict"
        )

    async def add_headers(self, _request: web.Request, response: web.StreamResponse) -> None:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.popall("Server", None)

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._hosts.check(request.headers.get("Host", ""))
        except StatusError as error:
            return refusal(error.code, error.message)
        if request.path.startswith(GUARDED):
            if (problem := self._of_another_site(request)) is not None:
                return problem
            if request.path not in OPEN:
                login = self._logins.find(request.cookies.get(self.cookie, ""))
                if login is None:
                    return refusal(401, "you are not logged in, or your login has expired")
                request[LOGIN] = login
        return await handler(request)

    def _of_another_site(self, request: web.Request) -> web.Response | None:
        site = request.headers.get("Sec-Fetch-Site", "")
        if site and site not in OWN_SITE:
            return refusal(403, "the request comes from another site")
        if request.method in SAFE:
            return None
        origin = urlsplit(request.headers.get("Origin", ""))
        if origin.scheme != "https" or origin.netloc != request.headers.get("Host", ""):
            return refusal(403, "the request does not come from this page")
        if request.content_type != "application/json":
            return refusal(415, "the body must be JSON")
        return None
