"""Carries out in the registry what controllers ask for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeAlias, assert_never

from situate.core.reconcile.effects import (
    CreateObject,
    DeleteObject,
    Effect,
    FinalizeNamespace,
    ObjectRef,
    PatchStatus,
    RecordEvent,
    UpdateObject,
    UpdateStatus,
)
from situate.loop.controllers.events import event_body, event_name, space_of
from situate.loop.controllers.runner import RefusedError, WriteResult
from situate.server.errors import StatusError
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Caller, DeleteOptions, ListOptions, Target
from situate.server.resources import BY_KIND, RESOURCES
from situate.wire.bodies import seconds_time
from situate.wire.patching import merge_patched

__all__ = ["CONTROLLERS", "UNTOLD", "RegistryPort"]

CONTROLLERS: Final = Caller(
    "system:kube-controller-manager", ("system:masters", "system:authenticated"), agent="kube-controller-manager"
)
EVENTS: Final = BY_KIND["v1", "Event"]
UNTOLD: Final = tuple(
    one for one in RESOURCES if one.stored and one.plural in ("events", "leases", "placementdecisions", "nodesnapshots")
)
"""Come and go by the thousand, own nothing, and are looked after by whoever writes them: controllers are not told of
them. When their namespace goes, they go."""
REMEMBERED: Final = 4_096
"""How many events are remembered, so that what happens again is counted and not told anew."""

_Said: TypeAlias = tuple[ObjectRef, str, str]


class RegistryPort:
    """A Port of loop/controllers."""

    def __init__(self, registry: Registry, wall_ns: Callable[[], int]) -> None:
        self._registry = registry
        self._wall_ns = wall_ns
        self._said: OrderedDict[_Said, tuple[str, int]] = OrderedDict()
        self._count = 0

    async def perform(self, effect: Effect) -> WriteResult | None:
        try:
            return await self._perform(effect)
        except StatusError as error:
            if isinstance(effect, DeleteObject) and error.code == HTTPStatus.NOT_FOUND:
                return WriteResult(effect.ref, None)
            settled = error.code in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)
            raise RefusedError(error.message, settled=settled) from None

    async def _perform(self, effect: Effect) -> WriteResult | None:
        registry = self._registry
        match effect:
            case CreateObject(ref=ref, body=body):
                target = Target(BY_KIND[ref.api_version, ref.kind], ref.namespace)
                held = await registry.create(target, dict(body), CONTROLLERS)
            case UpdateObject(ref=ref, resource_version=version, patch=patch):
                expected = {"uid": ref.uid, "resourceVersion": version, **patch.get("metadata", {})}
                asked = {**patch, "metadata": expected}
                held = (await registry.patch(_target(ref), "merge", asked, CONTROLLERS)).stored
            case UpdateStatus(ref=ref, resource_version=version, status=status):
                held = await registry.modify(
                    _target(ref, "status"),
                    lambda obj, _: {**obj, "status": dict(status)},
                    CONTROLLERS,
                    uid=ref.uid,
                    resource_version=version,
                )
            case PatchStatus(ref=ref, resource_version=version, patch=part):
                held = await registry.modify(
                    _target(ref, "status"),
                    lambda obj, _: {**obj, "status": merge_patched(obj.get("status", {}), part)},
                    CONTROLLERS,
                    uid=ref.uid,
                    resource_version=version,
                )
            case FinalizeNamespace(ref=ref, resource_version=version, finalizers=finalizers):
                held = await self._finalize(ref, version, finalizers)
                return WriteResult(ref, held.revision)
            case DeleteObject(ref=ref, resource_version=version, propagation=propagation, grace_s=grace_s):
                options = DeleteOptions(grace_s=grace_s, uid=ref.uid, resource_version=version, propagation=propagation)
                await registry.delete(_target(ref), CONTROLLERS, options)
                return WriteResult(ref, None)
            case RecordEvent():
                await self._record(effect)
                return None
            case _:
                assert_never(effect)
        return WriteResult(effect.ref, held.revision)

    async def _finalize(self, ref: ObjectRef, version: str, finalizers: tuple[str, ...]) -> StoredObject:
        for resource in UNTOLD:
            if resource.namespaced:
                everything = Target(resource, ref.name)
                await self._registry.delete_collection(everything, CONTROLLERS, ListOptions(), DeleteOptions())
        target = _target(ref, "finalize")
        obj = (await self._registry.get(_target(ref))).object(target.resource)
        obj["metadata"]["resourceVersion"] = version
        obj["spec"] = {**obj.get("spec", {}), "finalizers": list(finalizers)}
        return await self._registry.update(target, obj, CONTROLLERS)

    async def _record(self, event: RecordEvent) -> None:
        """What was said already is counted."""
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


def _target(ref: ObjectRef, subresource: str = "") -> Target:
    return Target(BY_KIND[ref.api_version, ref.kind], ref.namespace, ref.name, subresource)
