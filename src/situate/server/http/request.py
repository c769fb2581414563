"""A request after the filters, as the handlers get it."""

from __future__ import annotations

from aiohttp import web
from msgspec import Struct

from situate.server.http import bodies
from situate.server.http.flow_control import MUTATING
from situate.server.http.negotiation import Form, parse_accept
from situate.server.http.query import Query
from situate.server.http.request_state import RequestState
from situate.server.http.urls import RequestUrl
from situate.server.requests import Caller, Target
from situate.server.resources import Resource


class ApiRequest(Struct):
    http: web.BaseRequest
    url: RequestUrl
    resource: Resource
    verb: str
    query: Query
    caller: Caller
    state: RequestState
    max_body_bytes: int
    body: bytes = b""

    @property
    def target(self) -> Target:
        url = self.url
        namespace = url.namespace if self.resource.namespaced else ""
        return Target(self.resource, namespace, url.name, url.subresource)

    @property
    def form(self) -> Form:
        return parse_accept(self.http.headers.get("Accept", ""))

    @property
    def content_type(self) -> str:
        return self.http.headers.get("Content-Type", "")

    async def read(self) -> bytes:
        """The body. The request takes its slot when the body is complete."""
        self.body = self.state.body = await bodies.read_body(self.http, self.max_body_bytes, self.state)
        if (waiting := self.state.enter(MUTATING)) is not None:
            await waiting
        return self.body
