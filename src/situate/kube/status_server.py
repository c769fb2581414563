"""The scheduler's own port: health, metrics and configuration over TLS. Read-only.

The API server decides who may read (see delegated.py). Health checks are open to everybody, and tell only which check
failed.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web

from situate.kube.client import Client
from situate.kube.delegated import AUTHENTICATED, DelegatedAuthentication, DelegatedAuthorization, RequestUser
from situate.kube.errors import ApiError
from situate.kube.serving_certificate import pair_in, self_signed
from situate.kube.tls import pem_files
from situate.loop.health import PING, Check, report_all, report_one
from situate.loop.logs import Log
from situate.loop.watched import WatchedFile
from situate.wire.errors import InputError

PORT: Final = 10259
HEADER_BYTES: Final = 1 << 16
SHUTDOWN_S: Final = 5.0
TLS_VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
OLD_TLS: Final = ("VersionTLS10", "VersionTLS11")
CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
TEXT: Final = "text/plain"

Page = Callable[[], tuple[str, bytes]]
"""Returns a content type and a body."""

_log = Log(__name__)


class Connected(Protocol):
    """The part of a request that has the client's certificate."""

    def get_extra_info(self, name: str) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """The flags for the port."""

    address: str = "0.0.0.0"
    port: int = PORT
    cert_file: str = ""
    key_file: str = ""
    cert_dir: str = ""
    min_version: str = ""
    ciphers: tuple[str, ...] = ()
    client_ca_file: str = ""
    share_port: bool = False
    share_address: bool = False


