"""Serves the scale subresource of every kind with replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from situate.server.errors import Cause, bad_request, conflict, invalid
from situate.server.http import bodies, query
from situate.server.http.request import ApiRequest
from situate.server.http.responses import Response, object_response
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object, Target
from situate.server.tables.cells import selector
from situate.wire.patching import PatchError, json_patched, merge_patched
from situate.wire.schema import DecodeError, normalised

API_VERSION: Final = "autoscaling/v1"
KIND: Final = "Scale"
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScaleHandler:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def get(self, request: ApiRequest) -> Response:
        return object_response(HTTPStatus.OK, scale_of(await self._stored(request), request))

    async def update(self, request: ApiRequest) -> Response:
        options = query.write_options(request.query, "UpdateOptions")
        scale = bodies.decode_object(await request.read(), request.content_type, API_VERSION, KIND, options)
        return await self._set(request, scale, "UpdateOptions", "")

    async def patch(self, request: ApiRequest, how: str) -> Response:
        query.write_options(request.query, "PatchOptions", how=how)
        patch = bodies.decode_patch(await request.read(), how)
        before = scale_of(await self._stored(request), request)
        # A patch without a resourceVersion must not fail because of a write in between.
        metadata = patch.get("metadata") if isinstance(patch, dict) else None
        given = isinstance(metadata, dict) and "resourceVersion" in metadata
        try:
            change: Callable[[Any, Any], Any] = json_patched if how == "json" else merge_patched
            scale = normalised(API_VERSION, KIND, change(before, patch))
        except (PatchError, DecodeError) as error:
            raise bad_request(str(error)) from None
        if not given:
            scale.get("metadata", {}).pop("resourceVersion", None)
        return await self._set(request, scale, "PatchOptions", how)

    async def _stored(self, request: ApiRequest) -> StoredObject:
        return await self._registry.get(_whole(request.target))

    async def _set(self, request: ApiRequest, scale: Object, kind: str, how: str) -> Response:
        options = query.write_options(request.query, kind, how=how)
        metadata = scale.get("metadata") or {}
        _check(request, metadata)
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if replicas < 0:
            text = f"Invalid value: {replicas}: must be greater than or equal to 0"
            raise invalid(KIND, "autoscaling", request.url.name, [Cause("spec.replicas", text)])
        patch: Object = {"spec": {"replicas": replicas}}
        if version := metadata.get("resourceVersion"):
            patch["metadata"] = {"resourceVersion": version}
        if uid := metadata.get("uid"):
            stored = await self._stored(request)
            if stored.uid != uid:
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored.uid}"
                raise conflict(request.resource.plural, request.resource.group, request.url.name, why)
        done = await self._registry.patch(request.target, "merge", patch, request.caller, options)
        return object_response(HTTPStatus.OK, scale_of(done.stored, request))


def _whole(target: Target) -> Target:
    return Target(target.resource, target.namespace, target.name)


def _check(request: ApiRequest, metadata: Mapping[str, Any]) -> None:
    name, url = metadata.get("name", ""), request.url
    if not name:
        text = f"the name of the object ({url.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(text)
    if name != url.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({url.name})")


def scale_of(stored: StoredObject, request: ApiRequest) -> Object:
    obj = stored.object(request.resource)
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    wanted = spec.get("selector")
    if request.resource.plural == "replicationcontrollers":
        wanted = {"matchLabels": wanted or {}}
    shown: Object = {"replicas": status.get("replicas", 0)}
    if text := selector(wanted, ""):
        shown["selector"] = text
    metadata = {key: obj["metadata"][key] for key in _METADATA if key in obj["metadata"]}
    # Go leaves out a spec of zero replicas, not the spec.
    replicas = spec.get("replicas", 0)
    asked_for = {"replicas": replicas} if replicas else {}
    return {"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata, "spec": asked_for, "status": shown}
