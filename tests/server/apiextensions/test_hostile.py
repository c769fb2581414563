"""Hostile schemas and webhooks are refused, or cost their own requests.

Rules that cost too much: test_rules. Long texts, patterns and enums: test_custom_kinds. Defaults: test_default_limits.
Definitions that take long to compile: test_cost. Webhooks' connections: tests/server/admission/test_webhooks.py.
"""

import asyncio
from typing import Any

import pytest

from server.apiextensions.converting import Converting, of
from server.apiextensions.converting import run as run_converting
from server.apiextensions.world import World, definition, refusal, run, thing
from situate.server.apiextensions.served import DEFINITIONS
from situate.server.http.bodies import MAX_VALUES
from situate.server.kinds.apiextensions.definition_rules import MAX_DEPTH
from situate.server.requests import Target

TEXT = {"type": "string"}


def _nested(levels: int, wrap: str = "properties") -> Any:
    """A schema of so many levels: the object, and what its field `a` has."""
    schema: Any = TEXT
    for _ in range(levels - 2):
        inner = {wrap: {"a": schema} if wrap == "properties" else schema}
        schema = {"type": "array" if wrap == "items" else "object", **inner}
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize("wrap", ["properties", "additionalProperties", "items"])
def test_a_deep_schema_is_refused_and_one_as_deep_as_the_limit_works(wrap: str) -> None:
    async def story(world: World) -> None:
        code, causes = await refusal(world.create(DEFINITIONS, definition(_nested(MAX_DEPTH + 1, wrap)), namespace=""))
        assert code == 422
        assert any(f"schemas may be nested at most {MAX_DEPTH} levels deep" in one for one in causes)
        resource = await world.define(definition(_nested(MAX_DEPTH, wrap)))
        value: Any = "x"
        for _ in range(MAX_DEPTH - 2):
            value = [value] if wrap == "items" else {"a": value}
        await world.create(resource, thing(a=value))

    run(story)


def test_a_schema_far_deeper_than_python_goes_is_refused() -> None:
    async def story(world: World) -> None:
        body = definition(_nested(400))
        assert (await refusal(world.create(DEFINITIONS, body, namespace="")))[0] in (400, 413, 422)
        await world.define(definition({"type": "object"}))

    run(story)


def test_a_huge_schema_is_refused() -> None:
    async def story(world: World) -> None:
        properties = {f"f{number}": TEXT for number in range(MAX_VALUES)}
        body = definition({"type": "object", "properties": properties})
        assert (await refusal(world.create(DEFINITIONS, body, namespace="")))[0] == 413
        await world.define(definition({"type": "object"}))

    run(story)


def test_a_conversion_webhook_that_never_answers_costs_the_requests_that_need_it() -> None:
    async def story(at: Converting) -> None:
        await at.here.create(at.v1, of("a", "v1"))
        at.webhook.gate = asyncio.Event()  # never set
        waiting = [
            asyncio.ensure_future(at.here.registry.get(Target(at.v2, "default", "a"))),
            asyncio.ensure_future(at.here.registry.list(Target(at.v2, "default"))),
            asyncio.ensure_future(at.here.create(at.v2, of("b", "v2"))),
        ]
        async with asyncio.timeout(60):
            while len(at.webhook.asked) < len(waiting):
                await asyncio.sleep(0.001)
            await at.here.create(at.v1, of("c", "v1"))
            assert (await at.get("v1"))["spec"]["host"] == "x"
            assert len(await at.list("v1")) == 2
        assert not any(one.done() for one in waiting)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run_converting(story)
