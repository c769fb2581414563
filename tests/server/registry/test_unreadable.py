"""Unreadable values in the store: the rest is served, each is named, and DELETE removes it."""

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from server.registry.stories import ANN, CONFIG_MAP, DEPLOYMENT, NODE, POD, World, config_map, no, ready, tell
from situate.server.errors import StatusError
from situate.server.registry.cache import Cache
from situate.server.registry.codec import encode
from situate.server.registry.conversion import from_stored
from situate.server.registry.keys import key_of, parse_key
from situate.server.registry.registry import collecting
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.unreadable import read_value
from situate.server.requests import DeleteOptions, Target
from situate.server.resources import RESOURCES, Resource
from situate.store.memory import MemoryStore
from situate.store.open import open_store
from situate.store.transactions import Put
from situate.wire.schema.decoder import normalised
from situate.wire.schema.table import Type, flat_fields, is_recursive, message, message_of

FOLDER = "/objects/core/configmaps/default/"
META = '"name":"bad","namespace":"default","uid":"u"'
NO_OBJECTS = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"not json", id="no JSON"),
    pytest.param(b"\xff\xfe\x00", id="no text"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b"{}", id="no metadata"),
    pytest.param(b'{"metadata":{}}', id="empty metadata"),
    pytest.param(b'{"metadata":{"name":"bad","namespace":"default"}}', id="no uid"),
    pytest.param(b'{"metadata":{"name":"other","namespace":"default","uid":"u"}}', id="another name than its key"),
    pytest.param(b'{"metadata":{"name":"bad","namespace":"kube-system","uid":"u"}}', id="another namespace"),
    pytest.param(b'{"metadata":{' + META.encode() + b',"labels":{"a":1}}}', id="a label that is a number"),
    pytest.param(b'{"metadata":{' + META.encode() + b'},"data":{"a":[]}}', id="wrong types inside"),
    pytest.param(b'{"kind":"Pod","apiVersion":"v1","metadata":{' + META.encode() + b"}}", id="another kind"),
    pytest.param(b'{"kind":"ConfigMap","apiVersion":"v9","metadata":{' + META.encode() + b"}}", id="a version to come"),
    pytest.param(b'{"metadata":{' + META.encode() + b'},"data":' + b"[" * 100_000, id="deeply nested"),
]


async def put(world: World, key: str, value: bytes) -> None:
    await world.store.commit([], [Put(key, value)])
    await world.cache.wait_until_fresh()


async def served_without_it(world: World) -> None:
    with collecting() as warnings:
        assert await world.names(CONFIG_MAP) == ["good"]
    assert warnings == ["1 configmaps cannot be read from the store and are not listed: default/bad"]
    code, reason, message = await no(world.get(CONFIG_MAP, "bad"))
    assert (code, reason) == (500, "StorageReadError")
    assert message.startswith('configmaps "bad" cannot be read from the store: ')
    assert message.endswith(f"(key {FOLDER}bad); DELETE removes it")


@pytest.mark.parametrize("value", NO_OBJECTS)
def test_an_unreadable_value_is_named_and_the_rest_is_served(value: bytes, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()

    async def story(world: World) -> None:
        await served_without_it(world)
        assert [one.key for one in world.cache.unreadable()] == [f"{FOLDER}bad"]
        with collecting() as warnings:
            assert await world.names(CONFIG_MAP, "kube-system") == []
        assert warnings == []
        for write in (
            world.update({**config_map("bad"), "data": {"a": "b"}}),
            world.registry.patch(Target(CONFIG_MAP, "default", "bad"), "merge", {"data": {}}, ANN),
        ):
            assert (await no(write))[:2] == (500, "StorageReadError")
        assert (await no(world.create(config_map("bad"))))[:2] == (409, "AlreadyExists")
        done = await world.registry.delete(Target(CONFIG_MAP, "default", "bad"), ANN)
        assert done.gone
        assert (await no(world.get(CONFIG_MAP, "bad")))[0] == 404
        await world.create(config_map("bad"))
        assert await world.names(CONFIG_MAP) == ["bad", "good"]
        assert list(world.cache.unreadable()) == []

    good = b'{"metadata":{"name":"good","namespace":"default","uid":"g"}}'
    asyncio.run(_commit(store, [Put(f"{FOLDER}bad", value), Put(f"{FOLDER}good", good)]))
    with caplog.at_level(logging.ERROR):
        tell(story, store=store)
    logged = [record for record in caplog.records if record.name.endswith("cache")]
    assert [record.__dict__["keys"]["key"] for record in logged] == [f"{FOLDER}bad"]


async def _commit(store: MemoryStore, writes: Sequence[Put]) -> None:
    await store.commit([], writes)


def test_a_value_that_could_be_read_before_stays_with_its_watches_until_it_goes() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("good"))
        made = await world.create(config_map("bad"))
        watch = await world.watch(CONFIG_MAP, resource_version=made["metadata"]["resourceVersion"])
        await put(world, f"{FOLDER}bad", b"not json")
        await served_without_it(world)
        assert ready(watch) == []
        await put(world, f"{FOLDER}bad", b"[]")
        await world.registry.delete(Target(CONFIG_MAP, "default", "bad"), ANN)
        assert ready(watch) == [("DELETED", "bad")]

    tell(story)


