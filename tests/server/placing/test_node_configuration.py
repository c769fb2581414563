"""Every node's snapshot says how its agent is to be, as the server that runs now wants it."""

from typing import Any

import pytest

from server.placing.world import World, tell
from situate.core.reconcile.nodes.fencing import FAST
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import BindTransactions
from situate.server.placing.node_configuration import configure
from situate.server.placing.snapshots import NODE_SNAPSHOTS
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Target
from situate.store.transactions import Put


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


@pytest.mark.parametrize("code", [404, 503])
def test_a_node_that_goes_meanwhile_is_skipped_and_any_other_refusal_is_told(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def on(world: World) -> None:
        await world.node("n1")
        await world.node("n2")
        modify = world.registry.modify

        async def refused(target: Target, *arguments: Any, **named: Any) -> StoredObject:
            if target.name == "n1":
                raise StatusError(code, "", "refused")
            return await modify(target, *arguments, **named)

        monkeypatch.setattr(world.registry, "modify", refused)
        fast = BindTransactions(world.wall_ns, lambda: "uid", FAST)
        if code == 404:
            assert await configure(world.registry, fast) == 2
            assert configuration(world, "n2")["profile"] == "fast"
        else:
            with pytest.raises(StatusError, match="refused"):
                await configure(world.registry, fast)

    tell(on)


def test_a_snapshot_that_cannot_be_read_keeps_no_other_node_from_being_told() -> None:
    async def on(world: World) -> None:
        await world.node("n1")
        await world.node("n2")
        held = world.registry.cache.get(NODE_SNAPSHOTS, "", "n1")
        assert held is not None
        spoilt = held.value.replace(b'"pods":', b'"no pods":').replace(b'"status":', b'"no status":')
        await world.store.commit([], [Put(held.key, spoilt)])
        await world.registry.cache.wait_until_fresh()
        fast = BindTransactions(world.wall_ns, lambda: "uid", FAST)
        assert await configure(world.registry, fast) == 1
        assert configuration(world, "n2")["profile"] == "fast"

    tell(on)
