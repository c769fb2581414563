"""Every node's snapshot says how its agent is to be, as the server that runs now wants it."""

from server.placing.world import World, tell
from situate.core.reconcile.nodes.fencing import FAST
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.placing.node_configuration import configure
from situate.server.placing.snapshots import NODE_SNAPSHOTS


def configuration(world: World, node: str) -> dict[str, object]:
    held = world.registry.cache.get(NODE_SNAPSHOTS, "", node)
    assert held is not None
    found: dict[str, object] = held.object(NODE_SNAPSHOTS)["spec"]["configuration"]
    return found


def test_a_new_node_is_told_how_to_be() -> None:
    async def on(world: World) -> None:
        await world.node()
        said = {"profile": "kubernetes", "leaseDurationSeconds": 40, "renewIntervalSeconds": 10}
        assert configuration(world, "n1") == said
        await world.pod(nodeName="n1")
        assert configuration(world, "n1") == said

    tell(on)


def test_a_server_with_another_profile_tells_all_nodes_once() -> None:
    async def on(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        await world.node("n2")
        fast = BindTransactions(world.wall_ns, lambda: "uid", FAST)
        assert await configure(world.registry, fast) == 2
        assert await configure(world.registry, fast) == 0
        said = {"profile": "fast", "leaseDurationSeconds": 15, "renewIntervalSeconds": 5}
        assert configuration(world, "n1") == configuration(world, "n2") == said
        assert world.on("n1") == ["p"]
        await world.pod("q", nodeName="n1")
        assert world.on("n1") == ["p", "q"]

    tell(on)
