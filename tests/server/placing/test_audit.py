"""Whatever is done to pods and nodes, in whatever order and at once: every revision adds up."""

import asyncio
import random
from contextlib import suppress

import pytest

from server.placing.witness import witnessed
from server.placing.world import World, tell
from situate.server.errors import StatusError
from situate.server.placing.audit import audit
from situate.server.placing.bind_transaction import NODES, PODS
from situate.server.placing.decisions import PLACEMENT_DECISIONS
from situate.server.placing.snapshots import NODE_SNAPSHOTS, decoded, encoded
from situate.server.requests import SYSTEM, Target
from situate.store.transactions import Delete, Put

NAMES, NODE_NAMES = [f"p{at}" for at in range(12)], ["n1", "n2", "n3"]
PHASES = ("Running", "Succeeded", "Failed", "Pending")


async def something(world: World, dice: random.Random) -> None:
    name, node, cpu = dice.choice(NAMES), dice.choice(NODE_NAMES), dice.choice(("500m", "1", "2"))
    match dice.randrange(9):
        case 0:
            await world.pod(name, cpu=cpu)
        case 1:
            await world.pod(name, cpu=cpu, nodeName=node)
        case 2 | 3:
            await world.binder.bind("default", name, node)
        case 4:
            await world.report(name, dice.choice(PHASES))
        case 5:
            await world.delete_pod(name, grace_s=dice.choice((0, 0, 30)))
        case 6:
            await world.report_node(node, {"cpu": dice.choice(("1", "3", "6")), "memory": "8Gi", "pods": "9"})
        case 7:
            await world.evictor.evict("default", name, SYSTEM)
        case _:
            if dice.random() < 0.3:
                await world.registry.delete(Target(NODES, "", node), SYSTEM)
            else:
                await world.node(node, cpu="4")


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("seed", range(4))
def test_every_revision_adds_up(seed: int, at_once: int) -> None:
    async def story(world: World) -> None:
        dice = random.Random(seed)

        async def one() -> None:
            with suppress(StatusError):
                await something(world, dice)

        for node in NODE_NAMES:
            await world.node(node, cpu="4")
        for _ in range(240 // at_once):
            await asyncio.gather(*[one() for _ in range(at_once)])
        assert audit(world.registry.cache) == []
        witness = await witnessed(world.store)
        assert witness.problems == []
        assert witness.revisions > 50

    tell(story)


def test_a_ledger_that_does_not_add_up_is_found() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        held = world.registry.cache.get(NODE_SNAPSHOTS, "", "n1")
        assert held is not None
        identity, ledger = decoded(held.value)
        await world.store.commit([], [Put(held.key, encoded(identity, type(ledger)()))])
        await world.registry.cache.wait_until_fresh()
        assert audit(world.registry.cache) == [
            "node n1: its snapshot has 0 pods, and it has 1",
            "node n1: its snapshot says {}, and its pods ask for {'pods': 1, 'cpu': 1000, 'memory': 1073741824}",
        ]
        assert world.registry.cache.count(PODS) == 1

    tell(story)


def test_a_decision_that_is_not_about_its_pod_is_found() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        held = world.registry.cache.get(PLACEMENT_DECISIONS, "default", "p")
        assert held is not None
        await world.store.commit([], [Put(held.key, held.value.replace(b'"phase":"bound"', b'"phase":"running"'))])
        await world.registry.cache.wait_until_fresh()
        assert audit(world.registry.cache) == ["pod default/p: its decision says running, which it is not"]

    tell(story)


def test_a_pod_on_a_node_without_a_snapshot_is_found() -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        held = world.registry.cache.get(NODE_SNAPSHOTS, "", "n1")
        assert held is not None
        await world.store.commit([], [Delete(held.key)])
        await world.registry.cache.wait_until_fresh()
        pods, amounts = audit(world.registry.cache)
        assert pods == "node n1: its snapshot has 0 pods, and it has 1"
        assert amounts.startswith("node n1: its snapshot says {}")

    tell(story)
