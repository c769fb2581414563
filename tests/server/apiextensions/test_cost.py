"""What many definitions and many objects cost: nothing is decoded that need not be, and others have their turn."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from server.apiextensions.world import World, definition, of_spec, run, thing
from situate.server.apiextensions import definition as compiling
from situate.server.apiextensions import served
from situate.server.apiextensions.definition import compiled_versions
from situate.server.apiextensions.served import DEFINITIONS
from situate.server.apiextensions.stored_form import CustomStoredForm
from situate.server.registry import codec, stored_object
from situate.server.registry.stored_object import item_chunks
from situate.server.requests import SYSTEM, ListOptions, Target, WatchOptions

TEXT = {"type": "string"}


def counting(monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> list[Any]:
    """The calls of a function from here on, by their first argument."""
    calls: list[Any] = []
    original = getattr(where, name)

    def counted(*args: Any) -> Any:
        calls.append(args[0])
        return original(*args)

    monkeypatch.setattr(where, name, counted)
    return calls


async def items(world: World, kind: str = "things") -> list[Any]:
    resource = world.registry.custom.at_path("example.com", "v1", kind)
    assert resource is not None
    found = await world.registry.list(Target(resource, "default"), ListOptions())
    return list(json.loads(b"[" + b"".join(item_chunks(resource, found.items)) + b"]"))


def test_items_of_a_list_are_copied_and_only_older_ones_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_object, "ITEMS_PER_CHUNK", 3)

    async def story(world: World) -> None:
        resource = await world.define(definition(of_spec(a=TEXT)))
        for number in range(8):
            await world.create(resource, thing(f"o{number}", spec={"a": f"{number} of 100 %d"}))
        decoded = counting(monkeypatch, CustomStoredForm, "decode")
        found = await items(world)
        assert not decoded
        assert [one["spec"]["a"] for one in found] == [f"{number} of 100 %d" for number in range(8)]
        assert all((one["apiVersion"], one["kind"]) == ("example.com/v1", "Thing") for one in found)
        listed = [one["metadata"]["resourceVersion"] for one in found]
        held = [one.revision for one in world.registry.cache.all(resource)]
        assert listed == [str(one) for one in held]

        def add_default(obj: Any, _stored: Any) -> Any:
            obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = of_spec(a=TEXT, b={**TEXT, "default": "new"})
            return obj

        await world.registry.modify(Target(DEFINITIONS, "", "things.example.com"), add_default, SYSTEM)
        resource = await world.established(definition(of_spec(a=TEXT)))
        await world.create(resource, thing("o9", spec={"a": "9"}))
        found = await items(world)
        assert len(decoded) == 8
        assert [one["spec"]["b"] for one in found] == ["new"] * 9
        assert [one["metadata"]["name"] for one in found] == [*(f"o{number}" for number in range(8)), "o9"]

    run(story)


def test_the_names_of_many_definitions_are_read_once_and_not_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        kinds = [f"Kind{number}" for number in range(30)]
        for kind in kinds:
            await world.define(definition(of_spec(a=TEXT), kind=kind))
        decoded = counting(monkeypatch, codec, "decode")
        for kind in kinds:  # as at start-up
            await world.controller._handle(f"{kind.lower()}s.example.com")
        assert 0 < len(decoded) <= 5 * len(kinds)

    run(story)


def test_a_definition_without_a_spec_leaves_the_names_of_others_alone() -> None:
    async def story(world: World) -> None:
        await world.define(definition(of_spec(a=TEXT), kind="Broken"))

        def broken(obj: Any, _stored: Any) -> Any:
            del obj["spec"]
            return obj

        await world.registry.modify(Target(DEFINITIONS, "", "brokens.example.com"), broken, SYSTEM)
        await world.define(definition(of_spec(a=TEXT)))
        assert [one.kind for one in world.registry.custom.resources] == ["Thing"]

    run(story)


class Compiling:
    """The compilations of schemas from here on: whether each was beside the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.beside: list[bool] = []
        original = compiling._compiled

        def compiled(*args: Any) -> Any:
            self.beside.append(threading.current_thread() is not threading.main_thread())
            return original(*args)

        monkeypatch.setattr(compiling, "_compiled", compiled)


