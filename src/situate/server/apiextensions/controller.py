"""Runs beside the API: writes the conditions of definitions, and removes the objects of deleted ones.

Several servers on one store may run it at once: each write is conditional, and each step can be repeated. A definition
that cannot be handled is logged, and tried again after a pause; the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.apiextensions.accepted_names import AcceptedNames
from situate.server.apiextensions.definition import as_stored
from situate.server.apiextensions.names import NON_STRUCTURAL, accepted_status, terminating_status
from situate.server.apiextensions.served import DEFINITIONS
from situate.server.errors import StatusError
from situate.server.kinds.apiextensions.structural_rules import structural_problems
from situate.server.objects import Object
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import APISERVER, DeleteOptions, Target, WatchOptions
from situate.server.resources import BY_PATH, Resource

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
WATCH: Final = WatchOptions(initial_events=True, resource_version_match="NotOlderThan", bookmarks=True)
AGAIN_S: Final = 1.0
"""The pause before a definition that could not be handled is tried again, and between looks at objects that have
finalizers."""

_log = Log(__name__)


class DefinitionController:
    def __init__(self, registry: Registry, wall_ns: Callable[[], int]) -> None:
        self._registry = registry
        self._wall_ns = wall_ns
        self._names = AcceptedNames(registry.cache)
        self._due: dict[str, None] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        self._registry.custom.waits_for_prepare = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._work())

    async def _watch(self) -> None:
        while True:
            try:
                async with aclosing(await self._registry.watch(Target(DEFINITIONS), WATCH)) as events:
                    async for event in events:
                        if event.stored is not None:
                            self._end_watches(event.stored)
                            self._put(event.stored.name)
                            if event.type == "DELETED":  # its names are free now
                                self._put_all()
            except StatusError as error:
                _log.warning("Definitions of custom resources cannot be watched; trying again", err=error.message)
            await asyncio.sleep(AGAIN_S)

    def _end_watches(self, stored: StoredObject) -> None:
        """Watches show objects as the definition was when they were opened: those of an older one end, and their
        clients open new ones."""
        crd = stored.object(DEFINITIONS)
        spec, generation = crd["spec"], crd["metadata"].get("generation", 0)
        stored_as = f"{spec['group']}/{spec['names']['plural']}"
        resource = next((one for one in self._registry.custom.resources if one.stored_as == stored_as), None)
        if resource is None:
            return
        for watch in self._registry.cache.of(resource).broadcaster.watches():
            custom = watch.resource.custom
            if custom is not None and custom.generation != generation:
                watch.end()

    def _put(self, name: str) -> None:
        self._due[name] = None
        self._wake.set()

    def _put_all(self) -> None:
        for stored in self._registry.cache.all(DEFINITIONS):
            self._put(stored.name)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            names, self._due = self._due, {}
            for name in names:
                try:
                    again = await self._handle(name)
                except StatusError as error:
                    again = error.code != HTTPStatus.NOT_FOUND
                except Exception as error:  # noqa: BLE001 - whatever is odd about this definition, the others go on
                    _log.error("A CustomResourceDefinition cannot be handled", name=name, err=describe_error(error))
                    again = True
                if again:
                    loop.call_later(AGAIN_S, self._put, name)
                await asyncio.sleep(0)  # at start-up all are due, and most need no write, which would wait

    def _now(self) -> str:
        return datetime.fromtimestamp(self._wall_ns() // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def _handle(self, name: str) -> bool:
        """Whether to look at it again soon."""
        stored = self._registry.cache.get(DEFINITIONS, "", name)
        if stored is None:
            return False
        crd = stored.object(DEFINITIONS)
        if "deletionTimestamp" in crd["metadata"]:
            return await self._finalize(crd)
        if await self._registry.custom.prepare(crd):
            self._end_watches(stored)
        others = self._names.beside(name, crd["spec"]["group"])
        problems = structural_problems(crd)

        def change(obj: Object, _stored: StoredObject) -> Object:
            status = accepted_status(obj, others, problems, self._now())
            finalizers = obj["metadata"].get("finalizers", [])
            if FINALIZER not in finalizers:
                obj["metadata"]["finalizers"] = [*finalizers, FINALIZER]
            return {**obj, "status": status}

        done = await self._registry.modify(Target(DEFINITIONS, "", name), change, APISERVER, uid=stored.uid)
        if done.revision != stored.revision and any(one["type"] == NON_STRUCTURAL for one in _conditions(crd)):
            _log.warning("A CustomResourceDefinition has a schema that is not structural", name=name)
        return False

    # -- deletion -----------------------------------------------------------------------------------------------------

    async def _finalize(self, crd: Object) -> bool:
        name = crd["metadata"]["name"]
        if FINALIZER not in crd["metadata"].get("finalizers", ()):
            return False
        resource = self._resource(crd)
        if resource is not None:
            await self._mark(crd, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            if await self._remove_objects(resource):
                return True

        def change(obj: Object, _stored: StoredObject) -> Object:
            finalizers = [one for one in obj["metadata"].get("finalizers", ()) if one != FINALIZER]
            obj["metadata"] = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
            if finalizers:
                obj["metadata"]["finalizers"] = finalizers
            reason, text = "InstanceDeletionCompleted", "removed all instances"
            return {**obj, "status": terminating_status(obj, reason, text, self._now(), over=True)}

        await self._registry.modify(Target(DEFINITIONS, "", name), change, APISERVER, uid=crd["metadata"]["uid"])
        return False

    def _resource(self, crd: Object) -> Resource | None:
        """Under which its objects are stored; None if they are not its own, or there never were any."""
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        for version in crd["spec"]["versions"]:
            if (group, version["name"], plural) in BY_PATH:
                return None
            if (found := self._registry.custom.at_path(group, version["name"], plural)) is not None:
                return found
        return None

    async def _mark(self, crd: Object, reason: str, message: str) -> None:
        def change(obj: Object, _stored: StoredObject) -> Object:
            return {**obj, "status": terminating_status(obj, reason, message, self._now())}

        target = Target(DEFINITIONS, "", crd["metadata"]["name"])
        await self._registry.modify(target, change, APISERVER, uid=crd["metadata"]["uid"])

    async def _remove_objects(self, resource: Resource) -> bool:
        """Whether some are left: they have finalizers."""
        resource = as_stored(resource)
        for one in list(self._registry.cache.all(resource)):
            try:
                await self._registry.delete(Target(resource, one.namespace, one.name), APISERVER, DeleteOptions())
            except StatusError as error:
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
        for unreadable in list(self._registry.cache.of(resource).unreadable.values()):
            await self._registry.delete(Target(resource, unreadable.namespace, unreadable.name), APISERVER)
        return self._registry.cache.count(resource) > 0


def _conditions(crd: Object) -> list[Object]:
    return list((crd.get("status") or {}).get("conditions") or ())
