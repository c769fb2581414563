"""The controllers of several servers on one store: one runs them, it survives outages, and no pod is made twice."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest

from server.placing.world import World, opened, opened_again
from situate.core.reconcile.nodes.fencing import KUBERNETES
from situate.server.controllers.leader import run_controllers
from situate.server.placing.bind_transaction import PODS
from situate.server.requests import SYSTEM, Target
from situate.server.resources import BY_KIND
from situate.server.scheduling import lease_store
from situate.store.contract import Store
from situate.store.errors import UnavailableError
from situate.store.memory import MemoryStore
from situate.store.transactions import Committed, Guard, Outcome, Write

DEPLOYMENTS = BY_KIND["apps/v1", "Deployment"]
QUICK = replace(lease_store.RULES, lease_s=1, renew_deadline_s=1, retry_s=0.2)
WITHIN_S = 10.0


class FaultyStore:
    """`down`: it refuses to answer. `held`: commits of leases and new pods wait, and happen later even if their caller
    has left by then."""

    def __init__(self, shared: MemoryStore) -> None:
        self._shared = shared
        self.down = False
        self.passing = asyncio.Event()
        self.passing.set()
        self.late: list[asyncio.Task[Outcome]] = []
        self.late_pods: list[asyncio.Task[Outcome]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shared, name)

    async def commit(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        if self.down:
            raise UnavailableError("nobody there")
        asked = list(writes)
        if self.passing.is_set() or not any(kind in write.key for write in asked for kind in ("/pods/", "/leases/")):
            return await self._shared.commit(guards, asked)
        task = asyncio.create_task(self._later(guards, asked))
        self.late.append(task)
        if any("/pods/" in write.key for write in asked):
            self.late_pods.append(task)
        return await asyncio.shield(task)

    async def _later(self, guards: Iterable[Guard], writes: Iterable[Write]) -> Outcome:
        await self.passing.wait()
        return await self._shared.commit(guards, writes)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_store, "RULES", QUICK)


def deployment(replicas: int) -> dict[str, object]:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "registry.test/web"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }


def pods(world: World) -> list[str]:
    return [one.name for one in world.registry.cache.all(PODS)]


async def until(check: Callable[[], object]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not check():
            await asyncio.sleep(0.01)


async def scale(world: World, replicas: int) -> None:
    patch = {"spec": {"replicas": replicas}}
    await world.registry.patch(Target(DEPLOYMENTS, "default", "web"), "merge", patch, SYSTEM)


def play(story: Callable[[MemoryStore], Awaitable[None]]) -> None:
    async def played() -> None:
        async with asyncio.timeout(30):
            await story(MemoryStore())

    asyncio.run(played())


def controllers(world: World, name: str) -> asyncio.Task[None]:
    return asyncio.create_task(run_controllers(world.registry, name, KUBERNETES))


async def end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        assert not task.done(), "it runs until it is cancelled"
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_controllers_live_through_an_outage_that_is_longer_than_their_lease() -> None:
    async def story(shared: MemoryStore) -> None:
        store = FaultyStore(shared)
        async with opened(cast(Store, store)) as world:
            running = controllers(world, "one")
            await world.create(deployment(3))
            await until(lambda: len(pods(world)) == 3)
            store.down = True
            await asyncio.sleep(2.5 * QUICK.lease_s)
            assert not running.done()
            store.down = False
            await scale(world, 5)
            await until(lambda: len(pods(world)) == 5)
            await end(running)

    play(story)


def test_what_a_leader_had_sent_when_it_lost_its_lease_makes_no_pod_twice() -> None:
    async def story(shared: MemoryStore) -> None:
        stalled = FaultyStore(shared)
        async with opened(cast(Store, stalled)) as one, opened_again(shared) as other:
            for _ in range(1_000):
                other.transactions.new_uid()  # each counts from 1, and no two objects may have the same
            first = controllers(one, "one")
            await other.create(deployment(0))
            await until(lambda: other.registry.cache.count(BY_KIND["apps/v1", "ReplicaSet"]) == 1)
            await asyncio.sleep(0.3)
            second = controllers(other, "other")
            stalled.passing.clear()
            await scale(other, 20)
            await until(lambda: len(pods(other)) == 20)  # by the second, when the first has not renewed its lease
            assert stalled.late_pods, "the first has decided to make them, too, and begun with these"
            stalled.passing.set()
            await asyncio.gather(*stalled.late)
            assert not any(isinstance(task.result(), Committed) for task in stalled.late_pods)
            assert len(pods(other)) == 20
            await end(first, second)

    play(story)
