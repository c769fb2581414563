"""Which handler answers: objects by verb and subresource, documents by path."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from situate.server.discovery import Discovery, Document, subresource_verbs
from situate.server.http.health import Health
from situate.server.http.metrics import CONTENT_TYPE, Meter
from situate.server.http.negotiation import patch_type, wants_discovery
from situate.server.http.objects import Objects
from situate.server.http.pod_logs import PodLogs
from situate.server.http.ports import Computed, Specials
from situate.server.http.query import Query
from situate.server.http.request import Incoming
from situate.server.http.responses import JSON, Answer, of_object
from situate.server.http.scale import Scale
from situate.server.http.settings import Settings
from situate.server.http.urls import Place, no_such_path, wrong_method
from situate.server.http.watches import Watches
from situate.server.openapi import PROTOBUF_V2, OpenApi
from situate.server.registry.warning import warn
from situate.server.requests import Caller

__all__ = ["Routing"]

_READ: Final = ("GET", "HEAD")
OPENAPI: Final = "/openapi/v3"
OPENAPI_V2: Final = "/openapi/v2"
DEPRECATED: Final = {
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""What a client is warned of whatever it does with a kind."""
IMMUTABLE: Final = "Cache-Control: public, immutable\r\n"


class Routing:
    """The whole table of what is served."""

    def __init__(
        self,
        settings: Settings,
        objects: Objects,
        watches: Watches,
        scale: Scale,
        logs: PodLogs,
        specials: Specials,
        health: Health,
        meter: Meter,
        discovery: Discovery,
        openapi: OpenApi,
        views: Computed | None = None,
    ) -> None:
        self._settings = settings
        self._objects = objects
        self._watches = watches
        self._scale = scale
        self._logs = logs
        self._specials = dict(specials)
        self._health = health
        self._meter = meter
        self._discovery = discovery
        self._openapi = openapi
        self._views = views
        self._version = of_object(HTTPStatus.OK, version_info(settings.version)).body

    async def answer(
        self, request: web.BaseRequest, place: Place, verb: str, query: Query, caller: Caller, audit_id: str
    ) -> Answer:
        if not place.plural:
            return self._document(request, place.path, query)
        resource = place.resource
        if resource is None:
            raise no_such_path()
        if deprecated := DEPRECATED.get((resource.group, resource.plural)):
            warn([deprecated])
        asked = Incoming(request, place, resource, verb, query, caller, self._settings.limits.body_bytes)
        special = self._specials.get((resource.group, resource.plural, place.subresource))
        if special is not None:
            if verb != "create":
                raise wrong_method()
            return await self._objects.special(asked, special)
        if request.method == "HEAD":
            raise wrong_method()
        if place.subresource:
            return await self._subresource(asked, audit_id)
        if resource.computed and self._views is not None and verb in resource.verbs:
            if verb == "watch":
                headers = f"Audit-Id: {audit_id}\r\n"
                return await self._watches.answer(asked, self._objects.shower(asked), headers, self._views)
            return await self._objects.computed(asked, self._views)
        if not resource.stored:
            raise no_such_path() if verb in resource.verbs else wrong_method()
        everywhere = resource.namespaced and not place.namespace
        if verb not in resource.verbs or (everywhere and verb in ("create", "deletecollection")):
            raise wrong_method()
        return await self._plain(asked, audit_id)

    # -- objects -------------------------------------------------------------------------------------------------

    async def _plain(self, asked: Incoming, audit_id: str) -> Answer:
        objects = self._objects
        match asked.verb:
            case "get":
                return await objects.get(asked)
            case "list":
                return await objects.list(asked)
            case "watch":
                return await self._watches.answer(asked, objects.shower(asked), f"Audit-Id: {audit_id}\r\n")
            case "create":
                if asked.place.name:
                    raise wrong_method()
                return await objects.create(asked)
            case "update":
                return await self._named(asked, objects.update)
            case "patch":
                if not asked.place.name:
                    raise wrong_method()
                return await objects.patch(asked, patch_type(asked.content_type))
            case "delete":
                return await objects.delete(asked)
            case "deletecollection":
                return await objects.delete_collection(asked)
            case _:
                raise wrong_method()

    async def _named(self, asked: Incoming, handler: Any) -> Answer:
        if not asked.place.name:
            raise wrong_method()
        answer: Answer = await handler(asked)
        return answer

    async def _subresource(self, asked: Incoming, audit_id: str) -> Answer:
        name, verb = asked.place.subresource, asked.verb
        if verb not in subresource_verbs(name):
            raise wrong_method()
        if name == "log":
            return await self._logs.answer(asked, f"Audit-Id: {audit_id}\r\n")
        if name in ("status", "finalize"):
            if verb == "patch":
                return await self._objects.patch(asked, patch_type(asked.content_type))
            return await (self._objects.get(asked) if verb == "get" else self._objects.update(asked))
        if name == "scale":
            if verb == "patch":
                return await self._scale.patch(asked, patch_type(asked.content_type))
            return await (self._scale.get(asked) if verb == "get" else self._scale.update(asked))
        raise no_such_path()

    # -- documents -----------------------------------------------------------------------------------------------

    def _document(self, request: web.BaseRequest, path: str, query: Query) -> Answer:
        path = path.removesuffix("/") or "/"
        if self._health.serves(path):
            return self._health.answer(path, query)
        found = self._found(request, path, query)
        if found is None:
            raise no_such_path()
        if request.method not in _READ:
            raise wrong_method()
        return found

    def _found(self, request: web.BaseRequest, path: str, query: Query) -> Answer | None:
        accept = request.headers.get("Accept", "")
        if path == "/version":
            return Answer(HTTPStatus.OK, self._version)
        if path == "/metrics":
            return Answer(HTTPStatus.OK, self._meter.text(), CONTENT_TYPE)
        if path == "/":
            paths = [*self._discovery.paths, "/healthz", "/livez", "/metrics", OPENAPI_V2, OPENAPI]
            paths += ["/readyz", "/version"]
            return of_object(HTTPStatus.OK, {"paths": paths})
        if path == OPENAPI or path.startswith(OPENAPI + "/"):
            return self._openapi_document(request, path, query)
        if path == OPENAPI_V2:
            return _tagged(request, *self._openapi.empty_v2(PROTOBUF_V2 in accept))
        if path in ("/api", "/apis") and (version := wants_discovery(accept)):
            document = self._discovery.aggregated(path, version)
            kind = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            return None if document is None else _tagged(request, document, kind)
        document = self._discovery.plain(path, request.headers.get("Host", ""))
        if document is None:
            return None
        return _tagged(request, document, JSON)

    def _openapi_document(self, request: web.BaseRequest, path: str, query: Query) -> Answer | None:
        name = path.removeprefix(OPENAPI).removeprefix("/")
        document = self._openapi.document(name) if name else self._openapi.index()
        if document is None:
            return None
        answer = _tagged(request, document, JSON)
        if name and query.get("hash") == document.etag.strip('"'):
            answer.headers += IMMUTABLE
        return answer


def _tagged(request: web.BaseRequest, document: Document, content_type: str) -> Answer:
    """With an ETag; nothing but that for a client that has the document already."""
    headers = f"ETag: {document.etag}\r\nVary: Accept\r\n"
    if document.etag in request.headers.get("If-None-Match", ""):
        return Answer(HTTPStatus.NOT_MODIFIED, b"", content_type, headers)
    return Answer(HTTPStatus.OK, document.body, content_type, headers)


def version_info(version: str) -> Mapping[str, str]:
    major, minor, *_ = version.removeprefix("v").split(".")
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": version,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{python}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{_MACHINES.get(platform.machine(), platform.machine())}",
    }


_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
