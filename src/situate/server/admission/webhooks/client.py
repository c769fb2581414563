"""Calls webhooks: HTTP/1.1 over TLS, within a time, with limits for what comes back. Redirects are not followed.

A webhook is not trusted: one that never answers, answers slowly or at length costs the requests that wait for it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64decode
from binascii import Error as Base64Error
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from time import monotonic
from typing import Any, Final

from situate.core.model.field_errors import quoted
from situate.server.admission.webhooks.endpoints import (
    UnresolvedError,
    WebhookEndpoint,
    resolve,
    shown_url,
)
from situate.server.kubelet.connection import HEAD_BYTES, AnswerError, AnswerHead, NodeConnection, ask, read_body
from situate.server.registry.cache import Cache

ANSWER_BYTES: Final = 6 << 20
"""Of an answer. A patch of the largest object that a request may have fits, in base64."""
CALLS_PER_WEBHOOK: Final = 32
"""Calls of one webhook at a time; the next ones wait, and the time counts."""
MAX_WEBHOOKS: Final = 1_024
"""Webhooks whose calls are counted, and whose connections are kept; the least recently called is forgotten."""
IDLE_CONNECTIONS: Final = 4
"""Kept for each webhook."""
IDLE_S: Final = 30.0
MAX_CONTEXTS: Final = 64
"""Sets of authorities that are kept."""
SHOWN: Final = 1_024
"""Characters of a refusal that are quoted."""
DEADLINE: Final = "context deadline exceeded"
REDIRECTED: Final = "the webhook answered with a redirect, which is not followed"


class CallError(Exception):
    """The webhook could not be asked, or did not answer well. The message is one line, in Kubernetes' words."""

    def __init__(self, message: str, code: int = HTTPStatus.SERVICE_UNAVAILABLE) -> None:
        super().__init__(message)
        self.code = code
        """For metrics."""


class _Line:
    """The calls of one webhook, and the connections that wait for the next ones."""

    __slots__ = ("idle", "slots")

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(CALLS_PER_WEBHOOK)
        self.idle: list[tuple[NodeConnection, float]] = []


class WebhookClient:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._lines: OrderedDict[tuple[str, int, str, str], _Line] = OrderedDict()
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    async def call(self, client: Mapping[str, Any], body: bytes, timeout_s: int) -> bytes:
        """The answer of a webhook with this clientConfig. Raises CallError."""
        query = f"?timeout={timeout_s}s"
        try:
            endpoint = resolve(client, self._cache)
        except UnresolvedError as error:
            raise CallError(f'Post "{shown_url(client)}{query}": {error}') from None
        try:
            async with asyncio.timeout(timeout_s):
                return await self._ask(endpoint, client.get("caBundle") or "", f"{endpoint.path}{query}", body)
        except TimeoutError:
            why = DEADLINE
        except ssl.SSLCertVerificationError as error:
            why = _certificate_problem(error, endpoint)
        except ssl.SSLError as error:
            why = f"tls: {str(error.reason or error).lower().replace('_', ' ')}"
        except AnswerError as error:
            why = "EOF" if "ended early" in str(error) else f"net/http: HTTP/1.x transport connection broken: {error}"
        except OSError as error:
            why = _network_problem(error, endpoint)
        raise CallError(f'Post "{endpoint.url}{query}": {why}')

    async def aclose(self) -> None:
        for line in self._lines.values():
            for connection, _ in line.idle:
                connection.abort()
            line.idle.clear()

    async def _ask(self, endpoint: WebhookEndpoint, authorities: str, target: str, body: bytes) -> bytes:
        line = self._line((endpoint.host, endpoint.port, endpoint.server_name, authorities))
        async with line.slots:
            connection = _take_idle(line)
            if connection is not None:
                with suppress(AnswerError, OSError):  # the webhook may have closed it meanwhile
                    return await self._exchange(line, connection, target, body)
            return await self._exchange(line, await self._connect(endpoint, authorities), target, body)

    def _line(self, key: tuple[str, int, str, str]) -> _Line:
        line = self._lines.setdefault(key, _Line())
        self._lines.move_to_end(key)
        if len(self._lines) > MAX_WEBHOOKS:
            _, old = self._lines.popitem(last=False)
            for connection, _ in old.idle:
                connection.abort()
        return line

    async def _connect(self, endpoint: WebhookEndpoint, authorities: str) -> NodeConnection:
        reader, writer = await asyncio.open_connection(
            endpoint.host,
            endpoint.port,
            ssl=self._context(authorities),
            server_hostname=endpoint.server_name,
            limit=HEAD_BYTES,
        )
        return NodeConnection(reader, writer, endpoint.authority)

    def _context(self, authorities: str) -> ssl.SSLContext:
        found = self._contexts.get(authorities)
        if found is None:
            found = self._contexts[authorities] = tls_context(authorities)
            if len(self._contexts) > MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        return found

    async def _exchange(self, line: _Line, connection: NodeConnection, target: str, body: bytes) -> bytes:
        keeps = False
        try:
            headers = (
                ("Content-Type", "application/json"),
                ("Accept", "application/json"),
                ("User-Agent", "kube-apiserver-admission"),
            )
            head = await ask(connection, "POST", target, headers, body)
            answer = await _answer(connection, head)
            keeps = "close" not in head.get("connection").lower() and _is_delimited(head)
        finally:
            if keeps and len(line.idle) < IDLE_CONNECTIONS:
                line.idle.append((connection, monotonic()))
            else:
                connection.abort()
        if HTTPStatus.OK <= head.code < HTTPStatus.MULTIPLE_CHOICES:
            return answer
        raise _refusal(head, answer)


