"""Selectors with cel-go's recorded answers: result or error, and cost."""

import json
from pathlib import Path
from typing import Any

import pytest

from situate.core.cel.device_selectors import AttributeValue, DeviceView, Version, compile_selector
from situate.core.cel.errors import CompileError, EvaluationError
from situate.core.cel.libraries.quantity import Quantity

_LINES = [json.loads(line) for line in (Path(__file__).parent / "recorded.jsonl").read_text().splitlines()]
_CASES = _LINES[1:]


def _view(given: dict[str, Any]) -> DeviceView:
    attributes: dict[str, AttributeValue] = {}
    for name, attribute in given["attributes"].items():
        ((kind, value),) = attribute.items()
        attributes[name] = Version(value) if kind == "version" else value
    capacity = {name: Quantity.parse(one["value"]) for name, one in given["capacity"].items()}
    return DeviceView(given["driver"], attributes, capacity, given["allowMultipleAllocations"])


_DEVICES = [_view(given) for given in _LINES[0]["devices"]]


def _answer(expression: str, device: DeviceView) -> dict[str, Any]:
    try:
        selector = compile_selector(expression)
    except CompileError as error:
        return {"compileError": str(error)}
    try:
        matches, cost = selector.evaluate(device)
    except EvaluationError as error:
        return {"runtimeError": str(error), "cost": error.cost}
    return {"matches": matches, "cost": cost}


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["expression"])
def test_the_answer_is_cel_gos(case: dict[str, Any]) -> None:
    expected = {key: value for key, value in case.items() if key not in ("expression", "device")}
    assert _answer(case["expression"], _DEVICES[case["device"]]) == expected


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("(" * 100 + "true" + ")" * 100, id="a hundred brackets"),
        pytest.param("[" * 200 + "]" * 200 + ".size() == 1", id="two hundred lists"),
        pytest.param("(" * 5000, id="brackets without an end"),
        pytest.param(" + ".join(["1"] * 240) + " > 0", id="a long sum"),
        pytest.param(" && ".join(["true"] * 5000), id="a long conjunction"),
        pytest.param("'" + "a" * 5000 + "!'.matches('(a+)+$')", id="a pattern that backtracks"),
        pytest.param("x" * 100_001, id="too long"),
        pytest.param("'" + "a" * 3000 + "'.matches('(a|aa)+$' + '')", id="a pattern that is ambiguous"),
        pytest.param("[1,2,3,4].map(a,[1,2,3,4].map(b,[1,2,3,4].map(c,[1,2,3,4].map(d,a)))).size()>0", id="loops"),
        pytest.param("lists.range(9000000000000).size() > 0", id="a range beyond any limit"),
    ],
)
def test_an_odd_expression_ends_in_an_answer_or_an_error(expression: str) -> None:
    assert _answer(expression, _DEVICES[0])
