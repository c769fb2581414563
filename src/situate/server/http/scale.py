"""Serves the scale subresource of every kind with replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from situate.server.errors import Cause, StatusError, bad_request, conflict, invalid
from situate.server.http import bodies, query
from situate.server.http.request import ApiRequest
from situate.server.http.responses import Response, object_response
from situate.server.kinds.custom_version import ScalePaths
from situate.server.objects import shown_name
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object, Target
from situate.server.resources import Resource
from situate.server.tables.cells import selector
from situate.wire.patching import PatchError, json_patched, merge_patched
from situate.wire.schema import DecodeError, normalised

API_VERSION: Final = "autoscaling/v1"
KIND: Final = "Scale"
NO_REPLICAS: Final = "Internal error occurred: the spec replicas field {path} does not exist in {name}"
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
        patch: Object = _patch_at(_replicas_path(request.resource), replicas)
        if version := metadata.get("resourceVersion"):
            patch["metadata"] = {"resourceVersion": version}
        if uid := metadata.get("uid"):
            stored = await self._stored(request)
            if stored.uid != uid:
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored.uid}"
                raise conflict(request.resource.plural, request.resource.group, request.url.name, why)
        target = request.target if request.resource.custom is None else _whole(request.target)
        done = await self._registry.patch(target, "merge", patch, request.caller, options)
        return object_response(HTTPStatus.OK, scale_of(done.stored, request))


def _replicas_path(resource: Resource) -> tuple[str, ...]:
    if resource.custom is None or resource.custom.scale is None:
        return ("spec", "replicas")
    return _names(resource.custom.scale.replicas)


def _names(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split("."))


def _patch_at(path: tuple[str, ...], value: Any) -> Object:
    for name in reversed(path):
        value = {name: value}
    patch: Object = value
    return patch


def _value_at(obj: Any, path: str) -> Any:
    for name in _names(path):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _custom_scale(obj: Object, paths: ScalePaths) -> Object:
    wanted, observed = _value_at(obj, paths.replicas), _value_at(obj, paths.observed)
    if wanted is None:
        raise StatusError(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "InternalError",
            NO_REPLICAS.format(path=paths.replicas, name=shown_name(obj)),
        )
    status: Object = {"replicas": observed if isinstance(observed, int) else 0}
    if paths.selector and isinstance(text := _value_at(obj, paths.selector), str) and text:
        status["selector"] = text
    metadata = {key: obj["metadata"][key] for key in _METADATA if key in obj["metadata"]}
    spec = {"replicas": wanted} if wanted else {}
    return {"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": status}


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
    if request.resource.custom is not None and request.resource.custom.scale is not None:
        return _custom_scale(obj, request.resource.custom.scale)
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
