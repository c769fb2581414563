"""The controllers over a registry: everything stored is told to their runner, in the order it happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from situate.core.reconcile.nodes.cleanup import LEASES as NODE_LEASES
from situate.core.reconcile.nodes.fencing import KUBERNETES, NodeProfile
from situate.loop.controllers.cache import ServedKind
from situate.loop.controllers.runner import Runner
from situate.loop.drive import running_clock
from situate.loop.logs import Log
from situate.server.controllers.registry_port import UNTOLD, RegistryPort
from situate.server.errors import StatusError
from situate.server.registry.registry import Registry
from situate.server.requests import Target, WatchOptions
from situate.server.resources import BY_KIND, RESOURCES, Resource

__all__ = ["RegistryControllers"]

LEASES: Final = BY_KIND["coordination.k8s.io/v1", "Lease"]
AGAIN_S: Final = 1.0
"""How long to wait before a watch that failed is begun again."""

_log = Log(__name__)


class RegistryControllers:
    """`run` it until it is cancelled."""

    def __init__(
        self, registry: Registry, wall_ns: Callable[[], int] = time.time_ns, profile: NodeProfile | None = KUBERNETES
    ) -> None:
        """`profile`: how nodes are looked after; None: not at all."""
        self._registry = registry
        self._profile = profile
        self._resources = [one for one in RESOURCES if _is_told(one)]
        served = [_served(one) for one in RESOURCES if one.stored]
        self.runner = Runner(served, RegistryPort(registry, wall_ns), running_clock(), profile)

    async def run(self) -> None:
        synced = [asyncio.Event() for _ in self._resources]
        async with asyncio.TaskGroup() as group:
            for resource, event in zip(self._resources, synced, strict=True):
                group.create_task(self._follow(resource, event))
            if self._profile is not None:
                synced.append(asyncio.Event())
                group.create_task(self._follow_leases(synced[-1]))
            for event in synced:
                await event.wait()
            group.create_task(self.runner.run())

    async def _follow(self, resource: Resource, synced: asyncio.Event) -> None:
        """List and watch, for ever. What a new list does not have is gone."""
        served, known = _served(resource), dict[tuple[str, str], None]()
        while True:
            watching = await self._registry.watch(
                Target(resource),
                WatchOptions(initial_events=True, resource_version_match="NotOlderThan", bookmarks=True),
            )
            listed: dict[tuple[str, str], None] | None = {}
            try:
                async for event in watching:
                    if event.stored is not None:
                        key = (event.stored.namespace, event.stored.name)
                        if event.type == "DELETED":
                            known.pop(key, None)
                            self.runner.gone(served, *key, event.revision)
                        else:
                            known[key] = None
                            if listed is not None:
                                listed[key] = None
                            self.runner.seen(served, event.stored.to_json(resource))
                    elif event.initial_end and listed is not None:
                        for key in [key for key in known if key not in listed]:
                            del known[key]
                            self.runner.gone(served, *key, event.revision)
                        listed = None
                        synced.set()
            except StatusError as error:
                _log.warning("Controllers do not see a kind; trying again", kind=resource.plural, err=error.message)
            finally:
                await watching.aclose()
            await asyncio.sleep(AGAIN_S)

    async def _follow_leases(self, synced: asyncio.Event) -> None:
        """Of nodes, and nothing but when they are renewed: there are hundreds in a second."""
        known = dict[str, None]()
        runner = self.runner
        while True:
            watching = await self._registry.watch(
                Target(LEASES, NODE_LEASES),
                WatchOptions(initial_events=True, resource_version_match="NotOlderThan", bookmarks=True),
            )
            listed: dict[str, None] | None = {}
            try:
                async for event in watching:
                    if event.stored is not None:
                        name = event.stored.name
                        if event.type == "DELETED":
                            known.pop(name, None)
                            runner.lease_gone(name)
                            continue
                        known[name] = None
                        if listed is not None:
                            listed[name] = None
                        runner.renewed(event.stored.to_json(LEASES))
                    elif event.initial_end and listed is not None:
                        for name in [name for name in known if name not in listed]:
                            del known[name]
                            runner.lease_gone(name)
                        listed = None
                        runner.leases_seen(True)
                        synced.set()
            except StatusError as error:
                _log.warning("Controllers do not see nodes' leases; trying again", err=error.message)
            finally:
                runner.leases_seen(False)
                await watching.aclose()
            await asyncio.sleep(AGAIN_S)


def _is_told(resource: Resource) -> bool:
    own_place = resource.stored_as == f"{resource.group}/{resource.plural}"
    return resource.stored and own_place and resource not in UNTOLD


def _served(resource: Resource) -> ServedKind:
    return ServedKind(resource.api_version, resource.kind, resource.plural)
