"""Selecting objects of custom kinds whose labels and fields are known once they are decoded or converted: others have
their turn meanwhile, and pages stay pages."""

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from server.apiextensions.converting import LIVE, Converting, of
from server.apiextensions.converting import run as run_converting
from server.apiextensions.world import World, definition, of_spec, run, thing
from situate.server.apiextensions.stored_form import CustomStoredForm
from situate.server.registry import turns
from situate.server.requests import SYSTEM, ListOptions, Object, Target, WatchOptions
from situate.server.resources import Resource

TEXT = {"type": "string"}
MANY = 60


async def _with_turns(work: Awaitable[Any]) -> tuple[Any, int]:
    """The result, and how often others had their turn before there was one."""
    had = 0

    async def others() -> None:
        nonlocal had
        while True:
            await asyncio.sleep(0)
            had += 1

    beside = asyncio.create_task(others())
    await asyncio.sleep(0)
    had = 0
    try:
        return await work, had
    finally:
        beside.cancel()


async def _many(world: World, monkeypatch: pytest.MonkeyPatch) -> Resource:
    """Objects that take long to decode; their field `a` is "x" or "y"."""
    resource = await world.define(definition(of_spec(a=TEXT), selectableFields=[{"jsonPath": ".spec.a"}]))
    for number in range(MANY):
        await world.create(resource, thing(f"o{number:02}", spec={"a": "xy"[number % 2]}))
    decode, now = CustomStoredForm.decode, 0.0

    def slow(self: CustomStoredForm, value: bytes, revision: int) -> Any:
        nonlocal now
        now += turns.TURN_S / 2
        return decode(self, value, revision)

    monkeypatch.setattr(CustomStoredForm, "decode", slow)
    monkeypatch.setattr(turns, "monotonic", lambda: now)
    return resource


def test_others_have_their_turn_while_a_list_decodes_many_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        target = Target(await _many(world, monkeypatch), "default")
        found, had = await _with_turns(world.registry.list(target, ListOptions(fields="spec.a=y")))
        assert [one.name for one in found.items] == [f"o{number:02}" for number in range(1, MANY, 2)]
        assert had >= MANY // 5

    run(story)


def test_a_list_that_others_interrupt_is_of_one_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        resource = await _many(world, monkeypatch)
        target = Target(resource, "default")
        before = world.registry.cache.revision
        listing = asyncio.create_task(world.registry.list(target, ListOptions(fields="spec.a=y")))
        while world.registry.cache.revision == before and not listing.done():
            await asyncio.sleep(0)
            await world.registry.delete(Target(resource, "default", f"o{MANY - 1}"), SYSTEM)
        found = await listing
        assert world.registry.cache.revision > before == found.revision
        assert found.items[-1].name == f"o{MANY - 1}"

    run(story)


