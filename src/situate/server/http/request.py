"""A request past the filters: where it goes, who asks, what it says. Made by the front, read by the handlers."""

from __future__ import annotations

from aiohttp import web
from msgspec import Struct

from situate.server.http import bodies
from situate.server.http.negotiation import Form, accepted
from situate.server.http.query import Query
from situate.server.http.urls import Place
from situate.server.requests import Caller, Target
from situate.server.resources import Resource

__all__ = ["Incoming"]


class Incoming(Struct):
    http: web.BaseRequest
    place: Place
    resource: Resource
    verb: str
    query: Query
    caller: Caller
    most_bytes: int
    body: bytes = b""

    @property
    def target(self) -> Target:
        place = self.place
        namespace = place.namespace if self.resource.namespaced else ""
        return Target(self.resource, namespace, place.name, place.subresource)

    @property
    def form(self) -> Form:
        return accepted(self.http.headers.get("Accept", ""))

    @property
    def content_type(self) -> str:
        return self.http.headers.get("Content-Type", "")

    async def read(self) -> bytes:
        self.body = await bodies.read(self.http, self.most_bytes)
        return self.body
