"""Objects of several versions, converted by a webhook: reads, lists, watches, writes, and what a bad webhook costs.
Texts are compared with kube-apiserver's in tests/kubernetes."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from server.apiextensions.converting import LIVE, TEXT, Converting, of, run
from server.apiextensions.world import GROUP, NAMESPACE, NOW_NS, refusal
from situate.server.apiextensions import conversion_webhook
from situate.server.apiextensions.definition import as_stored
from situate.server.apiextensions.served import DEFINITIONS
from situate.server.controllers.registry_controllers import RegistryControllers
from situate.server.registry import converted
from situate.server.requests import SYSTEM, Object, Target


def test_an_object_is_converted_when_another_version_is_asked_for() -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        assert (await at.get("v1"))["spec"] == {"host": "x", "common": "c"}
        assert at.webhook.asked == []
        shown = await at.get("v2")
        assert (shown["apiVersion"], shown["spec"]) == (f"{GROUP}/v2", {"name": "x", "common": "c"})
        (asked,) = at.webhook.asked
        assert asked["desiredAPIVersion"] == f"{GROUP}/v2"
        (sent,) = asked["objects"]
        assert (sent["apiVersion"], sent["spec"]) == (f"{GROUP}/v1", {"host": "x", "common": "c"})
        assert "resourceVersion" not in sent["metadata"]
        assert "~" not in sent

    run(story)


def test_what_is_written_in_another_version_is_stored_in_the_storage_version() -> None:
    async def story(at: Converting) -> None:
        made = await at.here.create(at.v2, of("a", "v2"))
        assert made.object(at.v2)["spec"] == {"name": "x", "common": "c"}
        assert at.stored()["spec"] == {"host": "x", "common": "c"}
        assert at.stored()["~"].startswith("v1 ")
        patched = await at.here.patch(at.v2, "a", {"spec": {"name": "y"}})
        assert (patched["spec"], at.stored()["spec"]["host"]) == ({"name": "y", "common": "c"}, "y")
        patched["spec"]["name"] = "z"
        updated = await at.here.update(at.v2, patched)
        assert (updated.object(at.v2)["spec"]["name"], at.stored()["spec"]["host"]) == ("z", "z")
        applied = await at.here.patch(at.v2, "a", of("a", "v2", "z"), "apply")
        assert applied["metadata"]["managedFields"][0]["operation"] == "Apply"
        await at.here.registry.delete(Target(at.v2, "default", "a"), SYSTEM)
        assert at.here.registry.cache.count(at.v1) == 0

    run(story)


def test_a_list_is_one_review_of_what_is_stored_in_another_version() -> None:
    async def story(at: Converting) -> None:
        for name in "ab":
            await at.here.create(at.v1, of(name, "v1"))
        await at.store("v2")
        await at.here.create(at.v2, of("c", "v2"))
        at.webhook.asked.clear()
        assert [one["spec"]["name"] for one in await at.list("v2")] == ["x", "x", "x"]
        (asked,) = at.webhook.asked
        assert [one["metadata"]["name"] for one in asked["objects"]] == ["a", "b"]
        assert [one["spec"]["host"] for one in await at.list("v1", limit=500)] == ["x", "x", "x"]
        assert [one["metadata"]["name"] for one in at.webhook.asked[1]["objects"]] == ["c"]

    run(story)


def test_a_long_list_takes_several_reviews(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion_webhook, "REVIEW_OBJECTS", 2)

    async def story(at: Converting) -> None:
        for name in "abcde":
            await at.here.create(at.v1, of(name, "v1"))
        assert [one["metadata"]["name"] for one in await at.list("v2")] == list("abcde")
        assert [len(one["objects"]) for one in at.webhook.asked] == [2, 2, 1]

    run(story)


def test_a_list_too_long_to_be_converted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converted, "CONVERTED_BYTES", 100)

    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        assert (await refusal(at.list("v2")))[0] == 413
        assert len(await at.list("v1")) == 1

    run(story)


def test_an_update_that_changes_nothing_migrates_the_stored_version() -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        await at.store("v2")
        assert at.stored()["~"].startswith("v1 ")
        await at.here.update(at.v1, await at.get("v1"))
        assert at.stored()["~"].startswith("v2 ")
        assert at.stored()["spec"] == {"name": "x", "common": "c"}
        revision = (await at.get("v2"))["metadata"]["resourceVersion"]
        await at.here.update(at.v1, await at.get("v1"))
        assert (await at.get("v2"))["metadata"]["resourceVersion"] == revision

    run(story)


def test_a_dead_webhook_costs_the_requests_that_need_it() -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        at.webhook.fails = "it is dead"
        text = f"conversion webhook for {GROUP}/v1, Kind=Thing failed: it is dead"
        for call in (at.get("v2"), at.list("v2"), at.here.patch(at.v2, "a", {"spec": {"name": "y"}})):
            assert await refusal(call) == (500, [text])
        assert await refusal(at.here.registry.delete(Target(at.v2, "default", "a"), SYSTEM)) == (500, [text])
        created = await refusal(at.here.create(at.v2, of("b", "v2")))
        assert created == (500, [text.replace("/v1,", "/v2,")])
        assert (await at.get("v1"))["spec"]["host"] == "x"
        await at.here.patch(at.v1, "a", {"spec": {"host": "y"}})
        await at.here.registry.delete(Target(at.v1, "default", "a"), SYSTEM)
        assert await at.list("v2") == []

    run(story)


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda one: one.update(apiVersion=f"{GROUP}/v9"), "object at index 0: invalid groupVersion"),
        (lambda one: one.update(kind="Other"), "object at index 0: invalid kind (expected Thing, received Other)"),
        (lambda one: one.pop("metadata"), "object: must have the same name: a != "),
        (lambda one: one["metadata"].update(name="b"), "object: must have the same name: a != b"),
        (lambda one: one["metadata"].update(uid="b"), "object: must have the same UID"),
        (lambda one: one["metadata"].update(labels={"a": 1}), "metadata: metadata.labels[a] must be a string"),
    ],
)
def test_a_converted_object_is_checked(change: Callable[[Object], Any], expected: str) -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        at.webhook.change = change
        code, (text,) = await refusal(at.get("v2"))
        assert code == 500
        assert text.startswith(f"conversion webhook for {GROUP}/v1, Kind=Thing returned invalid {expected}")

    run(story)


@pytest.mark.parametrize(
    "made, expected",
    [
        ([], "conversion webhook for {of} returned 0 objects, expected 1"),
        (["x"], "json: cannot unmarshal string into Go value of type map[string]interface {{}}"),
        ([{}], "Object 'Kind' is missing in '{{}}'"),
        (None, "conversion webhook for {of} returned 0 objects, expected 1"),
    ],
)
def test_what_is_no_object_is_refused(made: list[Any] | None, expected: str) -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        at.webhook.made = made
        text = expected.format(of=f"{GROUP}/v1, Kind=Thing")
        assert await refusal(at.get("v2")) == (500, [text])

    run(story)


def test_a_webhook_may_change_labels_and_annotations_only_and_is_pruned() -> None:
    def change(obj: Object) -> None:
        obj["metadata"] |= {"labels": {"a": "b"}, "finalizers": ["x/y"], "generation": 7}
        obj["spec"]["unknown"] = "x"

    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        at.webhook.change = change
        shown = await at.get("v2")
        assert (shown["metadata"]["labels"], shown["metadata"]["generation"]) == ({"a": "b"}, 1)
        assert "finalizers" not in shown["metadata"]
        assert "unknown" not in shown["spec"]

    run(story)


def test_labels_that_a_webhook_sets_are_stored_and_selected() -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v2, of("a", "v2"))
        at.webhook.change = lambda one: one["metadata"].update(labels={"by": "webhook"})
        await at.here.patch(at.v2, "a", {"metadata": {"labels": {"by": "client"}}})
        assert at.stored()["metadata"]["labels"] == {"by": "webhook"}
        assert len(await at.list("v1", labels="by=webhook")) == 1
        assert await at.list("v1", labels="by=client") == []

    run(story)


def test_a_long_answer_is_read_beside_the_event_loop() -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        at.webhook.change = lambda one: one["spec"].update(common="c" * 200_000)
        assert len((await at.get("v2"))["spec"]["common"]) == 200_000

    run(story)


# -- watches -----------------------------------------------------------------------------------------------------------


def test_watches_convert_each_event_once_and_a_failure_ends_only_those_that_need_it() -> None:
    async def story(at: Converting) -> None:
        opened = [await at.here.registry.watch(Target(one, "default"), LIVE) for one in (at.v1, at.v2, at.v2)]
        plain, first, second = opened
        await at.here.create(at.v1, of("a", "v1"))
        assert (await anext(plain)).line(at.v1).startswith(b'{"type":"ADDED"')
        events = await asyncio.gather(anext(first), anext(second))
        for event in events:
            assert json.loads(event.line(at.v2))["object"]["spec"] == {"name": "x", "common": "c"}
        assert len(at.webhook.asked) == 1
        at.webhook.fails = "it is dead"
        await at.here.patch(at.v1, "a", {"spec": {"host": "y"}})
        for watch in (first, second):
            event = await anext(watch)
            assert (event.type, (event.status or {})["code"]) == ("ERROR", 500)
            with pytest.raises(StopAsyncIteration):
                await anext(watch)
        assert (await anext(plain)).type == "MODIFIED"
        for watch in opened:
            await watch.aclose()
        assert len(at.here.registry.cache.of(at.v1).broadcaster) == 0

    run(story)


def test_a_slow_webhook_holds_up_its_own_watch_only() -> None:
    async def story(at: Converting) -> None:
        plain = await at.here.registry.watch(Target(at.v1, "default"), LIVE)
        waits = await at.here.registry.watch(Target(at.v2, "default"), LIVE)
        other = await at.here.registry.watch(Target(at.v2, "default"), LIVE)
        at.webhook.gate = asyncio.Event()
        await at.here.create(at.v1, of("a", "v1"))
        waiting, following = asyncio.ensure_future(anext(waits)), asyncio.ensure_future(anext(other))
        assert (await anext(plain)).type == "ADDED"
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert not following.done()
        waiting.cancel()  # its client has left; the other watch asks for itself
        await asyncio.sleep(0)
        at.webhook.gate.set()
        assert (await asyncio.wait_for(following, 5)).type == "ADDED"
        for watch in (plain, waits, other):
            await watch.aclose()

    run(story)


def test_fields_are_selected_in_the_version_that_is_asked_for() -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1", "yes"))
        await at.here.create(at.v1, of("b", "v1", "no"))
        assert [one["metadata"]["name"] for one in await at.list("v2", fields="spec.name=yes", limit=1)] == ["a"]
        assert [one["metadata"]["name"] for one in await at.list("v1", fields="spec.host!=yes")] == ["b"]
        options = replace(LIVE, fields="spec.name=yes")
        async with aclosing(await at.here.registry.watch(Target(at.v2, "default"), options)) as watch:
            await at.here.patch(at.v1, "b", {"spec": {"host": "yes"}})
            await at.here.patch(at.v1, "b", {"spec": {"common": "d"}})
            await at.here.patch(at.v1, "b", {"spec": {"host": "no"}})
            await at.here.patch(at.v1, "b", {"spec": {"common": "e"}})
            await at.here.registry.delete(Target(at.v1, "default", "a"), SYSTEM)
            found = [await anext(watch) for _ in range(4)]
        assert [(one.type, one.stored.name) for one in found if one.stored is not None] == [
            ("ADDED", "b"),
            ("MODIFIED", "b"),
            ("DELETED", "b"),
            ("DELETED", "a"),
        ]
        assert json.loads(found[2].line(at.v2))["object"]["spec"] == {"name": "yes", "common": "d"}

    run(story)


def test_watches_end_when_the_definition_changes() -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        watch = await at.here.registry.watch(Target(at.v1, "default"), LIVE)
        running = asyncio.create_task(at.here.controller.run())
        await at.here.patch(at.v1, "a", {"spec": {"host": "y"}})
        assert (await anext(watch)).type == "MODIFIED"
        await at.store("v2")
        async with asyncio.timeout(20):
            with pytest.raises(StopAsyncIteration):
                await anext(watch)
        again = await at.here.registry.watch(Target(at.v1, "default"), LIVE)
        await at.here.create(at.v2, of("b", "v2", "z"))
        shown = json.loads((await anext(again)).line(at.v1))["object"]
        assert (shown["apiVersion"], shown["spec"]["host"]) == (f"{GROUP}/v1", "z")
        await again.aclose()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(story)


# -- the server's own controllers --------------------------------------------------------------------------------------


def test_a_definition_and_its_objects_are_deleted_although_the_webhook_is_dead() -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        await at.store("v2")
        at.webhook.fails = "it is dead"
        await at.here.registry.delete(Target(DEFINITIONS, "", f"things.{GROUP}"), SYSTEM)
        assert await at.here.controller._handle(f"things.{GROUP}") is False
        assert at.here.registry.cache.get(DEFINITIONS, "", f"things.{GROUP}") is None
        assert not [one for one in at.webhook.asked if one["objects"][0]["apiVersion"] != f"{GROUP}/v1"]

    run(story)


def test_controllers_change_metadata_without_the_webhook() -> None:
    async def story(at: Converting) -> None:
        held = of("a", "v1")
        held["metadata"]["finalizers"] = ["x/y"]
        await at.here.create(at.v1, held)
        await at.store("v2")
        at.webhook.fails = "it is dead"
        raw = Target(as_stored(at.v2), "default", "a")
        patched = await at.here.registry.patch(raw, "merge", {"metadata": {"labels": {"a": "b"}}}, SYSTEM)
        assert patched.stored.object(raw.resource)["apiVersion"] == f"{GROUP}/v1"
        assert (at.stored()["~"][:3], at.stored()["spec"]) == ("v1 ", {"host": "x", "common": "c"})
        at.webhook.fails = ""
        assert (await at.get("v2"))["spec"] == {"name": "x", "common": "c"}
        at.webhook.fails = "it is dead"
        await at.here.registry.delete(raw, SYSTEM)
        await at.here.registry.patch(raw, "merge", {"metadata": {"finalizers": None}}, SYSTEM)
        assert at.here.registry.cache.count(at.v1) == 0

    run(story)


def test_the_garbage_collector_removes_dependents_although_the_webhook_is_dead() -> None:
    async def story(at: Converting) -> None:
        registry = at.here.registry
        owner = await at.here.create(at.v1, of("owner", "v1"))
        owned = of("owned", "v1")
        owned["metadata"]["ownerReferences"] = [
            {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "name": "owner", "uid": owner.uid}
        ]
        await at.here.create(at.v1, owned)
        await at.store("v2")
        at.webhook.fails = "it is dead"
        running = asyncio.create_task(RegistryControllers(registry, lambda: NOW_NS, profile=None).run())
        await registry.delete(Target(as_stored(at.v2), "default", "owner"), SYSTEM)
        async with asyncio.timeout(20):
            while registry.cache.count(at.v1):
                await asyncio.sleep(0.02)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(story)


def test_a_namespace_is_deleted_although_the_webhook_is_dead() -> None:
    async def story(at: Converting) -> None:
        registry = at.here.registry
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}}
        await at.here.create(NAMESPACE, space, namespace="")
        await at.here.create(at.v1, of("a", "v1"), namespace="extra")
        await at.store("v2")
        at.webhook.fails = "it is dead"
        running = asyncio.create_task(RegistryControllers(registry, lambda: NOW_NS, profile=None).run())
        await registry.delete(Target(NAMESPACE, "", "extra"), SYSTEM)
        async with asyncio.timeout(20):
            while registry.cache.get(NAMESPACE, "", "extra") is not None:
                await asyncio.sleep(0.02)
        assert registry.cache.count(at.v1) == 0
        assert at.webhook.asked == []
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(story)


def test_what_defaults_add_to_a_converted_object_has_the_limits_of_any_object() -> None:
    many = {"type": "array", "items": {"type": "integer"}, "default": [1] * 1_000}
    items = {"type": "array", "items": {"type": "object", "properties": {"b": many}}}
    spec = {"type": "object", "properties": {"host": TEXT, "name": TEXT, "common": TEXT, "items": items}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}

    async def story(at: Converting) -> None:
        at.webhook.change = lambda made: made["spec"].update(items=[{}] * 5_000)
        code, texts = await refusal(at.here.create(at.v2, of("a", "v2")))
        assert (code, texts) == (413, ["the defaults of its schema add too many values: limit is 32768"])
        at.webhook.change = lambda _: None
        await at.here.create(at.v2, of("a", "v2"))
        assert (await at.get("v2"))["spec"] == {"name": "x", "common": "c"}

    run(story, schema=schema)
