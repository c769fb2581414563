"""Objects that expressions make, and the variables of policies."""

import pytest

from situate.core.cel.objects import misnamed, to_json
from situate.core.cel.policies import CONDITION, CONFIGURATION, PATCH, PolicyCompiler, VariableValues
from situate.core.cel.values import StringMap, Value


def value(text: str, **variables: str) -> Value:
    compiler = PolicyCompiler(has_params=False)
    for name, expression in variables.items():
        assert compiler.add_variable(name, expression).error == ""
    compiled = compiler.compile(text, PATCH if text.startswith("[") else CONFIGURATION, makes_objects=True)
    assert compiled.expression is not None, compiled.error
    context: dict[str, Value] = {"object": StringMap({"a": 1, "list": [1, 2]})}
    context["variables"] = VariableValues(compiler.variables, context, 10_000)
    return compiled.expression.outcome(context, 10_000)[0]


def test_an_object_has_the_fields_that_it_is_made_with() -> None:
    made = value("Object{spec: Object.spec{n: object.a, ?none: optional.none(), list: [{'a': true}]}}")
    assert to_json(made) == {"spec": {"n": 1, "list": [{"a": True}]}}
    assert misnamed(made) == []
    assert len(misnamed(value("Object{spec: Object.other{}, list: [Object.list{x: Object.x{}}]}"))) == 2


def test_a_patch_escapes_keys() -> None:
    made = value(
        "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('b/c~d'), value: variables.v}]", v="object.list"
    )
    assert to_json(made) == [{"op": "add", "path": "/a/b~1c~0d", "value": [1, 2]}]


def test_a_variable_is_evaluated_once_and_only_if_it_is_used() -> None:
    compiler = PolicyCompiler(has_params=False)
    compiler.add_variable("used", "object.list.map(x, x + 1)")
    compiler.add_variable("unused", "object.none")
    compiled = compiler.compile("variables.used[0] == 2 && variables.used[1] == 3", CONDITION)
    context: dict[str, Value] = {"object": StringMap({"list": [1, 2]})}
    context["variables"] = variables = VariableValues(compiler.variables, context, 10_000)
    assert compiled.expression is not None
    assert compiled.expression.outcome(context, 1_000)[0] is True
    cost = variables.cost
    assert compiled.expression.outcome(context, 1_000)[0] is True
    assert variables.cost == cost > 0


@pytest.mark.parametrize("text", ["variables.none", "Object{}", "jsonpatch.escapeKey('a') == 'a'"])
def test_what_a_condition_cannot_name(text: str) -> None:
    assert PolicyCompiler(has_params=False).compile(text, CONDITION).expression is None
