"""Passes a request on to another server, and its answer back as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from situate.server.errors import StatusError
from situate.server.http.responses import Response
from situate.server.http.streams import OpenStreams
from situate.server.kubelet.connection import (
    HOP_HEADERS,
    AnswerError,
    AnswerHead,
    Header,
    NodeConnection,
    ask,
    read_body,
)

ANSWER_S: Final = 60.0
"""For the other server to begin its answer."""
UNREACHED: Final = "error trying to reach service: {0}"
REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"
SWITCHED: Final = "the backend switched protocols without being asked to"
_DROPPED: Final = HOP_HEADERS | {"host", "content-length", "authorization", "expect"}
_IMPERSONATE: Final = "impersonate-"


async def forward(
    streams: OpenStreams,
    http: web.BaseRequest,
    connection: NodeConnection,
    target: str,
    given: Iterable[Header],
    body: bytes,
    headers: str,
    *,
    may_redirect: bool,
) -> Response:
    """`given` are the headers for the other server, `headers` are further ones for the client. `may_redirect`: whether
    it may send the client elsewhere, perhaps with the client's credentials. Raises StatusError."""
    try:
        async with asyncio.timeout(ANSWER_S):
            answer = await ask(connection, http.method, target, given, body)
    except (AnswerError, OSError, TimeoutError) as error:
        raise unreached(str(error) or "no answer in time") from None
    if answer.code == HTTPStatus.SWITCHING_PROTOCOLS:
        raise _bad_answer(SWITCHED)
    if not may_redirect and answer.code // 100 == 3 and answer.get("location"):
        raise _bad_answer(REDIRECTED)
    return await _pass_on(streams, http, connection, answer, headers)


async def _pass_on(
    streams: OpenStreams, http: web.BaseRequest, connection: NodeConnection, answer: AnswerHead, headers: str
) -> Response:
    dropped = HOP_HEADERS | {"content-length", "content-type", "date", "cache-control"}
    given = "".join(f"{name}: {value}\r\n" for name, value in answer.headers if name.lower() not in dropped)
    kind = answer.get("content-type") or "application/octet-stream"
    if http.method == "HEAD" or answer.code in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        return Response(answer.code, b"", kind, given)
    async with streams.open(http, kind, given + headers, answer.code) as stream:
        try:
            async for piece in read_body(connection.reader, answer, http.method):
                await stream.send((piece,))
        except (AnswerError, OSError):
            stream.abort()  # so that the client does not take a part for the whole
    response = stream.finish()
    response.code = answer.code
    return response


def forwarded_headers(http: web.BaseRequest) -> list[Header]:
    """The client's headers without its credentials."""
    found = [("Connection", "close")]
    for name, value in http.headers.items():
        lower = name.lower()
        if lower not in _DROPPED and not lower.startswith(_IMPERSONATE):
            found.append((name, value))
    if http.remote:
        found.append(("X-Forwarded-For", http.remote))
    return found


def unreached(why: str) -> StatusError:
    return StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", UNREACHED.format(why))


def _bad_answer(why: str) -> StatusError:
    return StatusError(HTTPStatus.BAD_GATEWAY, "InternalError", why)