def test_pages_of_selected_objects_are_decoded_only_as_far_as_they_go(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        target = Target(await _many(world, monkeypatch), "default")
        names, token = [], ""
        while True:
            page = await world.registry.list(target, ListOptions(fields="spec.a=y", limit=7, continue_from=token))
            names.append([one.name for one in page.items])
            if not (token := page.continue_to):
                break
        assert [len(one) for one in names] == [7, 7, 7, 7, 2]
        assert [name for page in names for name in page] == [f"o{number:02}" for number in range(1, MANY, 2)]

    run(story)


@pytest.mark.parametrize(
    "resumes", [pytest.param(False, id="with all objects"), pytest.param(True, id="with the changes since a revision")]
)
def test_others_have_their_turn_while_a_watch_that_selects_by_a_field_begins(
    monkeypatch: pytest.MonkeyPatch, resumes: bool
) -> None:
    async def story(world: World) -> None:
        resource = await _many(world, monkeypatch)
        first = min(one.revision for one in world.registry.cache.all(resource))
        options = WatchOptions(fields="spec.a=y", resource_version=str(first - 1) if resumes else "0")
        watch, had = await _with_turns(world.registry.watch(Target(resource, "default"), options))
        assert had >= MANY // 5
        events = [event for event in watch.ready() if event.stored is not None]
        assert [event.type for event in events] == ["ADDED"] * (MANY // 2)
        assert [event.stored.name for event in events] == [f"o{number:02}" for number in range(1, MANY, 2)]
        await watch.aclose()

    run(story)


def test_a_change_while_a_watch_begins_is_one_of_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        resource = await _many(world, monkeypatch)
        options = WatchOptions(fields="spec.a=y", resource_version="0")
        opening = asyncio.create_task(world.registry.watch(Target(resource, "default"), options))
        await asyncio.sleep(0)
        await world.create(resource, thing("late", spec={"a": "y"}))
        watch = await opening
        events = [event.stored.name for event in watch.ready() if event.stored is not None]
        assert events == [*(f"o{number:02}" for number in range(1, MANY, 2)), "late"]
        await watch.aclose()

    run(story)


def test_a_client_that_leaves_while_its_watch_begins_leaves_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        resource = await _many(world, monkeypatch)
        options = WatchOptions(fields="spec.a=y", resource_version="0")
        opening = asyncio.create_task(world.registry.watch(Target(resource, "default"), options))
        while not len(world.registry.cache.of(resource).broadcaster):
            await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert len(world.registry.cache.of(resource).broadcaster) == 0

    run(story)


# -- converted by a webhook --------------------------------------------------------------------------------------------


def _move_label(obj: Object) -> None:
    """v2 calls the label `size` of v1 `scale`."""
    labels = obj["metadata"].get("labels", {})
    old, new = ("size", "scale") if obj["apiVersion"].endswith("v2") else ("scale", "size")
    obj["metadata"]["labels"] = {new if key == old else key: value for key, value in labels.items()}


def _labelled(name: str, size: str) -> Object:
    made = of(name, "v1")
    made["metadata"]["labels"] = {"size": size}
    return made


def test_labels_are_selected_in_the_version_that_is_asked_for() -> None:
    async def story(at: Converting) -> None:
        at.webhook.change = _move_label
        for name in "abcde":
            await at.here.create(at.v1, _labelled(name, "large" if name in "ace" else "small"))
        for labels, expected in (("scale=large", "ace"), ("scale!=large", "bd"), ("scale", "abcde"), ("size", "")):
            assert "".join(one["metadata"]["name"] for one in await at.list("v2", labels=labels)) == expected
        assert len(await at.list("v1", labels="size=large")) == 3
        assert await at.list("v1", labels="scale=large") == []

    run_converting(story)


def test_pages_of_selected_objects_that_a_webhook_converts() -> None:
    async def story(at: Converting) -> None:
        at.webhook.change = _move_label
        for number in range(9):
            await at.here.create(at.v1, _labelled(f"o{number}", "large" if number % 2 else "small"))
        target = Target(at.v2, "default")
        names, token = [], ""
        for _ in range(3):
            page = await at.here.registry.list(
                target, ListOptions(labels="scale=large", fields="spec.name=x", limit=3, continue_from=token)
            )
            names.append([one.name for one in page.items])
            if not (token := page.continue_to):
                break
            await at.here.create(at.v1, _labelled(f"later{len(names)}", "large"))  # is not in the pages of that list
        assert names == [["o1", "o3", "o5"], ["o7"]]

    run_converting(story)


def test_a_watch_of_labels_has_events_as_they_are_in_its_version() -> None:
    async def story(at: Converting) -> None:
        at.webhook.change = _move_label
        await at.here.create(at.v1, _labelled("a", "small"))
        options = replace(LIVE, labels="scale=large")
        async with aclosing(await at.here.registry.watch(Target(at.v2, "default"), options)) as watch:
            for size in ("large", "huge", "large"):
                await at.here.patch(at.v1, "a", {"metadata": {"labels": {"size": size}}})
            await at.here.create(at.v1, _labelled("b", "small"))
            await at.here.registry.delete(Target(at.v1, "default", "a"), SYSTEM)
            found = [await anext(watch) for _ in range(4)]
        assert [(one.type, one.stored.name) for one in found if one.stored is not None] == [
            ("ADDED", "a"),
            ("DELETED", "a"),
            ("ADDED", "a"),
            ("DELETED", "a"),
        ]

    run_converting(story)
