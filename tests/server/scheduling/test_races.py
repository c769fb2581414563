"""Several schedulers on one registry, and more to place than there is room for."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from server.placing.witness import witnessed
from server.placing.world import WITHIN_S, World, opened, opened_again
from server.scheduling.stories import scheduling, tell, until
from situate.core.config.defaults import default_configuration
from situate.server.placing.audit import audit
from situate.server.placing.bind_transaction import PODS
from situate.server.scheduling.scheduler import SchedulerSettings
from situate.store.sqlite.store import SqliteStore

NODES, PODS_A_NODE, SCHEDULERS = 200, 10, 3
DEMAND = 2 * NODES * PODS_A_NODE
IMPATIENT = SchedulerSettings(replace(default_configuration(), pod_max_backoff_seconds=1), elects=False)


def test_three_schedulers_with_twice_the_demand_fill_every_node_and_overfill_none() -> None:
    async def story(world: World) -> None:
        room = {"pods": "100", "memory": "64Gi"}
        await asyncio.gather(*[world.node(f"n{at:03}", cpu=str(PODS_A_NODE), allocatable=room) for at in range(NODES)])
        for begin in range(0, DEMAND, 500):
            await asyncio.gather(*[world.pod(f"p{at:04}") for at in range(begin, begin + 500)])

        async with AsyncExitStack() as stack:
            for _ in range(SCHEDULERS):
                await stack.enter_async_context(scheduling(world, IMPATIENT))
            while sum(len(world.registry.cache.on_node(f"n{at:03}")) for at in range(NODES)) < NODES * PODS_A_NODE:
                await asyncio.sleep(0.05)
        assert world.registry.cache.count(PODS) == DEMAND
        witness = await witnessed(world.store)
        assert witness.problems == []
        assert len(witness.bound) == NODES * PODS_A_NODE, "capacity is used to the last"
        assert witness.revisions > DEMAND

    tell(story)


def test_two_servers_with_a_scheduler_each_on_one_store_overfill_nothing() -> None:
    async def story(world: World) -> None:
        other = World(world.store)
        await other.registry.start()
        await asyncio.gather(*[world.node(f"n{at}", cpu="4") for at in range(10)])
        await asyncio.gather(*[world.pod(f"p{at:02}") for at in range(80)])
        await other.registry.cache.wait_until_fresh()
        async with scheduling(world), scheduling(other):
            await until(lambda: sum(len(world.on(f"n{at}")) for at in range(10)) == 40)
        await other.registry.aclose()
        witness = await witnessed(world.store)
        assert witness.problems == []
        assert len(witness.bound) == 40

    tell(story)


def test_three_schedulers_on_sqlite_fill_every_node_and_overfill_none_and_the_file_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "store.db"
        store = await SqliteStore.open(path)
        async with asyncio.timeout(WITHIN_S), opened(store) as world:
            await asyncio.gather(*[world.node(f"n{at}", cpu="5") for at in range(20)])
            await asyncio.gather(*[world.pod(f"p{at:03}") for at in range(200)])
            async with scheduling(world, IMPATIENT), scheduling(world, IMPATIENT), scheduling(world, IMPATIENT):
                await until(lambda: sum(len(world.on(f"n{at}")) for at in range(20)) == 100)
            witness = await witnessed(store)
            assert witness.problems == []
            assert len(witness.bound) == 100
        await store.aclose()
        again = await SqliteStore.open(path)
        async with opened_again(again) as world:
            assert audit(world.registry.cache) == []
            assert sum(len(world.on(f"n{at}")) for at in range(20)) == 100
        await again.aclose()

    asyncio.run(story())
