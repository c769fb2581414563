"""Defaults multiply: what they make of an object is bounded before it is made."""

import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from server.apiextensions.world import NOW_NS, World, definition, of_spec, refusal, run, thing
from situate.server.apiextensions.served import DEFINITIONS
from situate.server.http.negotiation import PLAIN, Form
from situate.server.http.rendering import Renderer
from situate.server.registry.stored_object import ListResult
from situate.server.requests import SYSTEM, Object, Target
from situate.server.resources import Resource
from situate.server.tables import printers
from situate.wire.structural.defaulting import MAX_BYTES, MAX_VALUES

TOO_MANY = f"the defaults of its schema add too many values: limit is {MAX_VALUES}"
TOO_MUCH = f"the defaults of its schema add too much: limit is {MAX_BYTES} bytes"
FAR_MORE = 64 << 20
"""More than an object within the limits needs in memory, and far less than one without them."""


def _list_of(**properties: Any) -> Object:
    return {"type": "array", "items": {"type": "object", "properties": properties}}


LONG = {"type": "string", "default": "x" * 100_000}
MANY = {"type": "array", "items": {"type": "integer"}, "default": [1] * 1_000}


def _nested(levels: int) -> Object:
    """Each of ten objects has ten of the next level, by defaults: 10^levels in all."""
    one: Object = {"type": "object"}
    for _ in range(levels):
        items = {"type": "array", "items": one, "default": [{}] * 10}
        one = {"type": "object", "properties": {"a": items}}
    found: Object = one["properties"]["a"]
    return found


async def _peak(call: Callable[[], Awaitable[Any]]) -> tuple[int, Any]:
    """The memory that a call takes at most, and its result."""
    tracemalloc.start()
    try:
        return_value = await call()
        return tracemalloc.get_traced_memory()[1], return_value
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "schema, spec, text",
    [
        pytest.param(_list_of(b=MANY), [{}] * 5_000, TOO_MANY, id="a list of objects with defaults"),
        pytest.param(_list_of(b=LONG), [{}] * 5_000, TOO_MUCH, id="long defaults"),
        pytest.param(_nested(6), None, TOO_MANY, id="defaults in defaults"),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": MANY}}},
            {str(number): {} for number in range(5_000)},
            TOO_MANY,
            id="a map of objects with defaults",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "default": [1] * 1_000}},
            [None] * 5_000,
            TOO_MANY,
            id="nulls that become defaults",
        ),
    ],
)
def test_an_object_that_defaults_make_too_large_is_refused_before_it_is_made(
    schema: Object, spec: Any, text: str
) -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(of_spec(a=schema)))
        obj = thing(spec={} if spec is None else {"a": spec})
        most, refused = await _peak(lambda: refusal(world.create(resource, obj)))
        assert refused == (413, [text])
        assert most < FAR_MORE
        assert world.registry.cache.count(resource) == 0

    run(story)


async def _redefine(world: World, schema: Object) -> Resource:
    stored = world.registry.cache.get(DEFINITIONS, "", "things.example.com")
    assert stored is not None
    newer = stored.object(DEFINITIONS)
    newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    await world.registry.update(Target(DEFINITIONS, "", "things.example.com"), newer, SYSTEM)
    return await world.established(newer)


def test_a_stored_object_that_a_new_schema_makes_too_large_can_be_read_mended_and_deleted() -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(of_spec(a=_list_of())))
        for name in ("large", "small"):
            await world.create(resource, thing(name, spec={"a": [{}] * (5_000 if name == "large" else 1)}))
        resource = await _redefine(world, of_spec(a=_list_of(b=MANY)))
        large, small = [
            (await world.registry.get(Target(resource, "default", name))).object(resource)
            for name in ("large", "small")
        ]
        assert large["spec"] == {"a": [{}] * 5_000}, "shown as it is stored"
        assert small["spec"] == {"a": [{"b": [1] * 1_000}]}
        patch = {"metadata": {"labels": {"a": "b"}}}
        assert await refusal(world.patch(resource, "large", patch)) == (413, [TOO_MANY])
        assert (await world.patch(resource, "large", {"spec": {"a": [{}]}}))["spec"] == small["spec"]
        await _redefine(world, of_spec(a=_list_of(b=LONG)))
        await world.registry.delete(Target(resource, "default", "large"), SYSTEM)
        assert world.registry.cache.count(resource) == 1

    run(story)


@pytest.mark.parametrize("form", [PLAIN, Form("Table"), Form("PartialObjectMetadataList")])
def test_a_list_holds_only_a_few_of_the_objects_that_defaults_make_large(form: Form) -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(of_spec(a=_list_of())))
        for number in range(80):
            await world.create(resource, thing(f"a{number:02}", spec={"a": [{}] * 14}))
        resource = await _redefine(world, of_spec(a=_list_of(b=LONG)))
        items = tuple(world.registry.cache.all(resource))

        async def sent() -> int:
            renderer = Renderer(resource, form, printers, lambda: NOW_NS, "Object")
            return sum(map(len, renderer.list_chunks(ListResult(1, items))))

        most, size = await _peak(sent)
        assert most < FAR_MORE / 4
        if form.shape != "PartialObjectMetadataList":
            assert size > 80 * 14 * 100_000

    run(story)
