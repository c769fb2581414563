"""Events go after a while."""

from typing import Any

from server.registry.stories import CONFIG_MAP, World, config_map, ready, tell
from situate.server.registry.event_leases import SHARED_S
from situate.server.resources import BY_KIND
from situate.store.entries import NO_LEASE, LeaseId

EVENT = BY_KIND["v1", "Event"]


def event(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"namespace": "default"},
    }


async def lease_of(world: World, plural: str, name: str) -> LeaseId:
    [entry] = (await world.store.read([f"/objects/core/{plural}/default/{name}"])).entries
    assert entry is not None
    return entry.lease


def test_events_of_the_same_minutes_share_a_lease_and_go_with_it() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        await world.create(event("early"))
        world.later(SHARED_S - 1)
        await world.create(event("soon"))
        world.later(1)
        await world.create(event("late"))
        first = await lease_of(world, "events", "early")
        assert await lease_of(world, "events", "soon") == first
        assert NO_LEASE != await lease_of(world, "events", "late") != first
        assert await lease_of(world, "configmaps", "a") == NO_LEASE

        watching = await world.watch(EVENT, resource_version=str(world.cache.revision))
        await world.store.revoke(first)  # as the store does when its time is over
        assert await world.names(EVENT) == ["late"]
        assert await world.names(CONFIG_MAP) == ["a"]
        assert ready(watching) == [("DELETED", "early"), ("DELETED", "soon")]

    tell(story)


def test_an_event_that_is_written_again_lasts_longer() -> None:
    async def story(world: World) -> None:
        made = await world.create(event("a"))
        first = await lease_of(world, "events", "a")
        world.later(SHARED_S)
        made["series"] = {"count": 2, "lastObservedTime": "2026-01-02T12:05:00.000000Z"}
        await world.update(made)
        await world.store.revoke(first)
        assert await world.names(EVENT) == ["a"]

    tell(story)