class StatusServer:
    """Use in `async with`. Raises InputError for a port or a file that cannot be used."""

    def __init__(
        self,
        where: ListenSettings,
        authentication: DelegatedAuthentication,
        authorization: DelegatedAuthorization,
        checks: Mapping[str, Sequence[Check]],
        pages: Mapping[str, Page],
    ) -> None:
        """`checks` by the first part of the path: healthz, livez, readyz."""
        self._where = where
        self._authentication = authentication
        self._authorization = authorization
        self._checks = {f"/{name}": tuple(found) or (PING,) for name, found in checks.items()}
        self._pages = dict(pages)
        self._tls = _context(where)
        self._files = [WatchedFile(Path(name)) for name in (where.cert_file, where.key_file) if name]
        application = web.Application(middlewares=[self._guard])
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=SHUTDOWN_S, max_field_size=HEADER_BYTES
        )

    @property
    def port(self) -> int:
        """The actual port, if the setting was 0."""
        return int(self._runner.addresses[0][1])

    async def __aenter__(self) -> StatusServer:
        await self._runner.setup()
        where = self._where
        host = None if where.address in ("", "0.0.0.0", "::") else where.address
        site = web.TCPSite(
            self._runner,
            host,
            where.port,
            ssl_context=self._tls,
            reuse_port=where.share_port or None,
            reuse_address=where.share_address or None,
        )
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise InputError(_no_port(where, error)) from None
        _log.info("Serving securely", address=where.address, port=self.port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    # -- TLS -----------------------------------------------------------------------------------------------------

    def trust(self, authorities: str) -> None:
        """Accept client certificates of these authorities (PEM) on new connections. Raises InputError."""
        try:
            self._tls.load_verify_locations(cadata=authorities)
        except (ssl.SSLError, ValueError) as error:
            raise InputError(f"the client certificate authorities cannot be read: {error}") from None
        self._tls.verify_mode = ssl.CERT_OPTIONAL

    async def look_up_authorities(self, client: Client) -> str:
        """Trust the API server's client authorities, which are in a ConfigMap; what went wrong, or nothing."""
        try:
            data = msgspec.json.decode(await client.request("GET", CONFIG_MAP), type=dict[str, Any]).get("data") or {}
            if authorities := str(data.get("client-ca-file") or ""):
                self.trust(authorities)
        except ApiError as error:
            return error.message
        except (msgspec.DecodeError, InputError) as error:
            return str(error)
        return ""

    def reload_certificate(self) -> None:
        """Use the certificate in the files for new connections if it changed."""
        changed = [file.changed() for file in self._files]
        if not any(changed):
            return
        try:
            self._tls.load_cert_chain(self._where.cert_file, self._where.key_file)
        except (ssl.SSLError, OSError) as error:
            _log.error("The new serving certificate cannot be used, the old one stays", err=str(error))
        else:
            _log.info("Loaded a new serving certificate", file=self._where.cert_file)

    # -- responses -----------------------------------------------------------------------------------------------

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Authenticate, then authorize. Any error becomes a Status, not a traceback."""
        path = request.path
        try:
            user = await self._authentication.of(request.headers.get("Authorization", ""), by_certificate(request))
            if user is None:
                return _status(401, "Unauthorized", "Unauthorized")
            if not await self._authorization.allows(user, request.method.lower(), path):
                verb = request.method.lower()
                return _status(403, "Forbidden", f'forbidden: User "{user.name}" cannot {verb} path "{path}"')
        except ApiError as error:
            _log.error("Unable to authenticate or authorize a request", path=path, err=error.message)
            return _status(500, "InternalError", "Internal error: the API server could not be asked")
        return await handler(request)

    async def _answer(self, request: web.Request) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            return _status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        path = request.path
        if path in self._checks:
            exclude = request.query.getall("exclude", [])
            return _text(*report_all(path[1:], self._checks[path], exclude, verbose="verbose" in request.query))
        root, _, name = path.rpartition("/")
        if (found := report_one(self._checks.get(root, ()), name)) is not None:
            return _text(*found)
        if path in self._pages:
            content_type, body = self._pages[path]()
            return web.Response(body=body, headers={"Content-Type": content_type})
        return _status(404, "NotFound", "the server could not find the requested resource")


def _text(status: int, text: str) -> web.Response:
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}
    return web.Response(status=status, text=text, content_type=TEXT, charset="utf-8", headers=headers)


def _status(code: int, reason: str, message: str) -> web.Response:
    """An error response as Kubernetes' servers send it."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return web.Response(status=code, body=msgspec.json.encode(body), content_type="application/json")


# -- TLS ---------------------------------------------------------------------------------------------------------------


def _context(where: ListenSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = TLS_VERSIONS.get(where.min_version, ssl.TLSVersion.TLSv1_2)
    if bool(where.cert_file) != bool(where.key_file):
        raise InputError("--tls-cert-file and --tls-private-key-file must be given together")
    try:
        if where.ciphers:
            context.set_ciphers(":".join(map(openssl_name, where.ciphers)))
        _load_certificate(context, where)
        if where.client_ca_file:
            context.load_verify_locations(cafile=where.client_ca_file)
            context.verify_mode = ssl.CERT_OPTIONAL
    except ssl.SSLError as error:
        raise InputError(f"the serving certificate or its settings cannot be used: {error}") from None
    except OSError as error:
        named = where.cert_file or where.cert_dir or where.client_ca_file
        raise InputError(f"{error.filename or named}: {error.strerror}") from None
    return context


def _load_certificate(context: ssl.SSLContext, where: ListenSettings) -> None:
    if where.cert_file:
        context.load_cert_chain(where.cert_file, where.key_file)
    elif where.cert_dir:
        cert, key = pair_in(Path(where.cert_dir))
        context.load_cert_chain(cert, key)
    else:
        with pem_files(*self_signed()) as (made, made_key):
            context.load_cert_chain(made, made_key)


def openssl_name(suite: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256 to OpenSSL."""
    name = suite.removeprefix("TLS_").replace("_WITH_", "_").replace("AES_128", "AES128").replace("AES_256", "AES256")
    name = name.replace("_CBC_", "_") if "GCM" not in name else name
    return name.replace("_", "-").replace("CHACHA20-POLY1305-SHA256", "CHACHA20-POLY1305").removeprefix("RSA-")


def by_certificate(request: Connected) -> RequestUser | None:
    """The user of a verified client certificate: its common name, with its organizations as groups."""
    shown = request.get_extra_info("peercert")
    if not shown:
        return None
    fields = [pair for part in shown.get("subject", ()) for pair in part]
    names = [value for key, value in fields if key == "commonName"]
    groups = [value for key, value in fields if key == "organizationName"]
    return RequestUser(names[0], (*groups, AUTHENTICATED)) if names else None


def _no_port(where: ListenSettings, error: OSError) -> str:
    place = f"{where.address}:{where.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{place} is already in use: stop that process, or choose another --secure-port (0: none)"
    if error.errno == errno.EACCES:
        return f"{place} may not be listened on: choose a --secure-port above 1023"
    return f"{place} cannot be listened on: {error.strerror or error}"


async def keep_certificate_fresh(serving: StatusServer, every_s: float = 60.0) -> None:
    """Until cancelled: somebody may replace the certificate while we run."""
    while True:
        await asyncio.sleep(every_s)
        serving.reload_certificate()
