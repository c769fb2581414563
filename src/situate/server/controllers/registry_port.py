"""Performs controllers' effects in the registry."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from situate.core.reconcile.effects import (
    CreateObject,
    DeleteObject,
    Effect,
    LeaseVersion,
    ObjectRef,
    RebindPod,
    RecordEvent,
)
from situate.core.reconcile.nodes.cleanup import LEASES as NODE_LEASES
from situate.loop.controllers.events import event_body, event_name, space_of
from situate.loop.controllers.port import RefusedError, WriteResult, call, refused
from situate.server.apiextensions.definition import as_stored
from situate.server.errors import StatusError, conflict, not_found
from situate.server.placing.eviction import Evictor
from situate.server.placing.rebinding import unbound
from situate.server.registry.batch import Creation
from situate.server.registry.keys import key_of, parse_key
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, DeleteOptions, ListOptions, Object, Target
from situate.server.resources import BY_KIND, RESOURCES, Resource
from situate.store.entries import ABSENT, Revision
from situate.store.transactions import At, Guard
from situate.wire.bodies import seconds_time
from situate.wire.patching import merge_patched

CONTROLLERS: Final = Caller(
    "system:kube-controller-manager", ("system:masters", "system:authenticated"), agent="kube-controller-manager"
)
EVENTS: Final = BY_KIND["v1", "Event"]
LEASES: Final = BY_KIND["coordination.k8s.io/v1", "Lease"]
RENEWED: Final = "the lease has been written since: the node may run its pods"
_UNWATCHED_PLURALS: Final = ("events", "leases", "placementdecisions", "nodesnapshots", "devicepools")
UNWATCHED: Final = tuple(one for one in RESOURCES if one.stored and one.plural in _UNWATCHED_PLURALS)
"""They come and go by the thousand, own nothing, and their writers manage them: controllers do not see them. They go
with their namespace."""
STORED: Final = {one.stored_as: one for one in RESOURCES if one.stored}
"""The resource of a key."""
REMEMBERED: Final = 4_096
"""How many events are remembered, to count what happens again."""

_Said: TypeAlias = tuple[ObjectRef, str, str]


class RegistryPort:
    """The ControllerPort of the registry."""

    def __init__(self, registry: Registry, wall_ns: Callable[[], int]) -> None:
        self._registry = registry
        self._wall_ns = wall_ns
        self._evictor = Evictor(registry, wall_ns)
        self._said: OrderedDict[_Said, tuple[str, int]] = OrderedDict()
        self._count = 0

    async def perform(self, effect: Effect) -> WriteResult | None:
        try:
            return await call(self, effect)
        except StatusError as error:
            return _refused(effect, error)

    async def create_each(self, effects: Sequence[CreateObject]) -> Sequence[WriteResult | Exception]:
        try:
            creations = [
                Creation(Target(self._resource(one.ref), one.ref.namespace), dict(one.body)) for one in effects
            ]
            made = await self._registry.create_each(creations, CONTROLLERS)
        except StatusError as error:
            raise RefusedError(error.message) from None
        return [_created(effect, outcome) for effect, outcome in zip(effects, made, strict=True)]

    async def is_gone(self, ref: ObjectRef) -> bool:
        resource = self._resource(ref)
        if self._registry.cache.unreadable_at(resource, ref.namespace, ref.name) is not None:
            raise RefusedError(self._registry.cache.missing(resource, ref.namespace, ref.name).message)
        held = self._registry.cache.get(resource, ref.namespace, ref.name)
        return held is None or ref.uid not in ("", held.uid)

    async def create(self, ref: ObjectRef, body: Mapping[str, Any]) -> int:
        target = Target(self._resource(ref), ref.namespace)
        return (await self._registry.create(target, dict(body), CONTROLLERS)).revision

    async def merge(self, ref: ObjectRef, patch: Mapping[str, Any]) -> int:
        return (await self._registry.patch(self._target(ref), "merge", patch, CONTROLLERS)).stored.revision

    async def replace_status(
        self, ref: ObjectRef, version: str, status: Mapping[str, Any], annotations: Mapping[str, str] | None
    ) -> int:
        return await self._modify_status(ref, version, lambda _: dict(status), annotations=annotations)

    async def merge_status(
        self, ref: ObjectRef, version: str, patch: Mapping[str, Any], lease: LeaseVersion | None = None
    ) -> int:
        return await self._modify_status(ref, version, lambda status: merge_patched(status, patch), lease)

    async def _modify_status(
        self,
        ref: ObjectRef,
        version: str,
        change: Callable[[Object], Object],
        lease: LeaseVersion | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> int:
        def changed(obj: Object, _stored: StoredObject) -> Object:
            metadata = obj["metadata"]
            if annotations is not None:
                metadata = {**metadata, "annotations": dict(annotations)}
            return {**obj, "metadata": metadata, "status": change(obj.get("status", {}))}

        target, registry = self._target(ref, "status"), self._while(lease)
        return (await registry.modify(target, changed, CONTROLLERS, uid=ref.uid, resource_version=version)).revision

    async def rebind(self, effect: RebindPod) -> int:
        ref, version, registry = effect.ref, effect.resource_version, self._while(effect.lease)

        def changed(pod: Object, _stored: StoredObject) -> Object:
            return unbound(pod, registry.new_uid(), seconds_time(self._wall_ns()))

        written = await registry.modify(self._target(ref), changed, CONTROLLERS, uid=ref.uid, resource_version=version)
        return written.revision

    def _while(self, lease: LeaseVersion | None) -> Registry:
        """A registry that writes only while a node's lease is at this version."""
        if lease is None:
            return self._registry
        cache, key = self._registry.cache, key_of(LEASES, NODE_LEASES, lease.node)

        def guard() -> Guard:
            held = cache.get(LEASES, NODE_LEASES, lease.node)
            if lease.resource_version != ("" if held is None else str(held.revision)):
                raise conflict(LEASES.plural, LEASES.group, lease.node, RENEWED)
            return At(key, ABSENT if held is None else Revision(held.revision))

        return self._registry.fenced(guard)

    async def delete(self, effect: DeleteObject) -> None:
        options = DeleteOptions(
            grace_s=effect.grace_s,
            uid=effect.ref.uid,
            resource_version=effect.resource_version,
            propagation=effect.propagation,
        )
        await self._while(effect.lease).delete(self._target(effect.ref), CONTROLLERS, options)

    async def evict(self, ref: ObjectRef) -> None:
        await self._evictor.evict(ref.namespace, ref.name, CONTROLLERS, DeleteOptions(uid=ref.uid))

    async def finalize(self, ref: ObjectRef, version: str, finalizers: tuple[str, ...]) -> int:
        for resource in UNWATCHED:
            if resource.namespaced:
                everything = Target(resource, ref.name)
                await self._registry.delete_collection(everything, CONTROLLERS, ListOptions(), DeleteOptions())
        custom = {one.stored_as: one for one in self._registry.custom.resources if one.namespaced}
        for resource in map(as_stored, custom.values()):  # a kind may be newer than what controllers have seen
            if self._registry.cache.count(resource, ref.name):
                everything = Target(resource, ref.name)
                await self._registry.delete_collection(everything, CONTROLLERS, ListOptions(), DeleteOptions())
                if self._registry.cache.count(resource, ref.name):
                    raise conflict("namespaces", "", ref.name, f"it still contains {resource.plural}.{resource.group}")
        for found in [one for one in self._registry.cache.unreadable() if one.namespace == ref.name]:
            stored_as = parse_key(found.key).stored_as
            if (known := STORED.get(stored_as) or custom.get(stored_as)) is not None:
                await self._registry.delete(Target(known, found.namespace, found.name), CONTROLLERS)
        target = self._target(ref, "finalize")
        obj = (await self._registry.get(self._target(ref))).object(target.resource)
        obj["metadata"]["resourceVersion"] = version
        obj["spec"] = {**obj.get("spec", {}), "finalizers": list(finalizers)}
        return (await self._registry.update(target, obj, CONTROLLERS)).revision

    async def record(self, event: RecordEvent) -> None:
        """Count an event that was recorded before."""
        said = (event.ref, event.reason, event.message)
        name, count = self._said.get(said, ("", 0))
        now = seconds_time(self._wall_ns())
        space = space_of(event)
        if name:
            try:
                again = {"count": count + 1, "lastTimestamp": now}
                await self._registry.patch(Target(EVENTS, space, name), "merge", again, CONTROLLERS)
            except StatusError as error:
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
                name = ""
        if not name:
            self._count += 1
            name, count = event_name(event, self._wall_ns(), self._count), 0
            await self._registry.create(Target(EVENTS, space), event_body(event, name, now), CONTROLLERS)
        self._said[said] = (name, count + 1)
        self._said.move_to_end(said)
        if len(self._said) > REMEMBERED:
            self._said.popitem(last=False)

    def _target(self, ref: ObjectRef, subresource: str = "") -> Target:
        return Target(self._resource(ref), ref.namespace, ref.name, subresource)

    def _resource(self, ref: ObjectRef) -> Resource:
        """404 for a custom kind that is not served any more."""
        known = BY_KIND.get((ref.api_version, ref.kind)) or self._registry.custom.of_kind(ref.api_version, ref.kind)
        if known is None:
            raise not_found(ref.kind, ref.api_version.rpartition("/")[0], ref.name)
        return as_stored(known)


def _refused(effect: Effect, error: StatusError) -> WriteResult:
    """Raises RefusedError, unless what was asked for is done."""
    not_found, conflict = error.code == HTTPStatus.NOT_FOUND, error.code == HTTPStatus.CONFLICT
    return refused(effect, error.message, not_found=not_found, conflict=conflict)


def _created(effect: CreateObject, outcome: StoredObject | Exception) -> WriteResult | Exception:
    if isinstance(outcome, StoredObject):
        return WriteResult(effect.ref, outcome.revision)
    if not isinstance(outcome, StatusError):
        return outcome
    try:
        return _refused(effect, outcome)
    except RefusedError as error:
        return error
