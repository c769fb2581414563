"""Watches: what is told, to whom, from when, and how it ends."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from server.registry.stories import (
    ANN,
    CONFIG_MAP,
    DEPLOYMENT,
    LEASE,
    NAMESPACE,
    NODE,
    POD,
    World,
    config_map,
    heard,
    no,
    pod,
    ready,
    tell,
)
from situate.server.registry import resource_cache
from situate.server.registry.converted_watch import ConvertedWatch
from situate.server.registry.selectors import Selection
from situate.server.registry.watch import open_watch
from situate.server.registry.watchers import ObjectWatch, WatchEvent
from situate.server.requests import DeleteOptions, Object, Target, WatchOptions
from situate.server.resources import BY_KIND

OLD_EVENT = BY_KIND["v1", "Event"]
NEW_EVENT = BY_KIND["events.k8s.io/v1", "Event"]
NOW = DeleteOptions(grace_s=0)


async def remove(world: World, name: str) -> None:
    await world.registry.delete(Target(CONFIG_MAP, "default", name), ANN)


def test_a_watch_tells_what_is_there_then_what_happens() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        watching = await world.watch(CONFIG_MAP)
        await world.create(config_map("b"))
        await world.update(config_map("a", data={"k": "2"}))
        await remove(world, "b")
        assert await heard(watching, 4) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
        await watching.aclose()
        assert [event async for event in watching] == []

    tell(story)


def test_a_watch_goes_on_after_a_revision() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        seen = str(await world.store.revision())
        await world.create(config_map("b"))
        await remove(world, "a")
        watching = await world.watch(CONFIG_MAP, resource_version=seen)
        await world.create(config_map("c"))
        assert await heard(watching, 3) == [("ADDED", "b"), ("DELETED", "a"), ("ADDED", "c")]

    tell(story)


def test_what_is_deleted_is_told_as_it_was_at_the_revision_of_its_end() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a", data={"k": "last"}))
        watching = await world.watch(CONFIG_MAP, resource_version=str(await world.store.revision()))
        await remove(world, "a")
        event = await anext(watching)
        assert event.stored is not None
        obj = event.stored.object(CONFIG_MAP)
        assert obj["data"] == {"k": "last"}
        assert obj["metadata"]["resourceVersion"] == str(await world.store.revision())

    tell(story)


def test_what_goes_out_of_sight_is_told_as_deleted_and_what_comes_in_as_added() -> None:
    async def story(world: World) -> None:
        watching = await world.watch(CONFIG_MAP, labels="x=1")
        await world.create(config_map("a", labels={"x": "1"}))
        await world.update(config_map("a", labels={"x": "1", "y": "1"}))
        await world.update(config_map("a", labels={"x": "2"}))
        await world.update(config_map("a", labels={"x": "3"}))
        await world.update(config_map("a", labels={"x": "1"}))
        await world.create(config_map("b"))
        events = list(watching.ready())
        assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
        gone = events[2].stored
        assert gone is not None
        assert gone.labels == {"x": "1", "y": "1"}
        assert gone.revision == events[2].revision

    tell(story)


def test_an_agent_hears_of_the_pods_of_its_node_alone() -> None:
    async def story(world: World) -> None:
        mine = await world.watch(POD, namespace="", fields="spec.nodeName=n1")
        unbound = await world.watch(POD, namespace="", fields="spec.nodeName=")
        await world.create(pod("a"))
        await world.create(pod("b", node="n2"))

        def put_on(node: str) -> Callable[[Object, object], Object]:
            def change(obj: Object, _: object) -> Object:
                return {**obj, "spec": {**obj["spec"], "nodeName": node}}

            return change

        def run(obj: Object, _: object) -> Object:
            return {**obj, "status": {"phase": "Running"}}

        await world.registry.modify(Target(POD, "default", "a"), put_on("n1"), ANN)
        await world.registry.modify(Target(POD, "default", "a", "status"), run, ANN)
        await world.registry.modify(Target(POD, "default", "a"), put_on("n2"), ANN)
        await world.registry.delete(Target(POD, "default", "a"), ANN, NOW)
        assert ready(mine) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        assert ready(unbound) == [("ADDED", "a"), ("DELETED", "a")]

    tell(story)


@pytest.mark.parametrize(
    "scope, told",
    [
        pytest.param({"namespace": ""}, ["a", "b", "a"], id="all namespaces"),
        pytest.param({"namespace": "default"}, ["a", "b"], id="one namespace"),
        pytest.param({"namespace": "other"}, ["a"], id="another"),
        pytest.param({"namespace": "default", "name": "b"}, ["b"], id="one name"),
        pytest.param({"namespace": "", "fields": "metadata.name=a"}, ["a", "a"], id="a name in all namespaces"),
        pytest.param({"namespace": "other", "fields": "metadata.namespace=default"}, [], id="nowhere"),
    ],
)
def test_a_watch_hears_what_it_asked_about(scope: dict[str, str], told: list[str]) -> None:
    async def story(world: World) -> None:
        watching = await world.watch(CONFIG_MAP, **scope)
        for each in (config_map("a"), config_map("b"), config_map("a", namespace="other")):
            await world.create(each)
        await world.create(pod("p"))
        assert [name for _, name in ready(watching)] == told
        replayed = await world.watch(CONFIG_MAP, **scope, resource_version="1")
        assert [name for _, name in ready(replayed)] == told

    tell(story)


def test_a_watch_of_one_object_without_a_namespace_hears_of_it_once() -> None:
    async def story(world: World) -> None:
        watching = await world.watch(NODE, namespace="", name="a")
        for name in ("a", "b"):
            await world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        assert ready(watching) == [("ADDED", "a")]

    tell(story)


def test_one_event_is_one_value_for_all_who_hear_it() -> None:
    async def story(world: World) -> None:
        watches = [await world.watch(CONFIG_MAP) for _ in range(3)]
        await world.create(config_map("a"))
        events = [await anext(watching) for watching in watches]
        assert events[0] is events[1] is events[2]
        line = events[0].line(CONFIG_MAP)
        assert line is events[1].line(CONFIG_MAP)
        assert msgspec.json.decode(line) == {"type": "ADDED", "object": await world.get(CONFIG_MAP, "a")}
        assert line.endswith(b"}\n")

    tell(story)


def test_initial_events_end_with_a_bookmark_that_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        asked: dict[str, Any] = {"initial_events": True, "resource_version_match": "NotOlderThan"}
        watching = await world.watch(CONFIG_MAP, **asked, bookmarks=True, resource_version="1")
        added, bookmark = watching.ready()
        assert added.type == "ADDED"
        assert msgspec.json.decode(bookmark.line(CONFIG_MAP)) == {
            "type": "BOOKMARK",
            "object": {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {
                    "resourceVersion": str(world.cache.revision),
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            },
        }
        assert ready(await world.watch(CONFIG_MAP, **asked)) == [("ADDED", "a")]
        none = await world.watch(
            CONFIG_MAP, initial_events=False, resource_version_match="NotOlderThan", bookmarks=True
        )
        assert ready(none) == []

    tell(story)


FORBIDDEN = 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '


@pytest.mark.parametrize(
    "options, refusal",
    [
        (
            {"initial_events": True},
            (422, FORBIDDEN + "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        ),
        (
            {"resource_version_match": "NotOlderThan"},
            (422, FORBIDDEN + "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
        ),
        ({"labels": "a in b"}, (400, "unable to parse requirement: found 'b' expected: '('")),
    ],
)
def test_options_that_contradict_are_refused(options: dict[str, Any], refusal: tuple[int, str]) -> None:
    async def story(world: World) -> None:
        code, _, message = await no(world.watch(CONFIG_MAP, **options))
        assert (code, message) == refusal

    tell(story)


def test_bookmarks_come_to_those_who_asked() -> None:
    async def story(world: World) -> None:
        asked = await world.watch(CONFIG_MAP, bookmarks=True)
        not_asked = await world.watch(CONFIG_MAP)
        await world.create(pod("somewhere-else"))
        event = await anext(asked)
        while event.revision < world.cache.revision:
            event = await anext(asked)
        assert (event.type, event.stored, event.initial_end) == ("BOOKMARK", None, False)
        assert ready(not_asked) == []

    tell(story, bookmarks_s=0.001)


def test_a_bookmark_has_the_kind_and_the_version_of_what_is_watched() -> None:
    """client-go drops a bookmark of another kind."""

    async def story(world: World) -> None:
        watched = (CONFIG_MAP, NAMESPACE, NODE, POD, DEPLOYMENT, LEASE, OLD_EVENT, NEW_EVENT)
        watches = [await world.watch(resource, bookmarks=True) for resource in watched]
        for resource, watching in zip(watched, watches, strict=True):
            told = msgspec.json.decode((await anext(watching)).line(resource))
            assert told["type"] == "BOOKMARK"
            assert (told["object"]["apiVersion"], told["object"]["kind"]) == (resource.api_version, resource.kind)

    tell(story, bookmarks_s=0.001)


@pytest.mark.parametrize("limit", ["WINDOW_EVENTS", "WINDOW_BYTES"])
def test_what_is_too_old_is_expired_and_nothing_is_told(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_cache, limit, 3 if limit == "WINDOW_EVENTS" else 1_500)

    async def story(world: World) -> None:
        for name in "abcdefgh":
            await world.create(config_map(name))
        revisions = [int(await world.store.revision())]
        for name in "abcdefgh":  # what is gone is kept for the window only
            await world.registry.delete(Target(CONFIG_MAP, "default", name), ANN)
            revisions.append(await world.store.revision())
        code, reason, message = await no(world.watch(CONFIG_MAP, resource_version=str(revisions[0])))
        assert (code, reason) == (410, "Expired")
        oldest = int(message.rpartition("(")[2].rstrip(")"))
        assert message == f"too old resource version: {revisions[0]} ({oldest})"
        assert (await no(world.watch(CONFIG_MAP, resource_version=str(oldest - 1))))[0] == 410
        kept = [name for _, name in ready(await world.watch(CONFIG_MAP, resource_version=str(oldest)))]
        assert kept == list("abcdefgh")[revisions.index(oldest) :]
        assert 0 < len(kept) < 8
        # Other resources have windows of their own.
        assert ready(await world.watch(POD, resource_version=str(revisions[0]))) == []

    tell(story)


def test_a_watch_that_nobody_reads_is_closed_and_misses_nothing_in_the_middle() -> None:
    async def story(world: World) -> None:
        target = Target(CONFIG_MAP, "default")
        slow = await open_watch(world.cache, target, WatchOptions(), backlog=2)
        quick = await world.watch(CONFIG_MAP)
        for name in "abcd":
            await world.create(config_map(name))
        assert [event.stored.name async for event in slow if event.stored] == ["a", "b"]
        assert len(ready(quick)) == 4

    tell(story)


def test_a_watch_that_nobody_reads_holds_so_many_bytes_and_no_more() -> None:
    async def story(world: World) -> None:
        target, limit = Target(CONFIG_MAP, "default"), 100_000
        slow = await open_watch(world.cache, target, WatchOptions(), backlog_bytes=limit)
        reader = await open_watch(world.cache, target, WatchOptions(), backlog_bytes=limit)
        seen = 0
        for number in range(10):
            await world.create({**config_map(f"m{number}"), "data": {"large": "x" * 30_000}})
            seen += len(ready(reader))
        assert (seen, reader.ended) == (10, False)
        assert slow.ended
        held = [event.size async for event in slow]
        assert limit < sum(held) < limit + 40_000
        assert len(world.cache.of(CONFIG_MAP).broadcaster) == 1
        await reader.aclose()

    tell(story)


def test_a_watch_ends_after_its_time() -> None:
    async def story(world: World) -> None:
        watching = await open_watch(world.cache, Target(CONFIG_MAP, "default"), WatchOptions())
        watching.end_after(0.001)
        await world.create(config_map("a"))
        assert [event.type async for event in watching] in ([], ["ADDED"])
        assert len(world.cache.of(CONFIG_MAP).broadcaster) == 0

    tell(story)


def test_a_closed_watch_is_forgotten() -> None:
    async def story(world: World) -> None:
        hub = world.cache.of(CONFIG_MAP).broadcaster
        watches = [await world.watch(CONFIG_MAP, name=name) for name in ("", "a", "b")]
        assert len(hub) == 3
        waiting = asyncio.create_task(anext(watches[0], None))
        await asyncio.sleep(0)
        for watching in watches:
            await watching.aclose()
        assert len(hub) == 0
        assert await waiting is None

    tell(story)


def test_when_the_server_stops_watches_end_with_an_error() -> None:
    async def story(world: World) -> None:
        watching = await world.watch(CONFIG_MAP)
        await world.registry.aclose()
        [event] = [event async for event in watching]
        assert event.type == "ERROR"
        assert event.status is not None
        assert event.status["code"] == 503

    tell(story)


def test_a_watch_that_joins_in_the_middle_of_a_burst_has_no_gap() -> None:
    async def story(world: World) -> None:
        async def writing() -> None:
            for number in range(50):
                await world.create(config_map(f"m-{number:02}"))

        task = asyncio.create_task(writing())
        watches: list[ObjectWatch | ConvertedWatch] = []
        while not task.done():
            watches.append(await world.watch(CONFIG_MAP))
            await asyncio.sleep(0)
        await task
        expected = [("ADDED", f"m-{number:02}") for number in range(50)]
        for watching in watches:
            assert sorted(ready(watching)) == expected

    tell(story)


def test_a_status_is_told_as_an_error() -> None:
    watching = ObjectWatch(CONFIG_MAP, Selection(), lambda _: None)
    watching.end(WatchEvent("ERROR", 5, status={"kind": "Status", "code": 410}))
    [event] = watching.ready()
    assert event.line(CONFIG_MAP) == b'{"type":"ERROR","object":{"kind":"Status","code":410}}\n'