async def change(world: World, make: Any) -> None:
    await world.registry.modify(Target(DEFINITIONS, "", "things.example.com"), lambda obj, _: make(obj) or obj, SYSTEM)


def add_field(obj: Any) -> None:
    obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = of_spec(a=TEXT, b=TEXT)
    obj["metadata"]["generation"] = 2


def test_a_definition_is_compiled_again_only_if_its_versions_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        await world.define(definition(of_spec(a=TEXT)))
        compilations = Compiling(monkeypatch)
        before = world.registry.custom.version
        await change(world, lambda obj: obj["metadata"].update(labels={"a": "b"}))
        await change(world, lambda obj: obj["spec"]["names"].update(shortNames=["th"]))
        await change(world, lambda obj: obj["status"]["acceptedNames"].update(shortNames=["th"]))
        assert [one.short_names for one in world.registry.custom.resources] == [("th",)]
        assert world.registry.custom.version != before
        assert compilations.beside == []
        await change(world, add_field)
        assert len(world.registry.custom.resources) == 1
        assert compilations.beside == [False]

    run(story)


def test_a_large_definition_is_compiled_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "LARGE_BYTES", 100)

    async def story(world: World) -> None:
        custom, compilations = world.registry.custom, Compiling(monkeypatch)
        custom.waits_for_prepare = True
        resource = await world.define(definition(of_spec(a=TEXT)))
        assert compilations.beside == [True]
        await change(world, add_field)
        version = custom.version
        # Until it is compiled, the kind is served as it was.
        await world.create(resource, thing(spec={"a": "x", "b": "y"}))
        assert (await items(world))[0]["spec"] == {"a": "x"}
        watch = await world.registry.watch(Target(resource), WatchOptions(resource_version="0"))
        await world.established(definition(of_spec(a=TEXT)))
        assert compilations.beside == [True, True]
        assert watch.ended
        assert custom.version != version
        await world.create(custom.resources[0], thing("b", spec={"a": "x", "b": "y"}))
        assert (await items(world))[1]["spec"] == {"a": "x", "b": "y"}
        await watch.aclose()

    run(story)


def test_a_large_definition_that_changes_while_it_is_compiled_is_compiled_beside_the_event_loop_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served, "LARGE_BYTES", 100)
    begun, go = threading.Event(), threading.Event()
    compiled = compiled_versions

    def slow(*args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            assert go.wait(30)
        return compiled(*args)

    async def story(world: World) -> None:
        custom, compilations = world.registry.custom, Compiling(monkeypatch)
        custom.waits_for_prepare = True
        await world.define(definition(of_spec(a=TEXT)))
        await change(world, add_field)
        monkeypatch.setattr(served, "compiled_versions", slow)
        stored = world.registry.cache.get(DEFINITIONS, "", "things.example.com")
        assert stored is not None
        preparing = asyncio.create_task(custom.prepare(stored.object(DEFINITIONS)))
        assert await asyncio.to_thread(begun.wait, 30)

        def add_another(obj: Any) -> None:
            obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = of_spec(a=TEXT, c=TEXT)

        await change(world, add_another)
        go.set()
        assert await preparing
        assert len(custom.resources) == 1
        assert compilations.beside == [True, True]
        await world.controller._handle("things.example.com")
        await world.create(custom.resources[0], thing(spec={"a": "x", "b": "y", "c": "z"}))
        assert (await items(world))[0]["spec"] == {"a": "x", "c": "z"}
        assert compilations.beside == [True, True, True]

    run(story)


def test_a_large_definition_that_cannot_be_understood_is_not_served_and_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served, "LARGE_BYTES", 100)

    async def story(world: World) -> None:
        world.registry.custom.waits_for_prepare = True
        await world.define(definition(of_spec(a=TEXT), kind="Other"))
        await world.define(definition(of_spec(a=TEXT)))

        def broken(obj: Any) -> None:
            obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = of_spec(a={**TEXT, "pattern": "("})

        await change(world, broken)
        assert len(world.registry.custom.resources) == 2  # as it was
        await world.controller._handle("things.example.com")
        assert [one.kind for one in world.registry.custom.resources] == ["Other"]

    run(story)
