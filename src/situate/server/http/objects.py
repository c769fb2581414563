"""The verbs on objects: a request in, an answer out, everything in between is the registry's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

from situate.server.errors import bad_request
from situate.server.http import bodies, query
from situate.server.http.negotiation import body_type
from situate.server.http.ports import Asked, Computed, Special, Tables
from situate.server.http.rendering import Shower, included
from situate.server.http.request import Incoming
from situate.server.http.responses import Answer, of_object
from situate.server.registry.registry import PatchType, Registry
from situate.server.requests import Object

__all__ = ["Objects", "check_names"]

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
    )
)
"""Deleting one of these is answered with the object as it was last; of all others with a Status."""
NEWLINE: Final = b"\n"


class Objects:
    def __init__(self, registry: Registry, tables: Tables, wall_ns: Callable[[], int]) -> None:
        self._registry = registry
        self._tables = tables
        self._wall_ns = wall_ns

    def shower(self, asked: Incoming) -> Shower:
        include = included(asked.query.get("includeObject", ""))
        return Shower(asked.resource, asked.form, self._tables, self._wall_ns, include)

    # -- reads ---------------------------------------------------------------------------------------------------

    async def get(self, asked: Incoming) -> Answer:
        shower = self.shower(asked)
        stored = await self._registry.get(asked.target, asked.query.get("resourceVersion", ""))
        return Answer(HTTPStatus.OK, (shower.one(stored), NEWLINE))

    async def list(self, asked: Incoming) -> Answer:
        shower = self.shower(asked)
        listing = await self._registry.list(asked.target, query.list_options(asked.query))
        return Answer(HTTPStatus.OK, await shower.many(listing))

    async def computed(self, asked: Incoming, views: Computed) -> Answer:
        """A read of what is not kept, but worked out."""
        shower = self.shower(asked)
        if asked.verb == "get":
            return Answer(HTTPStatus.OK, (shower.one(await views.get(asked.target)), NEWLINE))
        return Answer(HTTPStatus.OK, await shower.many(await views.list(asked.target, query.list_options(asked.query))))

    # -- writes --------------------------------------------------------------------------------------------------

    async def create(self, asked: Incoming) -> Answer:
        shower, resource = self.shower(asked), asked.resource
        options = query.write_options(asked.query, "CreateOptions")
        body, content_type = await asked.read(), asked.content_type
        decode = partial(bodies.object_of, body, content_type, resource.api_version, resource.kind, options)
        sent = body if body_type(content_type) == "json" else b""
        stored = await self._registry.create_body(asked.target, sent, decode, asked.caller, options)
        return Answer(HTTPStatus.CREATED, (shower.one(stored), NEWLINE))

    async def update(self, asked: Incoming) -> Answer:
        shower, resource = self.shower(asked), asked.resource
        options = query.write_options(asked.query, "UpdateOptions")
        obj = bodies.object_of(await asked.read(), asked.content_type, resource.api_version, resource.kind, options)
        check_names(asked, obj)
        stored = await self._registry.update(asked.target, obj, asked.caller, options)
        return Answer(HTTPStatus.OK, (shower.one(stored), NEWLINE))

    async def patch(self, asked: Incoming, how: str) -> Answer:
        shower = self.shower(asked)
        options = query.write_options(asked.query, "PatchOptions", how=how)
        patch = bodies.patch_of(await asked.read(), how)
        done = await self._registry.patch(asked.target, cast(PatchType, how), patch, asked.caller, options)
        code = HTTPStatus.CREATED if done.created else HTTPStatus.OK
        return Answer(code, (shower.one(done.stored), NEWLINE))

    async def delete(self, asked: Incoming) -> Answer:
        shower, resource = self.shower(asked), asked.resource
        body = bodies.delete_body(await asked.read(), asked.content_type)
        options = query.delete_options(asked.query, body)
        done = await self._registry.delete(asked.target, asked.caller, options)
        code = HTTPStatus.OK
        if not done.gone and options.propagation == "Orphan":
            code = HTTPStatus.ACCEPTED
        if done.gone and resource.plural not in RETURNS_DELETED:
            return of_object(code, deletion(asked, done.stored.uid))
        return Answer(code, (shower.one(done.stored), NEWLINE))

    async def delete_collection(self, asked: Incoming) -> Answer:
        shower = self.shower(asked)
        body = bodies.delete_body(await asked.read(), asked.content_type)
        options = query.delete_options(asked.query, body)
        selected = query.list_options(asked.query)
        gone = await self._registry.delete_collection(asked.target, asked.caller, selected, options)
        return Answer(HTTPStatus.OK, await shower.many(gone))

    # -- what is only asked --------------------------------------------------------------------------------------

    async def special(self, asked: Incoming, special: Special) -> Answer:
        options = query.write_options(asked.query, "CreateOptions")
        body = await asked.read()
        obj = bodies.object_of(body, asked.content_type, special.api_version, special.kind, options)
        answer = await special.call(Asked(asked.target, obj, asked.caller, options, options.dry_run))
        code = answer.get("code", HTTPStatus.CREATED) if answer.get("kind") == "Status" else HTTPStatus.CREATED
        return of_object(int(code), answer)


def check_names(asked: Incoming, obj: Object) -> None:
    """That an object which is to be changed is where the path says it is. Raises StatusError."""
    metadata = obj.get("metadata") or {}
    place, namespaced = asked.place, asked.resource.namespaced
    namespace = metadata.get("namespace", "")
    name = metadata.get("name", "")
    if not name:
        text = f"the name of the object ({place.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(text)
    if name != place.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({place.name})")
    if namespaced and namespace and namespace != place.namespace:
        text = f"the namespace of the object ({namespace}) does not match the namespace on the URL ({place.namespace})"
        raise bad_request(text)


def deletion(asked: Incoming, uid: str) -> Object:
    """The Status that tells of a deletion."""
    details: dict[str, Any] = {"name": asked.place.name}
    if asked.resource.group:
        details["group"] = asked.resource.group
    details |= {"kind": asked.resource.plural, "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
