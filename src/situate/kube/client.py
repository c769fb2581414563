"""The client of one API server: requests and streams of lines, over pooled connections, at a limited rate.

It knows HTTP and Kubernetes' Status, and nothing of pods. It raises ApiError and nothing else; a cancelled task is
cancelled at once. It asks for uncompressed responses: within a cluster, the server's time for gzip costs more than the
bytes do, and a small response cannot unpack to a huge one.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from types import TracebackType
from typing import Final, Protocol
from urllib.parse import quote, urlencode

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from multidict import CIMultiDict
from yarl import URL

from situate import __version__
from situate.kube.access import Access
from situate.kube.errors import LOST, NOT_HTTP, NOT_LEADER, TIMEOUT, TOO_LARGE, UNREACHABLE, ApiError, from_status
from situate.kube.line_stream import LineStream
from situate.kube.rate_limit import bucket

CONNECTIONS: Final = 96
"""For requests: kube-apiserver took 560 binds a second over 16, and 1,070 over 64. Streams have their own."""
STREAMS: Final = 256
"""How many streams may be open."""
KEEP_ALIVE_S: Final = 60.0
"""How long an idle connection is kept; the API server closes its end after 90 s."""
CONNECT_S: Final = 10.0
"""The limit for one connection, TLS included."""
REQUEST_S: Final = 64.0
"""The limit for a whole request; the API server's own is 60 s."""
RESPONSE_BYTES: Final = 1 << 30
"""The longest response: more than a list of 150,000 large pods."""
ERROR_BYTES: Final = 1 << 20
"""How much to read of an error response to a stream request."""
BUFFER_BYTES: Final = 256 << 10
"""How much aiohttp reads ahead on one connection."""
RETRIES: Final = 10
"""How often to retry a request where that is safe or the server asks for it; client-go's number."""
RETRY_AFTER_MAX_S: Final = 60.0
"""The longest wait, whatever the server asks for."""
LOST_WAIT_S: Final = 1.0
"""The pause between retries of a read whose connection broke. The first retry is immediate: the server may just have
closed an idle connection."""

USER_AGENT: Final = f"situate/{__version__}"
DEFAULT_QPS: Final = 50.0
"""kube-scheduler's."""
DEFAULT_BURST: Final = 100

_READS: Final = frozenset({"GET", "HEAD"})  # a repeated PUT or DELETE can fail because the first one succeeded
_SERVER_FAULTS: Final = 500
_TOO_MANY: Final = 429
_UNAUTHORIZED: Final = 401
_NO_CODE: Final = "<error>"  # client-go's word, in metrics, for no answer


class Observer(Protocol):
    """Counts every attempt, for rest_client_* metrics. `verb` is GET, POST, ...; `code` is "200", or "<error>"."""

    def request_done(self, verb: str, host: str, code: str, seconds: float) -> None:
        """An attempt is over; for a stream, `seconds` is the time to its first byte."""

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        """The rate limiter delayed an attempt for so long."""

    def retried(self, verb: str, host: str, code: str) -> None:
        """A retry is over."""


class _Connector(aiohttp.TCPConnector):
    """Checks `may_write` once more when the connection is there and nothing is left to wait for."""

    may_write: Callable[[], bool] | None = None

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if self.may_write is not None and req.method not in _READS and not self.may_write():
            connection.release()
            raise ApiError(0, NOT_LEADER, "no longer the leader", sent=False)
        return connection


class _Line:
    """The connections made with one client certificate."""

    def __init__(self, access: Access, user_agent: str, may_write: Callable[[], bool] | None) -> None:
        self.certificate = access.credentials.certificate
        self.requests = _session(access, user_agent, CONNECTIONS, may_write)
        self.streams = _session(access, user_agent, STREAMS, may_write)
        self.busy = 0
        self.retired = False

    async def close(self) -> None:
        await self.requests.close()
        await self.streams.close()


class _Tries:
    """The attempts at one request."""

    __slots__ = ("deadline", "method", "renewed", "retries", "shown")

    def __init__(self, method: str) -> None:
        self.method = method
        self.deadline = 0.0
        self.retries = 0
        self.renewed = False
        self.shown = 0


