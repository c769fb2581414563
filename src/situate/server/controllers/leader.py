"""The controllers of one server among several: the leader runs them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.loop.controllers.metrics import ControllerMetrics
from situate.loop.election import lead
from situate.server.controllers.registry_controllers import RegistryControllers
from situate.server.quota.settling import QuotaSettling
from situate.server.registry.registry import Registry
from situate.server.requests import SYSTEM
from situate.server.scheduling.lease_store import fence, server_elector
from situate.server.usage.autoscaler import Autoscaler

LEASE: Final = ("kube-system", "situate-controllers")


async def run_controllers(
    registry: Registry,
    identity: str,
    profile: NodeProfile,
    metrics: ControllerMetrics | None = None,
    wall_ns: Callable[[], int] = time.time_ns,
    *,
    moves_drifted: bool = False,
) -> None:
    """Runs until cancelled. Of several servers on one store, one runs the controllers.

    A new leader has seen what its predecessor wrote: the cache has the revision at which the lease was
    taken, and the store refuses later writes of the predecessor.
    """
    elector = server_elector(registry, identity, SYSTEM, wall_ns, lease=LEASE)
    fenced = registry.fenced(fence(registry, elector))

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(RegistryControllers(fenced, wall_ns, profile, metrics, moves_drifted=moves_drifted).run())
            group.create_task(QuotaSettling(fenced).run())
            group.create_task(Autoscaler(fenced, wall_ns).run())

    await lead(elector, run)
