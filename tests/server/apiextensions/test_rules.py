"""x-kubernetes-validations: rules, messages, transitions and budgets."""

from typing import Any

import pytest

from server.apiextensions.world import World, definition, of_spec, refusal, run, thing
from situate.server.apiextensions.served import DEFINITIONS

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def ruled(rules: list[dict[str, Any]], **properties: Any) -> dict[str, Any]:
    schema = of_spec(**properties)
    schema["properties"]["spec"]["x-kubernetes-validations"] = rules
    return schema


@pytest.mark.parametrize(
    "rule,spec,expected",
    [
        pytest.param(
            {"rule": "self.a <= self.b"},
            {"a": 2, "b": 1},
            "spec: Invalid value: failed rule: self.a <= self.b",
            id="a rule without a message is its own",
        ),
        pytest.param(
            {"rule": "self.a <= self.b", "message": "a is too large", "fieldPath": ".a"},
            {"a": 2, "b": 1},
            "spec.a: Invalid value: a is too large",
            id="a message, about a field",
        ),
        pytest.param(
            {"rule": "self.a < 1", "messageExpression": "'a is ' + string(self.a)", "reason": "FieldValueForbidden"},
            {"a": 2, "b": 1},
            "spec: Forbidden: a is 2",
            id="a message that is computed, with a reason",
        ),
        pytest.param(
            {"rule": "self.a <= self.b"},
            {"a": 2},
            "spec: Invalid value: \"object\": no such key: b evaluating rule: self.a <= self.b",
            id="a field that is not there",
        ),
        pytest.param(
            {"rule": "has(self.x__dash__y) && self.list.all(one, one.size() < 3)"},
            {"x-y": "a", "list": ["abc"]},
            "spec: Invalid value: failed rule: has(self.x__dash__y) && self.list.all(one, one.size() < 3)",
            id="escaped names, and lists",
        ),
        pytest.param(
            {"rule": "!has(self.namespace) || self.namespace == self.__namespace__ && size(self.namespace) == 0"},
            {"namespace": "a"},
            "spec: Invalid value: failed rule: !has(self.namespace)"
            " || self.namespace == self.__namespace__ && size(self.namespace) == 0",
            id="a reserved word after a dot, escaped or as it is",
        ),
    ],
)  # fmt: skip
def test_a_rule_refuses_an_object(rule: dict[str, Any], spec: dict[str, Any], expected: str) -> None:
    async def story(world: World) -> None:
        items = {"type": "array", "items": TEXT}
        properties = {"a": NUMBER, "b": NUMBER, "x-y": TEXT, "namespace": TEXT, "list": items}
        resource = await world.define(definition(ruled([rule], **properties)))
        assert await refusal(world.create(resource, thing(spec=spec))) == (422, [expected])

    run(story)


def test_a_transition_rule_compares_with_the_object_before() -> None:
    async def story(world: World) -> None:
        rule = {"rule": "self == oldSelf", "message": "a does not change"}
        resource = await world.define(definition(of_spec(a={**TEXT, "x-kubernetes-validations": [rule]}, b=TEXT)))
        await world.create(resource, thing(spec={"a": "x"}))
        await world.patch(resource, "a", {"spec": {"b": "y"}})
        code, texts = await refusal(world.patch(resource, "a", {"spec": {"a": "y"}}))
        assert (code, texts) == (422, ['spec.a: Invalid value: "y": a does not change'])

    run(story)


def test_rules_wait_until_the_schema_is_kept() -> None:
    async def story(world: World) -> None:
        resource = await world.define(definition(ruled([{"rule": "self.a > 1"}], a=NUMBER)))
        code, texts = await refusal(world.create(resource, thing(spec={"a": "x"})))
        assert code == 422
        assert texts[-1].startswith("<nil>: Invalid value: null: some validation rules were not checked")

    run(story)


def test_a_rule_that_does_not_compile_is_refused_with_its_definition() -> None:
    async def story(world: World) -> None:
        crd = definition(ruled([{"rule": "self.nothing > 1"}], a=NUMBER))
        code, texts = await refusal(world.create(DEFINITIONS, crd, namespace=""))
        assert code == 422
        assert "undefined field 'nothing'" in texts[0]

    run(story)


def test_a_rule_that_costs_too_much_ends_its_own_request() -> None:
    async def story(world: World) -> None:
        rule = {"rule": "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c != 'x')))"}
        resource = await world.define(definition(ruled([rule], list={"type": "array", "items": TEXT})))
        code, texts = await refusal(world.create(resource, thing(spec={"list": ["abc"] * 300})))
        assert code == 422
        assert "budget" in texts[0] or "cost" in texts[0]

    run(story)