def test_a_value_that_is_repaired_is_a_change_to_its_watches() -> None:
    async def story(world: World) -> None:
        made = await world.create(config_map("a"))
        watch = await world.watch(CONFIG_MAP, resource_version=made["metadata"]["resourceVersion"])
        held = world.cache.get(CONFIG_MAP, "default", "a")
        assert held is not None
        await put(world, f"{FOLDER}a", b"not json")
        await put(world, f"{FOLDER}new", b"not json")
        await put(world, f"{FOLDER}a", held.value)
        await put(world, f"{FOLDER}new", b'{"metadata":{"name":"new","namespace":"default","uid":"n"}}')
        assert ready(watch) == [("MODIFIED", "a"), ("ADDED", "new")]
        assert await world.names(CONFIG_MAP) == ["a", "new"]

    tell(story)


def test_an_object_that_is_written_by_hand_in_another_order_is_served_as_any_other() -> None:
    by_hand = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"a": "b"},
        "metadata": {"namespace": "default", "name": "bad", "uid": "u", "resourceVersion": "77"},
        "newField": {"of": "a release to come"},
    }
    store = MemoryStore()

    async def story(world: World) -> None:
        found = await world.registry.get(Target(CONFIG_MAP, "default", "bad"))
        shown = msgspec.json.decode(found.to_json(CONFIG_MAP))
        assert shown["data"] == {"a": "b"}
        assert shown["metadata"]["resourceVersion"] == str(found.revision)

    asyncio.run(_commit(store, [Put(f"{FOLDER}bad", msgspec.json.encode(by_hand))]))
    tell(story, store=store)


@pytest.mark.parametrize(
    "key",
    [
        "/objects/",
        "/objects/x",
        "/objects/core/configmaps",
        "/objects/core/configmaps/",
        "/objects/core/configmaps/default/",
        "/objects/core/configmaps/a/b/c/d",
        "/objects//configmaps/default/good",
        "/objects/core/nodes/default/n",
        "/objects/of.another/kind/x",
        "/objects/core/configmaps/without-namespace",
    ],
)
def test_a_key_that_names_no_object_hides_nothing(key: str) -> None:
    store = MemoryStore()
    good = b'{"metadata":{"name":"good","namespace":"default","uid":"g"}}'

    async def story(world: World) -> None:
        assert await world.names(CONFIG_MAP) == ["good"]
        await world.store.commit([], [Put(key, b"{}")])
        await world.create(config_map("more"))
        assert await world.names(CONFIG_MAP, "") == ["good", "more"]
        assert await world.names(NODE, "") == []

    asyncio.run(_commit(store, [Put(key, good), Put(f"{FOLDER}good", good)]))
    tell(story, store=store)


def test_older_lists_leave_out_what_could_not_be_read_then() -> None:
    async def story(world: World) -> None:
        await put(world, f"{FOLDER}bad", b"not json")
        made = await world.create(config_map("a"))
        await world.create(config_map("b"))
        version = made["metadata"]["resourceVersion"]
        exact = {"resource_version": version, "resource_version_match": "Exact"}
        assert await world.names(CONFIG_MAP, **exact) == ["a"]

    tell(story)


def test_preconditions_and_dry_runs_hold_for_what_cannot_be_read() -> None:
    async def story(world: World) -> None:
        await put(world, f"{FOLDER}bad", b"not json")
        target = Target(CONFIG_MAP, "default", "bad")
        assert (await no(world.registry.delete(target, ANN, DeleteOptions(uid="another"))))[0] == 409
        assert (await no(world.registry.delete(target, ANN, DeleteOptions(resource_version="1"))))[0] == 409
        await world.registry.delete(target, ANN, DeleteOptions(dry_run=True))
        assert len(list(world.cache.unreadable())) == 1

    tell(story)


