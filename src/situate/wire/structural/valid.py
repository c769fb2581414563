"""Whether a value fits a schema: yes or no, as fast as plain Python can say it. `checks` says what is wrong.

A schema becomes nested functions once. They build no paths and no texts, because almost every object is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from situate.core.cel.regex import compile_regex
from situate.wire.structural import patterns
from situate.wire.structural.formats import FORMATS, recognised
from situate.wire.structural.numbers import is_multiple, out_of_range

Test = Callable[[Any], bool]
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "boolean": bool,
    "object": dict,
    "array": list,
    "number": (int, float),
}


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    return is_number(value) and (isinstance(value, int) or value.is_integer())


def compile_test(schema: Mapping[str, Any]) -> Test:
    """Raises RegexError for a pattern that is none."""
    tests: list[Test] = []
    kind = schema.get("type", "")
    of_type = _type_test(schema, kind)
    for part in (_text_test, _number_test, _list_test, _object_test, _enum_test, _combined_test):
        if (made := part(schema)) is not None:
            tests.append(made)
    if not tests:
        return of_type
    nullable = schema.get("nullable", False) or not (kind or schema.get("x-kubernetes-int-or-string"))
    has_enum = bool(schema.get("enum"))
    if len(tests) == 1 and not nullable:
        only = tests[0]
        return lambda value: of_type(value) and only(value)

    def test(value: Any) -> bool:
        if value is None:
            return nullable and not has_enum
        return of_type(value) and all(one(value) for one in tests)

    return test


def _type_test(schema: Mapping[str, Any], kind: str) -> Test:
    nullable = schema.get("nullable", False)
    if schema.get("x-kubernetes-int-or-string"):
        return lambda value: isinstance(value, str) or is_whole(value) or (value is None and nullable)
    if not kind:
        return lambda _: True
    if kind == "integer":
        return lambda value: is_whole(value) or (value is None and nullable)
    expected = _TYPES.get(kind)
    if expected is None:
        return lambda _: False
    if kind == "number":
        return lambda value: is_number(value) or (value is None and nullable)
    if kind == "string" and recognised(kind, schema.get("format", "")):
        # A list passes, too: kube-apiserver leaves it to the format, which is about text.
        return lambda value: isinstance(value, str | list) or (value is None and nullable)
    if nullable:
        return lambda value: value is None or isinstance(value, expected)
    return lambda value: isinstance(value, expected)


def _text_test(schema: Mapping[str, Any]) -> Test | None:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    pattern, name = schema.get("pattern", ""), recognised(schema.get("type", ""), schema.get("format", ""))
    check = FORMATS.get(name.replace("-", ""))
    if longest is None and shortest is None and not pattern and check is None:
        return None
    compiled = compile_regex(pattern) if pattern else None

    def test(value: Any) -> bool:
        if not isinstance(value, str):
            return True
        if longest is not None and len(value) > longest:
            return False
        if shortest is not None and len(value) < shortest:
            return False
        return (compiled is None or patterns.matches(compiled, value)) and (check is None or check(value))

    return test


def _number_test(schema: Mapping[str, Any]) -> Test | None:
    kind, most, least = schema.get("type", ""), schema.get("maximum"), schema.get("minimum")
    factor, name = schema.get("multipleOf"), recognised(schema.get("type", ""), schema.get("format", ""))
    limits = [one for one in (most, least, factor) if one is not None]
    if not limits and kind not in ("integer", "number"):
        return None
    below, above = schema.get("exclusiveMaximum", False), schema.get("exclusiveMinimum", False)
    doubtful = any(out_of_range(one, kind, name) for one in limits)

    def test(value: Any) -> bool:
        if not is_number(value):
            return True
        if doubtful or out_of_range(value, kind, name):
            return False
        if most is not None and (value >= most if below else value > most):
            return False
        if least is not None and (value <= least if above else value < least):
            return False
        return factor is None or is_multiple(value, factor)

    return test


def _list_test(schema: Mapping[str, Any]) -> Test | None:
    most, least, items = schema.get("maxItems"), schema.get("minItems"), schema.get("items")
    inner = compile_test(items) if isinstance(items, dict) else None
    if most is None and least is None and inner is None:
        return None

    def test(value: Any) -> bool:
        if not isinstance(value, list):
            return True
        if (most is not None and len(value) > most) or (least is not None and len(value) < least):
            return False
        return inner is None or all(map(inner, value))

    return test


def _object_test(schema: Mapping[str, Any]) -> Test | None:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    required: Sequence[str] = schema.get("required", ())
    properties = {name: compile_test(one) for name, one in schema.get("properties", {}).items()}
    additional = schema.get("additionalProperties")
    others = compile_test(additional) if isinstance(additional, dict) else None
    closed = additional is False
    if most is None and least is None and not required and not properties and additional is None:
        return None

    def test(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        if (most is not None and len(value) > most) or (least is not None and len(value) < least):
            return False
        for name in required:
            if name not in value:
                return False
        for name, inner in value.items():
            known = properties.get(name)
            if known is not None:
                if not known(inner):
                    return False
            elif closed or (others is not None and not others(inner)):
                return False
        return True

    return test


def _enum_test(schema: Mapping[str, Any]) -> Test | None:
    values = schema.get("enum")
    return enum_test(values) if values else None


def enum_test(values: Sequence[Any]) -> Test:
    """Whether a value is one of these. Many texts and numbers are compared with many in time linear in both."""
    texts = frozenset(one for one in values if isinstance(one, str))
    whole = frozenset(one for one in values if isinstance(one, int) and not isinstance(one, bool))
    fractions = frozenset(one for one in values if isinstance(one, float))
    others = [one for one in values if one is None or isinstance(one, bool | list | dict)]

    def test(value: Any) -> bool:
        if isinstance(value, str):
            return value in texts
        if isinstance(value, bool) or not isinstance(value, int | float):
            return _in_enum(value, others)
        return value in fractions or int(value) in whole

    return test


def _in_enum(value: Any, values: Sequence[Any]) -> bool:
    """As kube-apiserver compares: null is never one of the values, and a number is converted to the type of each."""
    if value is None:
        return False
    return any(one == value and isinstance(one, bool) == isinstance(value, bool) for one in values)


def _combined_test(schema: Mapping[str, Any]) -> Test | None:
    any_of, all_of, one_of = (
        [compile_test(one) for one in schema.get(name, ())] for name in ("anyOf", "allOf", "oneOf")
    )
    forbidden = compile_test(schema["not"]) if "not" in schema else None
    if not any_of and not all_of and not one_of and forbidden is None:
        return None

    def test(value: Any) -> bool:
        if any_of and not any(one(value) for one in any_of):
            return False
        if one_of and sum(one(value) for one in one_of) != 1:
            return False
        return all(one(value) for one in all_of) and (forbidden is None or not forbidden(value))

    return test
