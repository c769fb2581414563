"""Controllers see objects of custom kinds: they go with their owners and with their namespace."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from server.apiextensions.world import NAMESPACE, World, definition, of_spec, run, thing
from situate.server.controllers import custom_kinds
from situate.server.controllers.registry_controllers import RegistryControllers
from situate.server.errors import StatusError
from situate.server.requests import SYSTEM, Target
from situate.server.resources import BY_KIND

CONFIG_MAP = BY_KIND["v1", "ConfigMap"]
TEXT = {"type": "string"}
WITHIN_S = 60.0


async def eventually(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not check():
            await asyncio.sleep(0.01)


def with_controllers(told: Any) -> None:
    async def story(world: World) -> None:
        task = asyncio.create_task(RegistryControllers(world.registry, profile=None).run())
        try:
            await told(world)
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run(story)


def test_what_a_custom_object_owns_goes_with_it() -> None:
    async def told(world: World) -> None:
        resource = await world.define(definition(of_spec(a=TEXT)))
        owner = (await world.create(resource, thing())).object(resource)
        ref = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "a", "uid": owner["metadata"]["uid"]}
        owned = thing("b")
        owned["metadata"]["ownerReferences"] = [ref]
        await world.create(resource, owned)
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "ownerReferences": [ref]}}
        await world.registry.create(Target(CONFIG_MAP, "default"), config, SYSTEM)
        await world.registry.delete(Target(resource, "default", "a"), SYSTEM)
        cache = world.registry.cache
        await eventually(lambda: not cache.count(resource) and not cache.get(CONFIG_MAP, "default", "c"))

    with_controllers(told)


def test_controllers_outlast_a_store_that_does_not_answer_when_they_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_kinds, "AGAIN_S", 0.01)

    async def story(world: World) -> None:
        cache, failures = world.registry.cache, [StatusError(504, "Timeout", "no answer") for _ in range(3)]
        wait = cache.wait_until_fresh

        async def flaky() -> None:
            if failures:
                raise failures.pop()
            await wait()

        async with asyncio.TaskGroup() as group:
            runner = RegistryControllers(world.registry, profile=None).runner
            with monkeypatch.context() as patch:
                patch.setattr(cache, "wait_until_fresh", flaky)
                await custom_kinds.CustomFollowers(world.registry, runner, lambda *_: asyncio.sleep(0)).start(group, [])
        assert not failures

    run(story)


def test_custom_objects_go_with_their_namespace() -> None:
    async def told(world: World) -> None:
        resource = await world.define(definition(of_spec(a=TEXT)))
        await world.registry.create(Target(NAMESPACE), {"metadata": {"name": "n"}, **HEAD}, SYSTEM)
        await world.create(resource, thing(), namespace="n")
        await world.create(resource, thing())
        await world.registry.delete(Target(NAMESPACE, "", "n"), SYSTEM)
        cache = world.registry.cache
        await eventually(lambda: cache.get(NAMESPACE, "", "n") is None)
        assert [one.namespace for one in cache.all(resource)] == ["default"]

    with_controllers(told)


HEAD = {"apiVersion": "v1", "kind": "Namespace"}
