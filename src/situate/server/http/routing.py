"""Routes a request to its handler: objects by verb and subresource, documents by path."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from situate import __version__
from situate.server.aggregation.apis import AggregatedApi
from situate.server.discovery import Document, subresource_verbs
from situate.server.http.aggregated import AggregationHandler
from situate.server.http.api_documents import ApiDocuments
from situate.server.http.health import Health
from situate.server.http.metrics import CONTENT_TYPE, RequestMetrics
from situate.server.http.negotiation import patch_type, refuse_table, wants_discovery
from situate.server.http.objects import ObjectHandler
from situate.server.http.pod_logs import PodLogHandler
from situate.server.http.pod_streams import STREAMING, PodStreamHandler
from situate.server.http.ports import ComputedResources, CreateHandlers
from situate.server.http.proxying import ProxyHandler
from situate.server.http.query import Query
from situate.server.http.request import ApiRequest
from situate.server.http.request_state import RequestState
from situate.server.http.responses import JSON, Response, object_response
from situate.server.http.scale import ScaleHandler
from situate.server.http.settings import ServerSettings
from situate.server.http.urls import PROXY, RequestUrl, no_such_path, with_custom, wrong_method
from situate.server.http.watches import WatchHandler
from situate.server.openapi import PROTOBUF_V2
from situate.server.registry.registry import Registry
from situate.server.registry.warning import warn
from situate.server.requests import Caller
from situate.server.resources import Resource, served_by

_READ: Final = ("GET", "HEAD")
OPENAPI: Final = "/openapi/v3"
OPENAPI_V2: Final = "/openapi/v2"
DEPRECATED: Final = {
    ("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""Warnings for every request of a kind."""
IMMUTABLE: Final = "Cache-Control: public, immutable\r\n"


