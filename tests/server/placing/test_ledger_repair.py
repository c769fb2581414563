"""A pod on a node that nobody can read: it keeps its room while it is there, and gives it back when it is deleted."""

from server.placing.conftest import Tell
from server.placing.world import World
from situate.server.placing.bind_transaction import NODES, PODS
from situate.server.placing.snapshots import NODE_SNAPSHOTS
from situate.server.requests import SYSTEM, Target
from situate.store.transactions import Put


async def spoil(world: World, *names: str) -> None:
    await world.store.commit([], [Put(f"/objects/core/pods/default/{name}", b"not json") for name in names])
    await world.registry.cache.wait_until_fresh()


async def delete(world: World, name: str) -> None:
    assert (await world.registry.delete(Target(PODS, "default", name), SYSTEM)).gone


def cpu(world: World) -> int:
    found = world.ledger()
    assert found is not None
    return found.allocated.get("cpu", 0)


def test_its_room_is_free_when_it_is_deleted(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        for name in ("a", "b", "c"):
            await world.pod(name, nodeName="n1")
        await spoil(world, "b")
        assert (world.on(), cpu(world)) == (["a", "b", "c"], 3_000)
        await delete(world, "b")
        assert (world.on(), cpu(world)) == (["a", "c"], 2_000)
        await world.delete_pod("a")
        assert (world.on(), cpu(world)) == (["c"], 1_000)

    tell(story)


def test_the_sum_stays_until_every_pod_of_it_can_be_read(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        for name in ("a", "b", "c"):
            await world.pod(name, nodeName="n1")
        await spoil(world, "a", "b")
        await delete(world, "a")
        assert cpu(world) == 3_000
        await delete(world, "b")
        assert (world.on(), cpu(world)) == (["c"], 1_000)

    tell(story)


def test_a_node_that_cannot_be_read_goes_with_its_snapshot_unless_it_has_pods(tell: Tell) -> None:
    async def story(world: World) -> None:
        for name, pods in (("n1", 1), ("n2", 0)):
            await world.node(name)
            if pods:
                await world.pod("p", nodeName=name)
            await world.store.commit([], [Put(f"/objects/core/nodes/{name}", b"{}")])
            await world.registry.cache.wait_until_fresh()
            await world.registry.delete(Target(NODES, "", name), SYSTEM)
        assert [held.name for held in world.registry.cache.all(NODE_SNAPSHOTS)] == ["n1"]

    tell(story)
