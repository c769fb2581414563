"""Selectors of devices: what matches, what does not compile, and what fails."""

import pytest

from situate.core.cel.device_selectors import DeviceView, Version, compile_selector
from situate.core.cel.errors import CompileError, EvaluationError
from situate.core.cel.libraries.quantity import Quantity

DEVICE = DeviceView(
    "gpu.example.com",
    {"model": "a100", "count": 4, "healthy": True, "other.example.com/version": Version("1.2.3")},
    {"memory": Quantity.parse("40Gi")},
)


@pytest.mark.parametrize(
    "expression, matches, cost",
    [
        ('device.driver == "gpu.example.com"', True, 4),
        ('device.attributes["gpu.example.com"].model == "a100"', True, 5),
        ('device.attributes["gpu.example.com"].count > 4', False, 5),
        ('device.attributes["gpu.example.com"].healthy', True, 4),
        ('device.attributes["other.example.com"].version.isGreaterThan(semver("1.0.0"))', True, 6),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40960Mi")) == 0', True, 7),
        ('has(device.attributes["gpu.example.com"].missing)', False, 3),
        ("device.driver in ['a', 'gpu.example.com']", True, 2),
        ("1 / 0 == 1 || true", True, 2),
        ("[1, 2, 3].map(x, x * 2) == [2, 4, 6]", True, 44),
    ],
)
def test_a_selector_matches_at_cel_gos_cost(expression: str, matches: bool, cost: int) -> None:
    assert compile_selector(expression).evaluate(DEVICE) == (matches, cost)


@pytest.mark.parametrize(
    "expression, message",
    [
        ("1 + 2", "must evaluate to bool or the unknown type, not int"),
        (
            "device.foo",
            "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo\n | ......^",
        ),
    ],
)
def test_what_does_not_compile_is_told_in_cel_gos_words(expression: str, message: str) -> None:
    with pytest.raises(CompileError) as raised:
        compile_selector(expression)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "expression, message",
    [
        ('device.attributes["unknown"].id', "no such key: id"),
        (
            'device.attributes["gpu.example.com"].model',
            (
                "CEL result of type string could not be converted to bool: "
                "unsupported native conversion from string to 'bool'"
            ),
        ),
    ],
)
def test_a_failed_evaluation_is_told_in_cel_gos_words(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        compile_selector(expression).matches(DEVICE)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "expression, cost",
    [
        ("(true ? optional.of(device.attributes.d.v) : optional.none()).orValue(false)", 5),
        ("optional.of(1).optMap(o, device.attributes.d.v).orValue(false)", 7),
        ("cel.bind(o, optional.of(device.attributes.d.v), o).value().major() == 1", 9),
    ],
)
def test_a_version_does_not_survive_in_an_optional_that_is_chosen_or_named(expression: str, cost: int) -> None:
    """As in cel-go."""
    selector = compile_selector(expression)
    with pytest.raises(EvaluationError, match=r"unsupported conversion to ref.Val: \(semver.Version\)1.2.3") as caught:
        selector.evaluate(DeviceView("d", {"v": Version("1.2.3")}, {}, False))
    assert caught.value.cost == cost
