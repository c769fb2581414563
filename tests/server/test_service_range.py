"""The ServiceCIDR `kubernetes`."""

from server.registry.stories import ANN, World, tell
from situate.server.requests import Target
from situate.server.service_range import RANGE, ensure_service_range

NOW_NS = 1_767_355_200_000_000_000


def test_a_new_server_says_where_services_get_their_addresses() -> None:
    async def story(world: World) -> None:
        await ensure_service_range(world.registry, NOW_NS)
        found = await world.get(RANGE, "kubernetes")
        assert found["spec"] == {"cidrs": ["10.96.0.0/16"]}
        (condition,) = found["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Ready", "True")
        assert condition["lastTransitionTime"] == "2026-01-02T12:00:00Z"

    tell(story)


def test_at_the_next_start_nothing_is_written() -> None:
    async def story(world: World) -> None:
        await ensure_service_range(world.registry, NOW_NS)
        before = world.registry.cache.revision
        await ensure_service_range(world.registry, NOW_NS + 1_000_000_000)
        assert world.registry.cache.revision == before

    tell(story)


def test_one_that_was_deleted_is_there_after_the_next_start() -> None:
    async def story(world: World) -> None:
        await ensure_service_range(world.registry, NOW_NS)
        await world.registry.delete(Target(RANGE, "", "kubernetes"), ANN)
        await ensure_service_range(world.registry, NOW_NS)
        assert (await world.get(RANGE, "kubernetes"))["status"]["conditions"]

    tell(story)


def test_one_of_somebody_else_is_not_called_ready() -> None:
    async def story(world: World) -> None:
        spec = {"cidrs": ["10.50.0.0/16"]}
        metadata = {"name": "kubernetes"}
        await world.create({"apiVersion": RANGE.api_version, "kind": RANGE.kind, "metadata": metadata, "spec": spec})
        await ensure_service_range(world.registry, NOW_NS)
        found = await world.get(RANGE, "kubernetes")
        assert found["spec"] == spec
        assert not found["status"]

    tell(story)
