"""The controllers over a registry: they see everything that is stored, in the order in which it was written."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Final

from situate.core.reconcile.nodes.cleanup import LEASES as NODE_LEASES
from situate.core.reconcile.nodes.fencing import KUBERNETES, NodeProfile
from situate.loop.controllers.cache import ServedKind
from situate.loop.controllers.metrics import ControllerMetrics
from situate.loop.controllers.runner import Runner
from situate.loop.drive import running_clock
from situate.loop.logs import Log
from situate.server.controllers.custom_kinds import CustomFollowers
from situate.server.controllers.hindrance import hindrance
from situate.server.controllers.registry_port import UNWATCHED, RegistryPort
from situate.server.errors import StatusError
from situate.server.registry.registry import Registry
from situate.server.requests import Target, WatchOptions
from situate.server.resources import BY_KIND, RESOURCES, Resource

LEASES: Final = BY_KIND["coordination.k8s.io/v1", "Lease"]
WATCH: Final = WatchOptions(initial_events=True, resource_version_match="NotOlderThan", bookmarks=True)
LOOK_S: Final = 0.5
"""How often the controllers check whether the store answers."""
AGAIN_S: Final = 1.0
"""The pause before a watch that failed is opened again."""

_log = Log(__name__)


class RegistryControllers:
    """`run` it until it is cancelled."""

    def __init__(
        self,
        registry: Registry,
        wall_ns: Callable[[], int] = time.time_ns,
        profile: NodeProfile | None = KUBERNETES,
        metrics: ControllerMetrics | None = None,
        *,
        moves_drifted: bool = False,
    ) -> None:
        """`profile`: how nodes are monitored; None: not at all. `moves_drifted`: evict pods that no longer fit or match
        their node."""
        self._registry = registry
        self._profile = profile
        self._leases_watched = False
        self._store_answers = True
        served, port = [_served(one) for one in RESOURCES if one.stored], RegistryPort(registry, wall_ns)
        self.runner = Runner(
            served,
            port,
            running_clock(),
            profile,
            metrics,
            partial(hindrance, registry.cache),
            moves_drifted=moves_drifted,
            batching=port,
        )

    async def run(self) -> None:
        runner, synced = self.runner, list[asyncio.Event]()

        def new_event() -> asyncio.Event:
            synced.append(asyncio.Event())
            return synced[-1]

        async with asyncio.TaskGroup() as group:
            for one in RESOURCES:
                if _is_watched(one):
                    seen, gone = partial(runner.seen, _served(one)), partial(runner.gone, _served(one))
                    group.create_task(self._follow(Target(one), seen, gone, new_event()))
            if self._profile is not None:
                # Of leases only renewals count: there are hundreds in a second.
                leases = Target(LEASES, NODE_LEASES)
                group.create_task(
                    self._follow(leases, runner.renewed, self._lease_gone, new_event(), self._watches_leases)
                )
                group.create_task(self._look_at_store())
            custom = CustomFollowers(self._registry, runner, self._follow)
            await custom.start(group, synced)
            for event in synced:
                await event.wait()
            group.create_task(runner.run())
            group.create_task(custom.run(group))

    def _lease_gone(self, _namespace: str, node: str, _revision: int) -> None:
        self.runner.lease_gone(node)

    async def _look_at_store(self) -> None:
        """While the store does not answer, no node can renew its lease, so missed renewals do not count."""
        while True:
            await asyncio.sleep(LOOK_S)
            answers = not self._registry.cache.problem
            if answers != self._store_answers:
                self._store_answers = answers
                self._judge_nodes()

    def _watches_leases(self, watched: bool) -> None:
        self._leases_watched = watched
        self._judge_nodes()

    def _judge_nodes(self) -> None:
        self.runner.leases_seen(self._leases_watched and self._store_answers)

    async def _follow(
        self,
        target: Target,
        seen: Callable[[bytes, str, str], None],
        gone: Callable[[str, str, int], None],
        synced: asyncio.Event,
        watched: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """List and watch, for ever. What a new list does not have is gone. `watched`: whether everything is seen."""
        known: dict[tuple[str, str], None] = {}
        while True:
            listed: dict[tuple[str, str], None] | None = {}
            try:
                async with aclosing(await self._registry.watch(target, WATCH)) as watching:
                    async for event in watching:
                        if event.stored is not None:
                            key = (event.stored.namespace, event.stored.name)
                            if event.type == "DELETED":
                                known.pop(key, None)
                                gone(*key, event.revision)
                                continue
                            known[key] = None
                            if listed is not None:
                                listed[key] = None
                            seen(event.stored.to_json(target.resource), *key)
                        elif event.initial_end and listed is not None:
                            for key in [key for key in known if key not in listed]:
                                del known[key]
                                gone(*key, event.revision)
                            listed = None
                            watched(True)
                            synced.set()
            except StatusError as error:
                kind = target.resource.plural
                _log.warning("Controllers cannot watch a kind; trying again", kind=kind, err=error.message)
            finally:
                watched(False)
            await asyncio.sleep(AGAIN_S)


def _is_watched(resource: Resource) -> bool:
    own_place = resource.stored_as == f"{resource.group}/{resource.plural}"
    return resource.stored and own_place and resource not in UNWATCHED


def _served(resource: Resource) -> ServedKind:
    return ServedKind(resource.api_version, resource.kind, resource.plural)