class Client:
    """Use in `async with`. `sleep` is what retries wait with.

    `qps` below 0: no rate limit; 0: client-go's default of 5 (see `rate_limit`).
    The client calls `may_write` right before it sends anything but a read: the request may have waited for the rate
    limiter, for credentials or for a connection since the caller checked.
    """

    def __init__(
        self,
        access: Access,
        *,
        qps: float = DEFAULT_QPS,
        burst: int = DEFAULT_BURST,
        user_agent: str = USER_AGENT,
        observe: Observer | None = None,
        may_write: Callable[[], bool] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._access = access
        self._may_write = may_write
        self._base = access.server.rstrip("/")
        self._host = URL(self._base).authority
        self._limit = (qps, burst)
        self._user_agent = user_agent
        self._observe = observe
        self._sleep = sleep
        self._shown: str | None = None
        self._headers: dict[tuple[str, str], CIMultiDict[str]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def access(self) -> Access:
        return self._access

    async def __aenter__(self) -> Client:
        loop = asyncio.get_running_loop()
        self._clock = loop.time
        self._bucket = bucket(*self._limit, loop.time)
        self._line = _Line(self._access, self._user_agent, self._may_write)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._line.close()
        await asyncio.gather(*self._closing)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "",
        timeout_s: float = REQUEST_S,
    ) -> bytes:
        """The body of a successful response.

        `path` begins with a slash and is sent as it is. `timeout_s` starts once the rate limiter lets the request
        through, and covers its retries. After an ApiError that is `lost`, read to find out whether it was done.
        """
        url = self._url(path, params)
        tries = _Tries(method)
        while True:
            await self._admitted(method)
            try:
                return await self._once(tries, url, body, content_type, accept, self._left(tries, timeout_s))
            except ApiError as error:
                if not await self._again(tries, error):
                    raise

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str] | None = None, accept: str = "", idle_s: float
    ) -> AsyncIterator[LineStream]:
        """Lines for as long as they come, with at most `idle_s` between bytes. The rate limit applies to opening it."""
        line, response = await self._open(self._url(path, params), accept, idle_s)
        try:
            yield LineStream(response, self._failed)
        finally:
            response.close()
            self._leave(line)

    async def _open(self, url: URL, accept: str, idle_s: float) -> tuple[_Line, aiohttp.ClientResponse]:
        tries = _Tries("GET")
        while True:
            await self._admitted("GET")
            self._left(tries, REQUEST_S)
            try:
                return await self._opened(tries, url, accept, idle_s)
            except ApiError as error:
                if not await self._again(tries, error):
                    raise

    # -- one attempt ---------------------------------------------------------------------------------------------------

    async def _once(
        self,
        tries: _Tries,
        url: URL,
        body: bytes | None,
        content_type: str,
        accept: str,
        timeout: aiohttp.ClientTimeout,
    ) -> bytes:
        headers = await self._shown_in(tries, "" if body is None else content_type, accept)
        line, begun, code = self._enter(), self._clock(), _NO_CODE
        response = None
        try:
            response = await line.requests.request(
                tries.method, url, data=body, headers=headers, timeout=timeout, allow_redirects=False
            )
            data = await _read(response, RESPONSE_BYTES)
            code = str(response.status)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._failed(error) from None
        finally:
            if code is _NO_CODE and response is not None:
                response.close()
            self._leave(line)
            self._tell(tries, code, begun)
        if response.status < 300:
            return data
        raise self._refused(response, data)

    async def _opened(
        self, tries: _Tries, url: URL, accept: str, idle_s: float
    ) -> tuple[_Line, aiohttp.ClientResponse]:
        headers = await self._shown_in(tries, "", accept)
        line, begun, code = self._enter(), self._clock(), _NO_CODE
        response = None
        try:
            response = await line.streams.request(
                "GET", url, headers=headers, timeout=_stream_timeout(idle_s), allow_redirects=False
            )
            code = str(response.status)
            if response.status < 300:
                return line, response
            data = await _read(response, ERROR_BYTES)
        except BaseException as error:
            code = _NO_CODE
            if isinstance(error, aiohttp.ClientError | OSError | TimeoutError):
                raise self._failed(error) from None
            raise
        finally:
            self._tell(tries, code, begun)
            if not code.startswith("2"):
                self._leave(line)
                if response is not None:
                    response.close()
        raise self._refused(response, data)

    async def _admitted(self, method: str) -> None:
        if self._bucket is None:
            return
        waited = 0.0
        if not self._bucket.take():
            begun = self._clock()
            await self._bucket.wait()
            waited = self._clock() - begun
        if self._observe is not None:
            self._observe.rate_limited(method, self._host, waited)

    def _left(self, tries: _Tries, timeout_s: float) -> aiohttp.ClientTimeout:
        now = self._clock()
        if not tries.deadline:
            tries.deadline = now + timeout_s
            return _timeout(timeout_s)
        return _timeout.__wrapped__(max(0.001, tries.deadline - now))

    async def _shown_in(self, tries: _Tries, content_type: str, accept: str) -> CIMultiDict[str]:
        """The headers, cached for each pair of types until the credentials change."""
        credentials = self._access.credentials
        shown = await credentials.header()
        tries.shown = credentials.version
        if shown != self._shown:
            self._shown = shown
            self._headers.clear()
        headers = self._headers.get((content_type, accept))
        if headers is None:
            headers = self._headers[content_type, accept] = CIMultiDict()
            if shown is not None:
                headers["Authorization"] = shown
            if content_type:
                headers["Content-Type"] = content_type
            if accept:
                headers["Accept"] = accept
        return headers

    def _url(self, path: str, params: Mapping[str, str] | None) -> URL:
        query = f"?{urlencode(params, quote_via=quote)}" if params else ""
        return URL(f"{self._base}{path}{query}", encoded=True)

    # -- connections ---------------------------------------------------------------------------------------------------

    def _enter(self) -> _Line:
        """The connections to use. Those with an old certificate are closed after their last response."""
        line = self._line
        if line.certificate != self._access.credentials.certificate:
            line.retired = True
            line.busy += 1
            self._leave(line)
            line = self._line = _Line(self._access, self._user_agent, self._may_write)
        line.busy += 1
        return line

    def _leave(self, line: _Line) -> None:
        line.busy -= 1
        if line.retired and not line.busy:
            task = asyncio.create_task(line.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    # -- errors and retries ---------------------------------------------------------------------

    async def _again(self, tries: _Tries, error: ApiError) -> bool:
        """Whether to retry; waits first if the retry has to."""
        if error.status == _UNAUTHORIZED:
            if tries.renewed:
                return False
            tries.renewed = True
            return await self._access.credentials.renew(tries.shown)
        wait = _wait(tries, error)
        if wait is None or tries.retries >= RETRIES or self._clock() + wait >= tries.deadline:
            return False
        tries.retries += 1
        if wait > 0:
            await self._sleep(wait)
        return True

    def _tell(self, tries: _Tries, code: str, begun: float) -> None:
        if self._observe is None:
            return
        self._observe.request_done(tries.method, self._host, code, self._clock() - begun)
        if tries.retries or tries.renewed:
            self._observe.retried(tries.method, self._host, code)

    def _refused(self, response: aiohttp.ClientResponse, body: bytes) -> ApiError:
        after = response.headers.get("Retry-After", "")
        error = from_status(response.status, body, float(after) if after.isascii() and after.isdigit() else None)
        if error.status == _UNAUTHORIZED:
            text = f"{self._base} does not accept our credentials ({error.message}): renew those of {self._where}"
            return ApiError(error.status, error.reason, text)
        return error

    def _failed(self, error: Exception) -> ApiError:
        """A network error, with advice."""
        to, check = self._base, f"check the address and the network of {self._where}"
        match error:
            case aiohttp.ClientConnectorCertificateError():
                why = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
                text = f"{to}: its certificate is not trusted: {why}: check certificate-authority in {self._where}"
            case aiohttp.ClientSSLError():
                text = f"{to}: the TLS handshake failed: {_reason(error.os_error)}: {check}"
            case aiohttp.ClientConnectorError():
                by = "its proxy" if isinstance(error, aiohttp.ClientProxyConnectionError) else "it"
                text = f"{to}: {by} cannot be reached: {_reason(error.os_error)}: {check}"
            case aiohttp.ClientHttpProxyError():
                text = f"{to}: its proxy refuses: HTTP {error.status} {error.message}: check proxy-url in {self._where}"
            case aiohttp.ConnectionTimeoutError():
                text = f"{to}: no connection within {CONNECT_S:g} s: {check}"
            case TimeoutError():
                return ApiError(0, TIMEOUT, f"{to}: no answer in time")
            case aiohttp.ClientResponseError() | aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
                return ApiError(0, NOT_HTTP, f"{to}: does not speak HTTP: {check}")
            case _:
                return ApiError(0, LOST, f"{to}: closed the connection before it had answered")
        return ApiError(0, UNREACHABLE, text, sent=False)

    @property
    def _where(self) -> str:
        return self._access.where or "this server"


def _wait(tries: _Tries, error: ApiError) -> float | None:
    """The pause before a retry; None: do not retry."""
    if error.status == _TOO_MANY or error.status >= _SERVER_FAULTS:
        return None if error.retry_after_s is None else min(error.retry_after_s, RETRY_AFTER_MAX_S)
    if error.reason == LOST and tries.method in _READS:
        return LOST_WAIT_S if tries.retries else 0.0
    return None


def _session(
    access: Access, user_agent: str, connections: int, may_write: Callable[[], bool] | None
) -> aiohttp.ClientSession:
    connector = _Connector(
        limit=connections,
        keepalive_timeout=KEEP_ALIVE_S,
        ssl=True if access.tls is None else access.tls,
    )
    connector.may_write = may_write
    headers: CIMultiDict[str] = CIMultiDict(access.headers)
    headers.update({"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": user_agent})
    session = aiohttp.ClientSession(
        connector=connector,
        headers=headers,
        skip_auto_headers=("Content-Type",),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        read_bufsize=BUFFER_BYTES,
        proxy=access.proxy,
    )
    session._retry_connection = False  # aiohttp would silently repeat PUT and DELETE
    return session


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The whole body. Raises ApiError if it is longer than the limit."""
    content = response.content
    data = await content.readany()
    if content.at_eof():
        return data
    pieces, size = [data], len(data)
    while data := await content.readany():
        pieces.append(data)
        size += len(data)
        if size > limit:
            response.close()
            raise ApiError(0, TOO_LARGE, f"the answer is longer than {limit} bytes")
    return b"".join(pieces)


@lru_cache(maxsize=64)
def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, sock_connect=min(seconds, CONNECT_S))


@lru_cache(maxsize=64)
def _stream_timeout(idle_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=idle_s)


def _reason(error: OSError) -> str:
    """The system's text, which says more than asyncio's. Failed name lookups have numbers below 0."""
    if isinstance(error.errno, int) and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return error.strerror or type(error).__name__
