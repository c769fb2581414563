"""A key of a map may be nearly as long as a body. What is said about the values inside does not repeat it for each."""

import json
import tracemalloc
from functools import partial
from typing import Any

import pytest

from server.apiextensions.world import World, definition, of_spec, refusal, run, thing
from situate.server.http.bodies import decode_resource
from situate.server.requests import SYSTEM, Object, Target, WriteOptions

KEY = "k" * 100_000
NUMBER = 1_000
MUCH = 40 << 20
"""More than any of these requests needs; with the key once for each value, they need several times as much."""


def _map_of(inner: Object) -> Object:
    return of_spec(m={"type": "object", "maxProperties": 10, "additionalProperties": inner})


def _list_of(items: Object) -> Object:
    return {"type": "array", "maxItems": 10_000, "items": items}


LARGE = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]}
FREE = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    "inner, items, code",
    [
        pytest.param(_list_of({"type": "object"}), [{"x": 1}] * NUMBER, 400, id="unknown fields"),
        pytest.param(_list_of({"type": "integer"}), ["a"] * NUMBER, 422, id="wrong types"),
        pytest.param(_list_of(FREE), [{"metadata": {"x": 1}}] * NUMBER, 400, id="unknown fields of metadata"),
        pytest.param(_list_of(LARGE), [1] * NUMBER, 422, id="broken rules"),
        pytest.param(
            _list_of({"type": "integer"}) | {"x-kubernetes-list-type": "set"},
            [*range(NUMBER)] * 2,
            422,
            id="duplicates",
        ),
    ],
)
def test_errors_do_not_repeat_a_long_name_for_each_value(inner: Object, items: list[Any], code: int) -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(_map_of(inner)))
        obj = thing(spec={"m": {KEY: items}})
        tracemalloc.start()
        try:
            answer, texts = await refusal(world.create(resource, obj, validation="Strict"))
            assert tracemalloc.get_traced_memory()[1] < MUCH
        finally:
            tracemalloc.stop()
        assert answer == code
        assert sum(map(len, texts)) < 2 << 20

    run(story)


def test_duplicate_fields_do_not_repeat_a_long_name() -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(_map_of(_list_of({"type": "object"}))))
        text = json.dumps(thing(spec={"m": {KEY: [{"n": 1}] * NUMBER}}))
        body = text.replace('{"n": 1}', '{"n": 1, "n": 1}').encode()
        options = WriteOptions(field_validation="Strict")
        tracemalloc.start()
        try:
            decode = partial(decode_resource, body, "application/json", resource, options)
            code, texts = await refusal(
                world.registry.create_body(Target(resource, "default"), body, decode, SYSTEM, options)
            )
            assert tracemalloc.get_traced_memory()[1] < MUCH
        finally:
            tracemalloc.stop()
        assert code == 400
        assert 'duplicate field "spec.m.kkk' in texts[0]

    run(story)


def test_conflicts_do_not_repeat_a_long_name_and_no_more_than_a_thousand_are_named() -> None:
    async def story(world: World) -> None:
        resource = await world.define(
            definition(_map_of({"type": "object", "additionalProperties": {"type": "integer"}}))
        )
        target = Target(resource, "default", "a")

        async def applied(manager: str, value: int) -> Any:
            config = thing(spec={"m": {KEY: {f"n{number}": value for number in range(NUMBER + 7)}}})
            return await world.registry.patch(target, "apply", config, SYSTEM, WriteOptions(field_manager=manager))

        await applied("first", 1)
        tracemalloc.start()
        try:
            code, texts = await refusal(applied("second", 2))
            assert tracemalloc.get_traced_memory()[1] < MUCH
        finally:
            tracemalloc.stop()
        assert (code, len(texts)) == (409, NUMBER)

    run(story)
