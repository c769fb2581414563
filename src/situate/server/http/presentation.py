"""Presents JSON responses as their clients ask for them: indented, or as YAML.

Like kube-apiserver, `?pretty=` decides, else the client: curl, Wget and browsers get indented JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Final

import msgspec

from situate.server.http.negotiation import YAML, not_acceptable, wants_yaml
from situate.server.http.query import Query
from situate.server.http.responses import JSON, Response, status_response
from situate.wire.dump import JSON_INDENT, dump_yaml

PEOPLE: Final = ("curl", "Wget", "Mozilla/5.0")
"""How the User-Agents of programs begin that show bodies to people."""
MAX_YAML_BYTES: Final = 1 << 20
"""Of the JSON. Writing YAML takes a hundred times as long."""
MAX_PRETTY_BYTES: Final = 16 << 20
"""Longer bodies are sent as they are."""
THREAD_BYTES: Final = 16 << 10
"""From this size on, in a thread."""
TOO_LONG: Final = f"only bodies of up to {MAX_YAML_BYTES} bytes are served as {YAML}; this one is longer"
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")


def is_pretty(query: Query, agent: str) -> bool:
    asked = query.get("pretty", "")
    return asked in _TRUE if asked else agent.startswith(PEOPLE)


async def present(response: Response, accept: str, query: Query, agent: str) -> Response:
    """The response, or another in its place."""
    if response.written or response.content_type != JSON:
        return response
    if "yaml" in accept and wants_yaml(accept):
        return await _converted(response, _as_yaml, MAX_YAML_BYTES, YAML) or _refused(response)
    if ("pretty" in query or agent.startswith(PEOPLE)) and is_pretty(query, agent):
        return await _converted(response, _as_pretty, MAX_PRETTY_BYTES, JSON) or response
    return response


def _refused(response: Response) -> Response:
    """In place of a list that is too long."""
    refusal = status_response(not_acceptable(TOO_LONG))
    refusal.on_sent = response.on_sent
    return refusal


async def _converted(
    response: Response, convert: Callable[[bytes], bytes], most: int, content_type: str
) -> Response | None:
    """None if it is too long, or made while it is sent."""
    if not isinstance(response.body, (bytes, tuple)) and isinstance(response.body, Iterator):
        return None
    body = response.body if isinstance(response.body, bytes) else b"".join(response.body)
    if len(body) > most:
        return None
    if body and response.code != HTTPStatus.NOT_MODIFIED:
        response.body = convert(body) if len(body) < THREAD_BYTES else await asyncio.to_thread(convert, body)
    response.content_type = content_type
    return response


def _as_pretty(body: bytes) -> bytes:
    return msgspec.json.format(body, indent=JSON_INDENT)


def _as_yaml(body: bytes) -> bytes:
    return dump_yaml(msgspec.json.decode(body), sort_keys=True).encode()
