"""The subresource scale: how many, and which pods they are, the same way for everything that has replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from situate.server.errors import Cause, bad_request, conflict, invalid
from situate.server.http import bodies, query
from situate.server.http.request import Incoming
from situate.server.http.responses import Answer, of_object
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object, Target
from situate.server.tables.cells import selector
from situate.wire.patching import PatchError, json_patched, merge_patched
from situate.wire.schema import DecodeError, normalised

__all__ = ["Scale"]

API_VERSION: Final = "autoscaling/v1"
KIND: Final = "Scale"
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class Scale:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def get(self, asked: Incoming) -> Answer:
        return of_object(HTTPStatus.OK, scale_of(await self._stored(asked), asked))

    async def update(self, asked: Incoming) -> Answer:
        options = query.write_options(asked.query, "UpdateOptions")
        scale = bodies.object_of(await asked.read(), asked.content_type, API_VERSION, KIND, options)
        return await self._set(asked, scale, "UpdateOptions", "")

    async def patch(self, asked: Incoming, how: str) -> Answer:
        query.write_options(asked.query, "PatchOptions", how=how)
        patch = bodies.patch_of(await asked.read(), how)
        before = scale_of(await self._stored(asked), asked)
        # A patch without a version must not fail because somebody else wrote meanwhile.
        metadata = patch.get("metadata") if isinstance(patch, dict) else None
        given = isinstance(metadata, dict) and "resourceVersion" in metadata
        try:
            change: Callable[[Any, Any], Any] = json_patched if how == "json" else merge_patched
            scale = normalised(API_VERSION, KIND, change(before, patch))
        except (PatchError, DecodeError) as error:
            raise bad_request(str(error)) from None
        if not given:
            scale.get("metadata", {}).pop("resourceVersion", None)
        return await self._set(asked, scale, "PatchOptions", how)

    async def _stored(self, asked: Incoming) -> StoredObject:
        return await self._registry.get(_whole(asked.target))

    async def _set(self, asked: Incoming, scale: Object, kind: str, how: str) -> Answer:
        options = query.write_options(asked.query, kind, how=how)
        metadata = scale.get("metadata") or {}
        _check(asked, metadata)
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if replicas < 0:
            text = f"Invalid value: {replicas}: must be greater than or equal to 0"
            raise invalid(KIND, "autoscaling", asked.place.name, [Cause("spec.replicas", text)])
        patch: Object = {"spec": {"replicas": replicas}}
        if version := metadata.get("resourceVersion"):
            patch["metadata"] = {"resourceVersion": version}
        if uid := metadata.get("uid"):
            stored = await self._stored(asked)
            if stored.uid != uid:
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored.uid}"
                raise conflict(asked.resource.plural, asked.resource.group, asked.place.name, why)
        done = await self._registry.patch(asked.target, "merge", patch, asked.caller, options)
        return of_object(HTTPStatus.OK, scale_of(done.stored, asked))


def _whole(target: Target) -> Target:
    return Target(target.resource, target.namespace, target.name)


def _check(asked: Incoming, metadata: Mapping[str, Any]) -> None:
    name, place = metadata.get("name", ""), asked.place
    if not name:
        text = f"the name of the object ({place.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(text)
    if name != place.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({place.name})")


def scale_of(stored: StoredObject, asked: Incoming) -> Object:
    obj = stored.object(asked.resource)
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    wanted = spec.get("selector")
    if asked.resource.plural == "replicationcontrollers":
        wanted = {"matchLabels": wanted or {}}
    shown: Object = {"replicas": status.get("replicas", 0)}
    if text := selector(wanted, ""):
        shown["selector"] = text
    metadata = {key: obj["metadata"][key] for key in _METADATA if key in obj["metadata"]}
    # Go leaves out a spec of zero replicas, not the spec.
    replicas = spec.get("replicas", 0)
    asked_for = {"replicas": replicas} if replicas else {}
    return {"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata, "spec": asked_for, "status": shown}
