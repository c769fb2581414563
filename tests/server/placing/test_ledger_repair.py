"""A pod on a node that nobody can read: it keeps its room while it is there, and gives it back when it is deleted."""

from server.placing.conftest import Tell
from server.placing.test_binding import refusal
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


async def spoil_snapshot(world: World, node: str) -> None:
    held = world.registry.cache.get(NODE_SNAPSHOTS, "", node)
    assert held is not None
    await world.store.commit([], [Put(held.key, held.value.replace(b'"status":', b'"no status":'))])
    await world.registry.cache.wait_until_fresh()


def test_nothing_is_bound_to_a_node_whose_snapshot_cannot_be_read(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node()
        await world.pod()
        await spoil_snapshot(world, "n1")
        no = await refusal(world.binder.bind("default", "p", "n1"))
        assert (no.code, no.reason) == (500, "InternalError")
        assert no.message.startswith("the snapshot of node n1 cannot be read")

    tell(story)


def test_a_snapshot_that_cannot_be_read_does_not_keep_a_pod_of_another_node(tell: Tell) -> None:
    async def story(world: World) -> None:
        await world.node("n0")
        await world.node("n1")
        await world.pod("a", nodeName="n1")
        await world.pod("b", nodeName="n1")
        await spoil_snapshot(world, "n0")
        await spoil(world, "a")
        await delete(world, "a")
        assert (world.on(), cpu(world)) == (["b"], 1_000)

    tell(story)


def test_a_pod_that_went_unnoticed_goes_with_the_next(tell: Tell) -> None:
    """It was deleted while another could not be read, so the ledger still has it."""

    async def story(world: World) -> None:
        await world.node()
        for name in ("a", "b", "c"):
            await world.pod(name, nodeName="n1")
        await spoil(world, "a", "b")
        await delete(world, "a")
        await world.pod("a")  # another of its name, on no node
        await delete(world, "b")
        assert (world.on(), cpu(world)) == (["c"], 1_000)

    tell(story)