def test_values_that_another_server_writes_to_a_shared_store_are_checked() -> None:
    async def story() -> None:
        store = MemoryStore()
        cache = Cache(store, shared=True)
        await cache.start()
        value = b'{"metadata":{"name":"d","namespace":"default","uid":"u"},"spec":{"replicas":"three"}}'
        await store.commit([], [Put("/objects/apps/deployments/default/d", value)])
        await cache.wait_until_fresh()
        assert cache.get(DEPLOYMENT, "default", "d") is None
        assert isinstance(cache.missing(DEPLOYMENT, "default", "d"), StatusError)
        [found] = cache.unreadable()
        assert "replicas" in found.why or "int" in found.why
        await cache.aclose()

    asyncio.run(story())


SAMPLES: dict[str, Any] = {
    "string": "s",
    "bool": True,
    "int32": 7,
    "int64": 7,
    "double": 1.5,
    "bytes": "YQ==",
    "Quantity": "1",
    "Amount": "1",
    "IntOrString": "10%",
    "Time": "2026-01-01T00:00:00Z",
    "MicroTime": "2026-01-01T00:00:00.000000Z",
    "Raw": {"a": [1, None, {"b": 1.5}]},
    "Free": {"a": [1, None, {"b": 1.5}]},
}


def sample(kind: Type, depth: int = 12) -> Any:
    """A value of this type with every field set, as deep as that goes."""
    if kind.form == "list" and kind.of:
        return [sample(kind.of, depth)]
    if kind.form == "map" and kind.of:
        return {"key": sample(kind.of, depth)}
    if kind.form == "either":
        return sample(kind.options[0], depth)
    if kind.form == "message" and is_recursive(kind.name):
        return {"type": "object", "properties": {"a": {"type": "string", "enum": ["b"]}}}
    if kind.form == "message":
        return {one.name: sample(one.type, depth - 1) for one in flat_fields(message(kind.name))} if depth else {}
    return SAMPLES[kind.name]


STORED = [one for one in RESOURCES if one.stored and from_stored(one) is None]


@pytest.mark.parametrize("resource", STORED, ids=lambda one: f"{one.api_version} {one.kind}")
@pytest.mark.parametrize("full", [True, False], ids=["every field", "hardly any field"])
def test_what_the_registry_stores_of_any_kind_is_read_as_it_is(resource: Resource, full: bool) -> None:
    found = message_of(resource.api_version, resource.kind)
    assert found is not None
    fields = {one.name: sample(one.type) for one in flat_fields(found)} if full else {}
    namespace = "default" if resource.namespaced else ""
    meta = {**fields.get("metadata", {}), "name": "a", "namespace": namespace, "uid": "u"}
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    value = encode(normalised(resource.api_version, resource.kind, {**fields, **head, "metadata": meta}))
    key = key_of(resource, namespace, "a")
    read = read_value(parse_key(key), key, value, 7)
    assert isinstance(read, StoredObject), read.why
    assert read.value is value, "it need not be decoded in full"


def test_a_file_with_odd_values_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def write() -> None:
        store = await open_store(str(path))
        await store.commit([], [Put(f"{FOLDER}good", b'{"metadata":{"name":"good","namespace":"default","uid":"g"}}')])
        await store.commit([], [Put(f"{FOLDER}bad", b"{}"), Put("/objects/core/pods/default/p", b"\x00" * 100)])
        await store.aclose()

    async def read() -> None:
        store = await open_store(str(path))
        cache = Cache(store)
        await cache.start()
        assert [one.name for one in cache.all(CONFIG_MAP)] == ["good"]
        assert list(cache.all(POD)) == []
        assert len(list(cache.unreadable())) == 2
        await cache.aclose()
        await store.aclose()

    asyncio.run(write())
    assert sqlite3.connect(path).execute("select count(*) from sqlite_master").fetchone()[0]
    asyncio.run(read())


def test_an_event_without_times_is_in_the_stored_form() -> None:
    """As schedulers write them. Encoding each again made a start take three times as long."""
    key = "/objects/core/events/default/e"
    meta = b'{"metadata":{"name":"e","namespace":"default","uid":"u"},"involvedObject":{},'
    value = meta + b'"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":"2026-01-01T00:00:00.000000Z"}'
    found = read_value(parse_key(key), key, value, 1)
    assert isinstance(found, StoredObject)
    assert found.value is value
