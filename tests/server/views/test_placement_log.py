"""The log of placements, followed from a revision: everything after it, once, in order; or a clear no."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from server.placing.world import World
from situate.server.errors import StatusError
from situate.server.requests import ListOptions, Target, WatchOptions
from situate.server.views.placement_events import PLACEMENT_EVENTS
from situate.server.views.views import Views
from situate.store.entries import Revision
from situate.store.transactions import Put

ALL = Target(PLACEMENT_EVENTS)
Line = tuple[int, str, str]


async def told(views: Views, since: str, target: Target = ALL) -> list[Line]:
    """Up to now."""
    following = await views.watch(target, WatchOptions(resource_version=since, bookmarks=True))
    found: list[Line] = []
    async for event in following:
        if event.initial_end:
            break
        assert event.stored is not None
        obj = event.stored.object(PLACEMENT_EVENTS)
        found.append((event.revision, obj["event"], obj["pod"]["name"]))
    await following.aclose()
    return found


async def life(world: World) -> None:
    """A pod that runs and goes, one that ends, and one that is bound."""
    await world.node()
    for name in ("a", "b", "c"):
        await world.pod(name)
        await world.binder.bind("default", name, "n1")
    await world.report("a", "Running")
    await world.report("b", "Failed", reason="Crashed", message="it did")
    await world.delete_pod("a")


Story = Callable[[Callable[[World, Views], Awaitable[None]]], None]


def test_everything_that_happened_is_told_once_and_in_order(story: Story) -> None:
    async def work(world: World, views: Views) -> None:
        await life(world)
        lines = await told(views, "0")
        assert [line[1:] for line in lines] == [
            ("bound", "a"),
            ("bound", "b"),
            ("bound", "c"),
            ("running", "a"),
            ("failed", "b"),
            ("gone", "a"),
        ]
        revisions = [line[0] for line in lines]
        assert revisions == sorted(set(revisions))

    story(work)


def test_a_decision_that_cannot_be_read_hides_no_other(story: Story) -> None:
    async def work(world: World, views: Views) -> None:
        await life(world)
        folder = "/objects/situate.dev/placementdecisions/default"
        for value in (b"not json", b"{}"):
            await world.store.commit([], [Put(f"{folder}/odd", value), Put(f"{folder}/c", value)])
        await world.report("b", "Failed", reason="Again")
        await world.pod("d", nodeName="n1")
        lines = await told(views, "0")
        assert [line[1:] for line in lines][-2:] == [("gone", "a"), ("bound", "d")]

    story(work)


def test_from_any_revision_on_it_goes_on_as_if_it_had_never_stopped(story: Story) -> None:
    async def work(world: World, views: Views) -> None:
        await life(world)
        lines = await told(views, "0")
        for at in range(len(lines)):
            assert await told(views, str(lines[at][0])) == lines[at + 1 :]

    story(work)


def test_what_happens_while_it_is_followed_is_told_as_it_happens(story: Story) -> None:
    async def work(world: World, views: Views) -> None:
        await world.node()
        following = await views.watch(ALL, WatchOptions(bookmarks=True))
        assert (await anext(following)).initial_end
        await world.pod("a")
        await world.binder.bind("default", "a", "n1")
        event = await anext(following)
        assert event.stored is not None
        assert event.stored.object(PLACEMENT_EVENTS)["event"] == "bound"
        await world.report("a", "Running")
        await world.report("a", "Succeeded")
        found = [await anext(following), await anext(following)]
        assert [one.stored.object(PLACEMENT_EVENTS)["event"] for one in found if one.stored] == ["running", "succeeded"]
        await following.aclose()

    story(work)


def test_the_reason_of_a_failure_is_told_as_of_then(story: Story) -> None:
    async def work(world: World, views: Views) -> None:
        await life(world)
        listing = await views.list(ALL, ListOptions())
        (failed,) = (one.object(PLACEMENT_EVENTS) for one in listing.items if b'"event":"failed"' in one.value)
        assert (failed["reason"], failed["message"], failed["node"]) == ("Crashed", "it did", "n1")

    story(work)


def test_only_a_namespaces_own_is_told_if_that_is_asked_for(story: Story) -> None:
    async def work(world: World, views: Views) -> None:
        await life(world)
        assert len(await told(views, "0", Target(PLACEMENT_EVENTS, "default"))) == 6
        assert await told(views, "0", Target(PLACEMENT_EVENTS, "kube-system")) == []

    story(work)


def test_what_is_compacted_away_is_not_skipped_over_but_said(story: Story) -> None:
    async def work(world: World, views: Views) -> None:
        await life(world)
        lines = await told(views, "0")
        await world.store.compact(Revision(lines[3][0]))
        with pytest.raises(StatusError, match="the history of placements starts at") as caught:
            await views.watch(ALL, WatchOptions(resource_version=str(lines[0][0])))
        assert caught.value.code == 410
        assert await told(views, "0") == lines[4:]
        assert await told(views, str(lines[3][0])) == lines[4:]

    story(work)


def test_a_revision_that_is_not_there_yet_is_a_mistake(story: Story) -> None:
    async def work(world: World, views: Views) -> None:
        with pytest.raises(StatusError, match="Too large resource version"):
            await views.watch(ALL, WatchOptions(resource_version="1000000"))
        with pytest.raises(StatusError, match="support no label"):
            await views.watch(ALL, WatchOptions(labels="a=b"))

    story(work)


def test_it_ends_at_its_time(story: Story) -> None:
    async def work(world: World, views: Views) -> None:
        following = await views.watch(ALL, WatchOptions(timeout_s=1))
        async with asyncio.timeout(10):
            assert [event async for event in following] == []
        await following.aclose()

    story(work)