class Router:
    def __init__(
        self,
        settings: ServerSettings,
        registry: Registry,
        objects: ObjectHandler,
        watches: WatchHandler,
        scale: ScaleHandler,
        logs: PodLogHandler,
        tunnels: PodStreamHandler,
        proxy: ProxyHandler,
        create_handlers: CreateHandlers,
        health: Health,
        metrics: RequestMetrics,
        documents: ApiDocuments,
        views: ComputedResources | None = None,
        aggregation: AggregationHandler | None = None,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._served = served_by(settings.version)
        self._objects = objects
        self._watches = watches
        self._scale = scale
        self._logs = logs
        self._tunnels = tunnels
        self._proxy = proxy
        self._create_handlers = dict(create_handlers)
        self._health = health
        self._metrics = metrics
        self._documents = documents
        self._views = views
        self._aggregation = aggregation
        self._version = object_response(HTTPStatus.OK, version_info(settings.version)).body

    def resolve(self, url: RequestUrl) -> RequestUrl:
        """The URL with its resource, if that is of a custom kind."""
        if url.resource is not None or not url.plural or self._aggregated(url) is not None:
            return url
        return with_custom(url, self._registry.custom.at_path(url.group, url.version, url.plural))

    async def handle(
        self,
        http_request: web.BaseRequest,
        url: RequestUrl,
        verb: str,
        query: Query,
        caller: Caller,
        state: RequestState,
    ) -> Response:
        if self._aggregation is not None and (api := self._aggregated(url)) is not None:
            target = http_request.raw_path if url.plural else url.path
            return await self._aggregation.handle(http_request, api, caller, state, target, f"Audit-Id: {state.id}\r\n")
        if not url.plural:
            return self._document(http_request, url.path, query)
        resource = url.resource
        if resource is None or (resource.since and resource not in self._served):
            raise no_such_path()
        _warn_of(resource)
        most, audit_id = self._settings.limits.body_bytes, state.id
        request = ApiRequest(http_request, url, resource, verb, query, caller, state, most)
        handler = self._create_handlers.get((resource.group, resource.plural, url.subresource))
        if handler is not None:
            if verb != "create":
                raise wrong_method()
            refuse_table(http_request.headers.get("Accept", ""))
            return await self._objects.run_handler(request, handler)
        if url.subresource == PROXY:
            return await self._proxy.handle(request, f"Audit-Id: {audit_id}\r\n")
        if http_request.method == "HEAD":
            raise wrong_method()
        if url.subresource:
            return await self._subresource(request, audit_id)
        if resource.computed and self._views is not None and verb in resource.verbs:
            if verb == "watch":
                headers = f"Audit-Id: {audit_id}\r\n"
                return await self._watches.handle(request, self._objects.renderer(request), headers, self._views)
            return await self._objects.read_computed(request, self._views)
        if not resource.stored:
            raise no_such_path() if verb in resource.verbs else wrong_method()
        everywhere = resource.namespaced and not url.namespace
        if verb not in resource.verbs or (everywhere and verb in ("create", "deletecollection")):
            raise wrong_method()
        return await self._plain(request, audit_id)

    def _aggregated(self, url: RequestUrl) -> AggregatedApi | None:
        """The API of another server at this path: of an object, or of an OpenAPI document."""
        if self._aggregation is None or url.resource is not None:
            return None
        if url.plural:
            return self._aggregation.apis.at(url.group, url.version)
        if not url.path.startswith(f"{OPENAPI}/apis/"):
            return None
        group, _, version = url.path.removeprefix(f"{OPENAPI}/apis/").partition("/")
        return self._aggregation.apis.at(group, version)

    # -- objects -------------------------------------------------------------------------------------------------

    async def _plain(self, request: ApiRequest, audit_id: str) -> Response:
        objects = self._objects
        match request.verb:
            case "get":
                return await objects.get(request)
            case "list":
                return await objects.list(request)
            case "watch":
                return await self._watches.handle(request, objects.renderer(request), f"Audit-Id: {audit_id}\r\n")
            case "create":
                if request.url.name:
                    raise wrong_method()
                return await objects.create(request)
            case "update":
                return await self._named(request, objects.update)
            case "patch":
                if not request.url.name:
                    raise wrong_method()
                return await objects.patch(request, _patch_type(request))
            case "delete":
                return await objects.delete(request)
            case "deletecollection":
                return await objects.delete_collection(request)
            case _:
                raise wrong_method()

    async def _named(self, request: ApiRequest, handler: Any) -> Response:
        if not request.url.name:
            raise wrong_method()
        response: Response = await handler(request)
        return response

    async def _subresource(self, request: ApiRequest, audit_id: str) -> Response:
        name, verb = request.url.subresource, request.verb
        if verb not in subresource_verbs(name):
            raise wrong_method()
        if name == "log":
            return await self._logs.handle(request, f"Audit-Id: {audit_id}\r\n")
        if name in STREAMING:
            return await self._tunnels.handle(request, f"Audit-Id: {audit_id}\r\n")
        if name in ("status", "finalize", "approval", "ephemeralcontainers"):
            if verb == "patch":
                return await self._objects.patch(request, _patch_type(request))
            return await (self._objects.get(request) if verb == "get" else self._objects.update(request))
        if name == "scale":
            if verb == "patch":
                return await self._scale.patch(request, _patch_type(request))
            return await (self._scale.get(request) if verb == "get" else self._scale.update(request))
        raise no_such_path()

    # -- documents -----------------------------------------------------------------------------------------------

    def _document(self, http_request: web.BaseRequest, path: str, query: Query) -> Response:
        path = path.removesuffix("/") or "/"
        if self._health.serves(path):
            return self._health.handle(path, query)
        found = self._found(http_request, path, query)
        if found is None:
            raise no_such_path()
        if http_request.method not in _READ:
            raise wrong_method()
        return found

    def _found(self, http_request: web.BaseRequest, path: str, query: Query) -> Response | None:
        accept = http_request.headers.get("Accept", "")
        if path == "/version":
            return Response(HTTPStatus.OK, self._version)
        if path == "/metrics":
            return Response(HTTPStatus.OK, self._metrics.text(), CONTENT_TYPE)
        if path == "/":
            paths = [*self._documents.discovery.paths, "/healthz", "/livez", "/metrics", OPENAPI_V2, OPENAPI]
            paths += ["/readyz", "/version"]
            return object_response(HTTPStatus.OK, {"paths": paths})
        if path == OPENAPI or path.startswith(OPENAPI + "/"):
            return self._openapi_document(http_request, path, query)
        if path == OPENAPI_V2:
            return _tagged(http_request, *self._documents.openapi.v2(PROTOBUF_V2 in accept))
        if path in ("/api", "/apis") and (version := wants_discovery(accept)):
            document = self._documents.discovery.aggregated(path, version)
            kind = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            return None if document is None else _tagged(http_request, document, kind)
        document = self._documents.discovery.plain(path, http_request.headers.get("Host", ""))
        if document is None:
            return None
        refuse_table(accept)
        return _tagged(http_request, document, JSON)

    def _openapi_document(self, http_request: web.BaseRequest, path: str, query: Query) -> Response | None:
        name = path.removeprefix(OPENAPI).removeprefix("/")
        openapi = self._documents.openapi
        document = openapi.document(name) if name else self._documents.openapi_index()
        if document is None:
            return None
        response = _tagged(http_request, document, JSON)
        if name and query.get("hash") == document.etag.strip('"'):
            response.headers += IMMUTABLE
        return response


def _warn_of(resource: Resource) -> None:
    if deprecated := DEPRECATED.get((resource.group, resource.plural)):
        warn([deprecated])
    if resource.custom is not None and resource.custom.warning:
        warn([resource.custom.warning])


def _patch_type(request: ApiRequest) -> str:
    return patch_type(request.content_type, custom=request.resource.custom is not None)


def _tagged(http_request: web.BaseRequest, document: Document, content_type: str) -> Response:
    """The document with an ETag; 304 if the client has it already."""
    headers = f"ETag: {document.etag}\r\nVary: Accept\r\n"
    if document.etag in http_request.headers.get("If-None-Match", ""):
        return Response(HTTPStatus.NOT_MODIFIED, b"", content_type, headers)
    return Response(HTTPStatus.OK, document.body, content_type, headers)


def version_info(version: str) -> Mapping[str, str]:
    """gitVersion is exactly Kubernetes': as a suffix would be a pre-release, which no chart's kubeVersion accepts.

    gitCommit says who answers.
    """
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
        "gitCommit": f"situate-{__version__}",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{python}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{_MACHINES.get(platform.machine(), platform.machine())}",
    }


_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
