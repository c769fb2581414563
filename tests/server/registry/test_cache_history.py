"""A cache that begins anew knows what happened lately, so that watches of the one before go on."""

import pytest

from server.registry.stories import CONFIG_MAP, World, config_map, no, ready, tell
from situate.server.registry import cache as cache_module
from situate.server.registry.registry import Registry
from situate.server.requests import Target, WatchOptions
from situate.store.entries import Revision


async def begun_anew(world: World) -> Registry:
    registry = Registry(world.store, wall_ns=lambda: 0, new_uid=lambda: "new")
    await registry.start()
    return registry


def test_a_watch_goes_on_where_it_was_before_the_server_was_started_anew() -> None:
    async def story(world: World) -> None:
        first = await world.create(config_map("a"))
        since = first["metadata"]["resourceVersion"]
        await world.create(config_map("b"))
        await world.update(first | {"data": {"k": "changed"}})
        registry = await begun_anew(world)
        watching = await registry.watch(Target(CONFIG_MAP, "default"), WatchOptions(resource_version=since))
        heard = [await anext(watching), await anext(watching)]
        assert [(event.type, event.stored.name) for event in heard if event.stored] == [
            ("ADDED", "b"),
            ("MODIFIED", "a"),
        ]
        await watching.aclose()
        await registry.aclose()

    tell(story)


def test_what_is_further_back_than_is_recalled_is_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "HISTORY_REVISIONS", 2)

    async def story(world: World) -> None:
        made = [await world.create(config_map(name)) for name in "abcd"]
        registry = await begun_anew(world)
        target = Target(CONFIG_MAP, "default")
        oldest, recalled = (made[at]["metadata"]["resourceVersion"] for at in (0, 1))
        assert (await no(registry.watch(target, WatchOptions(resource_version=oldest))))[0] == 410
        watching = await registry.watch(target, WatchOptions(resource_version=recalled))
        assert ready(watching) == [("ADDED", "c"), ("ADDED", "d")]
        await watching.aclose()
        await registry.aclose()

    tell(story)


def test_what_was_compacted_is_not_recalled_and_the_rest_is() -> None:
    async def story(world: World) -> None:
        made = [await world.create(config_map(name)) for name in "abcd"]
        revisions = [one["metadata"]["resourceVersion"] for one in made]
        await world.store.compact(Revision(int(revisions[1])))
        registry = await begun_anew(world)
        target = Target(CONFIG_MAP, "default")
        assert (await no(registry.watch(target, WatchOptions(resource_version=revisions[0]))))[0] == 410
        watching = await registry.watch(target, WatchOptions(resource_version=revisions[1]))
        assert ready(watching) == [("ADDED", "c"), ("ADDED", "d")]
        await watching.aclose()
        await registry.aclose()

    tell(story)