def _take_idle(line: _Line) -> NodeConnection | None:
    while line.idle:
        connection, since = line.idle.pop()
        closed = connection.reader.at_eof() or connection.writer.transport.is_closing()
        if monotonic() - since < IDLE_S and not closed:
            return connection
        connection.abort()
    return None


def _is_delimited(head: AnswerHead) -> bool:
    return bool(head.get("content-length")) or "chunked" in head.get("transfer-encoding").lower()


async def _answer(connection: NodeConnection, head: AnswerHead) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in read_body(connection.reader, head, "POST"):
        size += len(piece)
        if size > ANSWER_BYTES:
            raise CallError(f"the answer is longer than {ANSWER_BYTES} bytes")
        pieces.append(piece)
    return b"".join(pieces)


_REFUSALS: Final[Mapping[int, str]] = {
    HTTPStatus.BAD_REQUEST: "the server rejected our request for an unknown reason",
    HTTPStatus.NOT_FOUND: "the server could not find the requested resource",
    HTTPStatus.TOO_MANY_REQUESTS: "the server has received too many requests and has asked us to try again later",
    HTTPStatus.SERVICE_UNAVAILABLE: "the server is currently unable to handle the request",
    HTTPStatus.GATEWAY_TIMEOUT: (
        "the server was unable to return a response in the time allotted, but may still be processing the request"
    ),
}


def _refusal(head: AnswerHead, body: bytes) -> CallError:
    """In the words of Kubernetes' client, which quotes text only."""
    code = head.code
    if HTTPStatus.MULTIPLE_CHOICES <= code < HTTPStatus.BAD_REQUEST:
        return CallError(REDIRECTED, code)
    text = _REFUSALS.get(code)
    if text is None and code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        said = body.decode(errors="replace")[:SHOWN].strip() if head.get("content-type").startswith("text/") else ""
        shown = quoted(said or "unknown")
        text = f"an error on the server ({shown}) has prevented the request from succeeding"
    return CallError(
        text or f"the server responded with the status code {code} but did not return more information", code
    )


def tls_context(authorities: str) -> ssl.SSLContext:
    """With these authorities (PEM in base64), or those of the system."""
    context = ssl.create_default_context()
    if authorities:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=b64decode(authorities).decode("ascii"))
        except (ssl.SSLError, Base64Error, ValueError):
            raise CallError("unable to load root certificates: unable to parse bytes as PEM block") from None
    # As in Go, a certificate among the authorities may be the server's own.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _certificate_problem(error: ssl.SSLCertVerificationError, endpoint: WebhookEndpoint) -> str:
    text = error.verify_message or str(error)
    prefix = "tls: failed to verify certificate: x509:"
    if "unable to get" in text or "self-signed" in text or "self signed" in text:
        return f"{prefix} certificate signed by unknown authority"
    if "mismatch" in text:
        return f"{prefix} certificate is not valid for {endpoint.server_name}"
    if "expired" in text or "not yet valid" in text:
        return f"{prefix} certificate has expired or is not yet valid"
    return f"{prefix} {text}"


def _network_problem(error: OSError, endpoint: WebhookEndpoint) -> str:
    where = f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {where}: connect: connection refused"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {endpoint.host}: no such host"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "EOF"
    return f"dial tcp {where}: {error.strerror or error}"
