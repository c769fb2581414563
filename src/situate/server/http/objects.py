"""Serves the verbs on objects: decodes the request, calls the registry, renders the response."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

from situate.server.errors import bad_request
from situate.server.http import bodies, query
from situate.server.http.negotiation import body_type
from situate.server.http.ports import ComputedResources, CreateHandler, CreateRequest, Tables
from situate.server.http.rendering import Renderer, include_object
from situate.server.http.request import ApiRequest
from situate.server.http.responses import Response, object_response
from situate.server.registry.registry import PatchType, Registry
from situate.server.requests import Object

RETURNS_DELETED: Final = frozenset(
    (
        "pods",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
        "deviceclasses",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourceslices",
        "csidrivers",
        "csinodes",
        "storageclasses",
        "volumeattachments",
        "volumeattributesclasses",
    )
)
"""The response to a delete of these is the last state of the object; of all others a Status."""
NEWLINE: Final = b"\n"


class ObjectHandler:
    def __init__(self, registry: Registry, tables: Tables, wall_ns: Callable[[], int]) -> None:
        self._registry = registry
        self._tables = tables
        self._wall_ns = wall_ns

    def renderer(self, request: ApiRequest) -> Renderer:
        include = include_object(request.query.get("includeObject", ""))
        return Renderer(request.resource, request.form, self._tables, self._wall_ns, include)

    # -- reads ---------------------------------------------------------------------------------------------------

    async def get(self, request: ApiRequest) -> Response:
        renderer = self.renderer(request)
        stored = await self._registry.get(request.target, request.query.get("resourceVersion", ""))
        return Response(HTTPStatus.OK, (renderer.object(stored), NEWLINE))

    async def list(self, request: ApiRequest) -> Response:
        renderer = self.renderer(request)
        listing = await self._registry.list(request.target, query.list_options(request.query))
        return Response(HTTPStatus.OK, renderer.list_chunks(listing))

    async def read_computed(self, request: ApiRequest, views: ComputedResources) -> Response:
        """Read a computed resource."""
        renderer = self.renderer(request)
        if request.verb == "get":
            return Response(HTTPStatus.OK, (renderer.object(await views.get(request.target)), NEWLINE))
        return Response(
            HTTPStatus.OK,
            renderer.list_chunks(await views.list(request.target, query.list_options(request.query))),
        )

    # -- writes --------------------------------------------------------------------------------------------------

    async def create(self, request: ApiRequest) -> Response:
        renderer, resource = self.renderer(request), request.resource
        options = query.write_options(request.query, "CreateOptions")
        body, content_type = await request.read(), request.content_type
        decode = partial(bodies.decode_resource, body, content_type, resource, options)
        sent = body if body_type(content_type, custom=resource.custom is not None) == "json" else b""
        stored = await self._registry.create_body(request.target, sent, decode, request.caller, options)
        return Response(HTTPStatus.CREATED, (renderer.object(stored), NEWLINE))

    async def update(self, request: ApiRequest) -> Response:
        renderer, resource = self.renderer(request), request.resource
        options = query.write_options(request.query, "UpdateOptions")
        obj = bodies.decode_resource(await request.read(), request.content_type, resource, options)
        check_names(request, obj)
        done = await self._registry.replace(request.target, obj, request.caller, options)
        code = HTTPStatus.CREATED if done.created else HTTPStatus.OK
        return Response(code, (renderer.object(done.stored), NEWLINE))

    async def patch(self, request: ApiRequest, how: str) -> Response:
        renderer = self.renderer(request)
        options = query.write_options(request.query, "PatchOptions", how=how)
        patch = bodies.decode_patch(await request.read(), how)
        done = await self._registry.patch(request.target, cast(PatchType, how), patch, request.caller, options)
        code = HTTPStatus.CREATED if done.created else HTTPStatus.OK
        return Response(code, (renderer.object(done.stored), NEWLINE))

    async def delete(self, request: ApiRequest) -> Response:
        renderer, resource = self.renderer(request), request.resource
        body = bodies.decode_delete_options(await request.read(), request.content_type)
        options = query.delete_options(request.query, body)
        done = await self._registry.delete(request.target, request.caller, options)
        code = HTTPStatus.OK
        if not done.gone and options.propagation == "Orphan":
            code = HTTPStatus.ACCEPTED
        if done.gone and (resource.custom is not None or resource.plural not in RETURNS_DELETED):
            return object_response(code, deletion(request, done.stored.uid))
        return Response(code, (renderer.object(done.stored), NEWLINE))

    async def delete_collection(self, request: ApiRequest) -> Response:
        renderer = self.renderer(request)
        body = bodies.decode_delete_options(await request.read(), request.content_type)
        options = query.delete_options(request.query, body)
        selected = query.list_options(request.query)
        gone = await self._registry.delete_collection(request.target, request.caller, selected, options)
        return Response(HTTPStatus.OK, renderer.list_chunks(gone))

    # -- creates that store nothing -----------------------------------------------------------------------------

    async def run_handler(self, request: ApiRequest, handler: CreateHandler) -> Response:
        options = query.write_options(request.query, "CreateOptions")
        body = await request.read()
        obj = bodies.decode_object(body, request.content_type, handler.api_version, handler.kind, options)
        response = await handler.call(CreateRequest(request.target, obj, request.caller, options, options.dry_run))
        code = response.get("code", HTTPStatus.CREATED) if response.get("kind") == "Status" else HTTPStatus.CREATED
        return object_response(int(code), response)


def check_names(request: ApiRequest, obj: Object) -> None:
    """Check that the name and namespace of an object match the URL. Raises StatusError."""
    metadata = obj.get("metadata") or {}
    url, namespaced = request.url, request.resource.namespaced
    namespace = metadata.get("namespace", "")
    name = metadata.get("name", "")
    if not name:
        text = f"the name of the object ({url.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(text)
    if name != url.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({url.name})")
    if namespaced and namespace and namespace != url.namespace:
        text = f"the namespace of the object ({namespace}) does not match the namespace on the URL ({url.namespace})"
        raise bad_request(text)


def deletion(request: ApiRequest, uid: str) -> Object:
    """The Status that answers a delete."""
    details: dict[str, Any] = {"name": request.url.name}
    if request.resource.group:
        details["group"] = request.resource.group
    details |= {"kind": request.resource.plural, "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
