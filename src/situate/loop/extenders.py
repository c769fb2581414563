"""Calls HTTP extenders, and reports their responses as changes.

Extenders are not trusted. A response has to come within the extender's timeout, is read up to a limit, may not
redirect, and over TLS has to come from a server that the configured authority vouches for. A failure is one line in the
answer; only a cancelled task raises.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from io import BytesIO
from types import TracebackType
from typing import Final, Protocol

import aiohttp

from situate.core.changes import BindDone, BindFailed, ExtenderSaid, PodRef
from situate.core.config.errors import ConfigError
from situate.core.config.types import Extender, ExtenderTLSConfig
from situate.core.config.validate import tls_problems, uses_tls
from situate.core.effects import AskExtender, Bind
from situate.core.engine.extender_interest import NANOS_PER_MS, name_of, timeout_ms, verb_of
from situate.core.model.duration import format_duration
from situate.core.model.field_errors import child, index
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.wire.extender import ExtenderResponseError, encode_ask, encode_bind, one_line, read_answer, read_bind

ANSWER_BYTES: Final = 1 << 20
"""How long a response may be. Nodes that were sent may come back: then twice the request is added."""
CHUNK_BYTES: Final = 64 << 10
IN_FLIGHT: Final = 32
"""How many requests to one extender run at a time."""
WAITING: Final = 4_096
"""How many more may wait. Beyond that, a request fails at once."""

OK: Final = 200
POD_IS_GONE: Final = "the pod is gone"


class ExtenderObjects(Protocol):
    """The objects that are sent, as they are when the request is made."""

    def pod(self, ref: PodRef) -> Pod | None:
        """A pending or bound pod."""

    def node(self, name: str) -> Node | None: ...


class Extenders:
    """All extenders of a configuration, to be used in `async with`. Raises ConfigError if TLS cannot be set up."""

    def __init__(
        self,
        extenders: Sequence[Extender],
        objects: ExtenderObjects,
        *,
        in_flight: int = IN_FLIGHT,
        waiting: int = WAITING,
    ) -> None:
        self._objects = objects
        self._endpoints = [
            _Endpoint(one, _tls(one, index("extenders", at)), in_flight, waiting) for at, one in enumerate(extenders)
        ]
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Extenders:
        for endpoint in self._endpoints:
            await self._open.enter_async_context(endpoint.session())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    async def ask(self, ask: AskExtender) -> ExtenderSaid:
        """Carry out an AskExtender."""
        endpoint = self._endpoints[ask.extender]
        names_do = endpoint.extender.node_cache_capable
        try:
            answer = await endpoint.call(
                verb_of(endpoint.extender, ask.verb), lambda: self._body(ask, names_do=names_do)
            )
            return read_answer(ask, answer, names_do=names_do)
        except ExtenderResponseError as error:
            return ExtenderSaid(ask.ask, problem=endpoint.describe(ask.verb, error))

    async def bind(self, bind: Bind) -> BindDone | BindFailed:
        """Carry out a Bind through an extender. A refusal is final: the extender would refuse again."""
        if bind.extender is None:
            raise ValueError("this bind is not for an extender")
        endpoint = self._endpoints[bind.extender]
        try:
            problem = read_bind(await endpoint.call(endpoint.extender.bind_verb, lambda: _Body(encode_bind(bind))))
        except ExtenderResponseError as error:
            return BindFailed(bind.pod, bind.attempt, endpoint.describe("bind", error))
        if problem:
            return BindFailed(
                bind.pod, bind.attempt, endpoint.describe("bind", ExtenderResponseError(problem)), final=True
            )
        return BindDone(bind.pod, bind.attempt)

    def _body(self, ask: AskExtender, *, names_do: bool) -> _Body:
        pod = self._objects.pod(ask.pod)
        if pod is None:
            raise ExtenderResponseError(POD_IS_GONE)
        if names_do:
            return _Body(encode_ask(ask, pod, (), {}, names_do=True))
        nodes = [node for node in map(self._objects.node, ask.nodes) if node is not None]
        victims = {ref.uid: self._objects.pod(ref) for one in ask.victims for ref in one.pods}
        known = {uid: victim for uid, victim in victims.items() if victim is not None}
        data = encode_ask(ask, pod, nodes, known, names_do=False)
        return _Body(data, ANSWER_BYTES + 2 * len(data))


@dataclass(frozen=True, slots=True)
class _Body:
    """A request, and how long the response to it may be."""

    data: bytes
    answer_bytes: int = ANSWER_BYTES


class _Endpoint:
    """Requests to one extender."""

    def __init__(self, extender: Extender, tls: ssl.SSLContext | None, in_flight: int, waiting: int) -> None:
        self.extender = extender
        self._tls = tls
        self._turns = asyncio.Semaphore(in_flight)
        self._in_flight = in_flight
        self._waiting_limit = waiting
        self._waiting = 0
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, ssl=True if self._tls is None else self._tls)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # `call` does that, with the time of waiting
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # a few bytes may unpack to gigabytes
            headers={"Accept-Encoding": "identity", "User-Agent": "situate"},
        )
        return self._session

    def describe(self, verb: str, error: ExtenderResponseError) -> str:
        return f'extender "{name_of(self.extender)}": {verb}: {one_line(str(error))}'

    async def call(self, verb: str, make: Callable[[], _Body]) -> bytes:
        """The body of the response, within the extender's timeout. `make` is called when the request can be sent."""
        if self._waiting >= self._in_flight + self._waiting_limit:
            raise ExtenderResponseError(f"{self._waiting_limit} requests are waiting already")
        within_ms = timeout_ms(self.extender)
        self._waiting += 1
        try:
            async with asyncio.timeout(within_ms / 1_000), self._turns:
                return await self._post(verb, make())
        except TimeoutError:
            raise ExtenderResponseError(f"did not answer within {format_duration(within_ms * NANOS_PER_MS)}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ExtenderResponseError(_describe_failure(error)) from None
        finally:
            self._waiting -= 1

    async def _post(self, verb: str, body: _Body) -> bytes:
        if self._session is None:
            raise ExtenderResponseError("the session is not open")
        tls = self.extender.tls_config
        url = f"{self.extender.url_prefix.rstrip('/')}/{verb}"
        async with self._session.post(
            url,
            data=BytesIO(body.data),  # sent in chunks, so that other tasks have a turn
            headers={"Content-Type": "application/json"},
            allow_redirects=False,
            server_hostname=(tls.server_name or None) if tls is not None else None,
        ) as response:
            if response.status != OK:
                response.close()
                url = f"{name_of(self.extender).rstrip('/')}/{verb}"
                raise ExtenderResponseError(f"failed {verb} with extender at URL {url}, code {response.status}")
            return await _read(response, body.answer_bytes)


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, read up to the limit. Raises ExtenderResponseError if it is longer."""
    read = bytearray()
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        read += chunk
        if len(read) > limit:
            response.close()
            raise ExtenderResponseError(f"answered with more than {limit} bytes")
    return bytes(read)


def _describe_failure(error: Exception) -> str:
    """What went wrong, without addresses that may have a password in them."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {getattr(error.certificate_error, 'verify_message', '')}"
        case aiohttp.ClientSSLError():
            return "the TLS handshake failed"
        case aiohttp.ClientConnectorError():
            return f"cannot be reached: {error.os_error.strerror or type(error.os_error).__name__}"
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | OSError():
            return "closed the connection before it answered"
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return "its urlPrefix is not a URL"
        case aiohttp.ClientResponseError():
            return "did not answer with HTTP"
        case _:
            return f"could not be asked: {type(error).__name__}"


# -- TLS -------------------------------------------------------------------------------------------------------------


def _tls(extender: Extender, path: str) -> ssl.SSLContext | None:
    """How to verify the extender; None without TLS."""
    if not uses_tls(extender):
        return None
    if problems := tls_problems(path, extender):
        raise ConfigError(problems)
    tls = extender.tls_config or ExtenderTLSConfig()
    here = child(path, "tlsConfig")
    try:
        return _context(tls)
    except (OSError, ValueError) as error:
        what = error.strerror or error.__class__.__name__ if isinstance(error, OSError) else "not PEM"
        raise ConfigError([f"{here}: Invalid value: the certificates cannot be loaded: {what}"]) from None


def _context(tls: ExtenderTLSConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.ca_data:
        context.load_verify_locations(cadata=tls.ca_data.decode("ascii"))
    elif tls.ca_file:
        context.load_verify_locations(cafile=tls.ca_file)
    else:  # only if the configuration says so explicitly: see `tls_problems`
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_data or tls.cert_file:
        _load_own(context, tls)
    return context


def _load_own(context: ssl.SSLContext, tls: ExtenderTLSConfig) -> None:
    """Our own certificate. OpenSSL reads it only from files, so data is written to temporary ones."""
    with tempfile.NamedTemporaryFile() as cert, tempfile.NamedTemporaryFile() as key:
        for file, data in ((cert, tls.cert_data), (key, tls.key_data)):
            file.write(data)
            file.flush()
        context.load_cert_chain(
            cert.name if tls.cert_data else tls.cert_file, key.name if tls.key_data else tls.key_file or None
        )
