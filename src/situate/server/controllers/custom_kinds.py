"""Lets controllers see objects of custom kinds, for garbage collection and for the deletion of namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final, NamedTuple

from situate.loop.controllers.cache import ServedKind
from situate.loop.controllers.runner import Runner
from situate.loop.logs import Log
from situate.server.apiextensions.definition import as_stored
from situate.server.apiextensions.served import DEFINITIONS
from situate.server.errors import StatusError
from situate.server.registry.registry import Registry
from situate.server.requests import Target, WatchOptions
from situate.server.resources import Resource

WATCH: Final = WatchOptions(resource_version_match="NotOlderThan", initial_events=True, bookmarks=True)
AGAIN_S: Final = 1.0
"""The pause before definitions that could not be read or watched are asked for again."""

Follow = Callable[..., Coroutine[Any, Any, None]]
"""(target, seen, gone, synced): lists and watches a kind for ever."""

_log = Log(__name__)


class _Followed(NamedTuple):
    resource: Resource
    task: asyncio.Task[None]
    names: tuple[tuple[str, str], ...]
    """All its API versions, with the kind."""


class CustomFollowers:
    """Follows each custom kind in one of its versions."""

    def __init__(self, registry: Registry, runner: Runner, follow: Follow) -> None:
        self._registry = registry
        self._runner = runner
        self._follow = follow
        self._followed: dict[str, _Followed] = {}

    async def start(self, group: asyncio.TaskGroup, synced: list[asyncio.Event]) -> None:
        """Follow the kinds that exist, and append an event for each, which is set when all its objects were seen."""
        while True:
            try:
                await self._registry.cache.wait_until_fresh()
            except StatusError as error:
                _log.warning("Controllers cannot list custom kinds; trying again", err=error.message)
                await asyncio.sleep(AGAIN_S)
            else:
                break
        self._update(group, synced)

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Follow new kinds and forget old ones, until cancelled."""
        while True:
            try:
                async with aclosing(await self._registry.watch(Target(DEFINITIONS), WATCH)) as events:
                    async for event in events:
                        if event.stored is not None:
                            self._update(group, [])
            except StatusError:
                pass  # the cache says why in the log
            await asyncio.sleep(AGAIN_S)

    def _update(self, group: asyncio.TaskGroup, synced: list[asyncio.Event]) -> None:
        served: dict[str, list[Resource]] = {}
        for one in self._registry.custom.resources:
            served.setdefault(one.stored_as, []).append(one)
        self._forget(served)
        for stored_as, versions in served.items():
            if stored_as not in self._followed:
                self._add(group, stored_as, versions, synced)

    def _forget(self, served: Mapping[str, list[Resource]]) -> None:
        """Kinds that are gone, or are served in other versions, so that their objects have other names now."""
        for stored_as, found in list(self._followed.items()):
            versions = served.get(stored_as)
            if versions is not None and _names(versions) == found.names:
                continue
            found.task.cancel()
            del self._followed[stored_as]
            self._runner.view.graph.remove_kinds(found.names)
            one = _served(found.resource)
            for namespace, name in self._runner.view.names_of(one):
                self._runner.gone(one, namespace, name, 0)

    def _add(
        self, group: asyncio.TaskGroup, stored_as: str, versions: list[Resource], synced: list[asyncio.Event]
    ) -> None:
        resource, event = versions[0], asyncio.Event()
        one = _served(resource)
        seen, gone = partial(self._runner.seen, one), partial(self._runner.gone, one)
        task = group.create_task(self._follow(Target(as_stored(resource)), seen, gone, event))
        self._followed[stored_as] = _Followed(resource, task, _names(versions))
        self._runner.view.graph.add_kinds(_names(versions))
        synced.append(event)


def _names(versions: list[Resource]) -> tuple[tuple[str, str], ...]:
    return tuple((one.api_version, one.kind) for one in versions)


def _served(resource: Resource) -> ServedKind:
    return ServedKind(resource.api_version, resource.kind, resource.plural)
