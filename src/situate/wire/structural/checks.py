"""What is wrong with a value by a schema, in kube-apiserver's words and order.

kube-apiserver reports, of several alternatives that all fail, the one with the most successful steps; `_Level.check`
counts them as it does. An update may keep what was wrong before: an error about a value that has not changed since is
dropped (ratcheting), as far as the old value can be found by field names and list keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from situate.core.cel.regex import compile_regex
from situate.core.model.field_errors import extended, quoted
from situate.wire.structural import patterns
from situate.wire.structural.formats import FORMATS, recognised
from situate.wire.structural.numbers import is_multiple, out_of_range, shown_number
from situate.wire.structural.valid import Test, compile_test, enum_test, is_number, is_whole

MAX_ERRORS: Final = 1_000
"""Errors that are collected of one object."""
MAX_CHARACTERS: Final = 1 << 20
"""Of their texts, but for the last one. Each may name all values of an enum."""
NO_PATH: Final = "<nil>"
"""kube-apiserver's path of an error that has none."""

ErrorKind = Literal["required", "enum", "length", "count", "type", "value"]


class SchemaError(NamedTuple):
    kind: ErrorKind
    path: str
    value: Any
    text: str
    limit: int = 0
    supported: tuple[str, ...] = ()


class _Missing:
    """No old value to compare with."""


MISSING: Final = _Missing()


class Errors(list[SchemaError]):
    """Each text once."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: dict[str, None] = {}
        self._room = MAX_CHARACTERS

    @property
    def is_full(self) -> bool:
        return len(self) >= MAX_ERRORS or self._room <= 0

    def add(self, error: SchemaError) -> None:
        if not self.is_full and error.text not in self._texts:
            self._room -= len(error.text)
            self._texts[error.text] = None
            self.append(error)

    def merge(self, others: Sequence[SchemaError]) -> None:
        for one in others:
            self.add(one)


class SchemaChecks:
    """A schema, ready to check values."""

    __slots__ = ("_level", "_test")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._test: Test = compile_test(schema)
        self._level = _Level(schema)

    def errors(self, value: Any, old: Any = MISSING) -> Sequence[SchemaError]:
        """`old`: the value before an update. Raises PatternWorkError."""
        patterns.begin()
        if self._test(value):
            return ()
        found = Errors()
        self._level.check(value, "", old, found)
        return found


class _Level:
    __slots__ = (
        "additional",
        "all_of",
        "any_of",
        "closed",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "format",
        "in_enum",
        "items",
        "kind",
        "list_type",
        "map_keys",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "not_",
        "nullable",
        "one_of",
        "pattern",
        "properties",
        "required",
        "types",
    )

    def __init__(self, schema: Mapping[str, Any]) -> None:
        get = schema.get
        self.kind: str = get("type", "")
        self.types: tuple[str, ...] = (self.kind,) if self.kind else ()
        if get("x-kubernetes-int-or-string"):
            self.types = ("integer", "string")
        self.nullable: bool = get("nullable", False)
        self.format = recognised(self.kind if len(self.types) == 1 else "", get("format", ""))
        self.any_of = [_Level(one) for one in get("anyOf", ())]
        self.one_of = [_Level(one) for one in get("oneOf", ())]
        self.all_of = [_Level(one) for one in get("allOf", ())]
        self.not_ = compile_test(schema["not"]) if "not" in schema else None
        self.max_length, self.min_length, self.pattern = get("maxLength"), get("minLength"), get("pattern", "")
        self.maximum, self.minimum, self.multiple_of = get("maximum"), get("minimum"), get("multipleOf")
        self.exclusive_maximum, self.exclusive_minimum = get("exclusiveMaximum", False), get("exclusiveMinimum", False)
        self.max_items, self.min_items = get("maxItems"), get("minItems")
        self.max_properties, self.min_properties = get("maxProperties"), get("minProperties")
        items, additional = get("items"), get("additionalProperties")
        self.items = _Level(items) if isinstance(items, dict) else None
        self.additional = _Level(additional) if isinstance(additional, dict) else None
        self.closed = additional is False
        self.properties = {name: _Level(one) for name, one in get("properties", {}).items()}
        self.required: Sequence[str] = get("required", ())
        self.enum: Sequence[Any] = get("enum", ())
        self.in_enum = enum_test(self.enum)
        self.list_type: str = get("x-kubernetes-list-type", "")
        self.map_keys: Sequence[str] = get("x-kubernetes-list-map-keys", ())

    def check(self, value: Any, path: str, old: Any, errors: Errors) -> int:
        """Append what is wrong; returns the number of successful steps."""
        if value is None:
            steps = self._check_type(value, path, errors)
            if self.enum:
                self._check_enum(value, path, errors)
            return steps
        steps = 2  # the enum, and the end
        if self.types or self.format:
            steps += 1 + self._check_type(value, path, errors)
        steps += 2 + self._check_combined(value, path, old, errors)
        if isinstance(value, str):
            steps += 1 + bool(self.format in FORMATS or self.format.replace("-", "") in FORMATS)
            self._check_text(value, path, errors)
        elif is_number(value):
            steps += 2
            self._check_number(value, path, errors)
        elif isinstance(value, list):
            steps += 2 + self._check_list(value, path, old, errors)
        if self.enum:
            self._check_enum(value, path, errors)
        if isinstance(value, dict):
            steps += 1 + self._check_object(value, path, old, errors)
        return steps

    def _check_child(self, level: _Level, value: Any, path: str, old: Any, errors: Errors) -> int:
        if old is MISSING:
            return level.check(value, path, old, errors)
        found = Errors()
        steps = level.check(value, path, old, found)
        if found and _same(value, old):
            return steps
        errors.merge(found)
        return steps

    # -- single values ------------------------------------------------------------------------------------------------

    def _check_type(self, value: Any, path: str, errors: Errors) -> int:
        given, precise = _type_of(value)
        wanted = ",".join(self.types)
        if value is None:
            if not self.types or self.nullable:
                return 1
            _type_error(path, wanted, given, errors)
            return 0
        fits = given in self.types or (given == "integer" and "number" in self.types)
        fits = fits or ("integer" in self.types and is_whole(value))
        textual = isinstance(value, str | list)
        if not textual and self.format and not fits and precise != self.format:
            _type_error(path, self.format, precise, errors)
            return 0
        if textual and self.format and not ("number" in self.types or "integer" in self.types):
            return 1
        if not fits:
            _type_error(path, wanted, given, errors)
            return 0
        return 1

    def _check_enum(self, value: Any, path: str, errors: Errors) -> None:
        if errors.is_full or self.in_enum(value):
            return
        shown = tuple(one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in self.enum)
        text = f"{path} in body should be one of [{' '.join(map(str, self.enum))}]"
        errors.add(SchemaError("enum", path, value, text, supported=shown))

    def _check_text(self, value: str, path: str, errors: Errors) -> None:
        length = len(value)
        if self.max_length is not None and length > self.max_length:
            text = f"{path} in body should be at most {self.max_length} chars long"
            errors.add(SchemaError("length", path, value, text, self.max_length))
        elif self.min_length is not None and length < self.min_length:
            _value_error(path, value, f"should be at least {self.min_length} chars long", errors)
        elif self.pattern and not patterns.matches(compile_regex(self.pattern), value):
            _value_error(path, value, f"should match '{self.pattern}'", errors)
        check = FORMATS.get(self.format.replace("-", ""))
        if check is not None and not check(value):
            text = f"{path} in body must be of type {self.format}: {quoted(value)}"
            errors.add(SchemaError("type", path, value, text))

    def _check_number(self, value: int | float, path: str, errors: Errors) -> None:
        kind = self.kind if len(self.types) == 1 and self.kind in ("integer", "number") else ""
        form = self.format if kind else ""
        self._check_range("Checked", value, kind, form, path, errors)
        if self.multiple_of is not None:
            self._check_range("MultipleOf", self.multiple_of, kind, form, path, errors)
            factor = shown_number(self.multiple_of)
            if self.multiple_of <= 0:
                text = f"factor MultipleOf declared for {path} must be positive: {factor}"
                errors.add(SchemaError("value", path, value, text))
            elif not is_multiple(value, self.multiple_of):
                _value_error(path, value, f"should be a multiple of {factor}", errors)
        if self.minimum is not None:
            self._check_range("Minimum boundary", self.minimum, kind, form, path, errors)
            least = int(self.minimum) if isinstance(value, int) else self.minimum
            if value <= least if self.exclusive_minimum else value < least:
                words = "greater than" if self.exclusive_minimum else "greater than or equal to"
                _value_error(path, value, f"should be {words} {shown_number(least)}", errors)
        if self.maximum is not None:
            self._check_range("Maximum boundary", self.maximum, kind, form, path, errors)
            most = int(self.maximum) if isinstance(value, int) else self.maximum
            if value >= most if self.exclusive_maximum else value > most:
                words = "less than" if self.exclusive_maximum else "less than or equal to"
                _value_error(path, value, f"should be {words} {shown_number(most)}", errors)

    def _check_range(self, what: str, value: int | float, kind: str, form: str, path: str, errors: Errors) -> None:
        if out_of_range(value, kind, form):
            named = f"with format {form}" if form else "(default format)"
            _plain_error(f"{what} value must be of type {kind} {named} in {path}", errors)

    # -- lists and objects --------------------------------------------------------------------------------------------

    def _check_list(self, value: list[Any], path: str, old: Any, errors: Errors) -> int:
        steps = 0
        if self.items is not None:
            before = self._old_items(old)
            for index, item in enumerate(value):
                was = before.get(_key_of(item, self.map_keys), MISSING) if before else MISSING
                steps += self._check_child(self.items, item, f"{path}[{index}]", was, errors)
        size = len(value)
        if self.min_items is not None and size < self.min_items:
            _value_error(path, size, f"should have at least {self.min_items} items", errors)
        if self.max_items is not None and size > self.max_items:
            text = f"{path} in body should have at most {self.max_items} items"
            errors.add(SchemaError("count", path, size, text, self.max_items))
        return steps

    def _old_items(self, old: Any) -> dict[bytes, Any]:
        """The items of a list before the update, by their keys; of lists without keys, nothing can be compared."""
        if self.list_type != "map" or not isinstance(old, list):
            return {}
        return {_key_of(item, self.map_keys): item for item in old}

    def _check_object(self, value: dict[str, Any], path: str, old: Any, errors: Errors) -> int:
        steps, size = 0, len(value)
        before = old if isinstance(old, dict) else {}
        if self.min_properties is not None and size < self.min_properties:
            _value_error(path, size, f"should have at least {self.min_properties} properties", errors)
        if self.max_properties is not None and size > self.max_properties:
            text = f"{path} in body should have at most {self.max_properties} properties"
            errors.add(SchemaError("count", path, size, text, self.max_properties))
        for name, inner in value.items():
            if name in self.properties:
                continue
            if self.closed:
                text = f"{extended(path, f'.{name}')} in body is a forbidden property"
                errors.add(SchemaError("value", path, name, text))
            elif self.additional is not None:
                was = before.get(name, MISSING)
                steps += self._check_child(self.additional, inner, extended(path, f".{name}"), was, errors)
        for name, level in self.properties.items():
            if name in value:
                there = f"{path}.{name}" if path else name
                was = MISSING if not path and name in ("kind", "apiVersion") else before.get(name, MISSING)
                steps += self._check_child(level, value[name], there, was, errors)
        for name in self.required:
            if name not in value:
                text = f"{path}.{name} in body is required"
                errors.add(SchemaError("required", f"{path}.{name}", None, text))
        return steps

    # -- alternatives -------------------------------------------------------------------------------------------------

    def _check_combined(self, value: Any, path: str, old: Any, errors: Errors) -> int:
        steps = 0
        named = quoted(path)
        if self.any_of:
            steps += self._check_any(value, path, old, errors, named)
        if self.one_of:
            steps += self._check_one(value, path, old, errors, named)
        if self.all_of:
            valid = 0
            for level in self.all_of:
                found = Errors()
                steps += level.check(value, path, old, found)
                valid += not found
                errors.merge(found)
            if valid != len(self.all_of):
                more = "" if valid else ". None validated"
                _plain_error(f"{named} must validate all the schemas (allOf){more}", errors)
        if self.not_ is not None and self.not_(value):
            _plain_error(f"{named} must not validate the schema (not)", errors)
        return steps

    def _check_any(self, value: Any, path: str, old: Any, errors: Errors, named: str) -> int:
        best: tuple[int, Errors] | None = None
        for level in self.any_of:
            found = Errors()
            steps = level.check(value, path, old, found)
            if not found:
                return steps
            if best is None or steps > best[0]:
                best = steps, found
        _plain_error(f"{named} must validate at least one schema (anyOf)", errors)
        if best is None:
            return 0
        errors.merge(best[1])
        return best[0]

    def _check_one(self, value: Any, path: str, old: Any, errors: Errors, named: str) -> int:
        best: tuple[int, Errors] | None = None
        successes: list[int] = []
        for level in self.one_of:
            found = Errors()
            steps = level.check(value, path, old, found)
            if not found:
                successes.append(steps)
            elif not successes and (best is None or steps > best[0]):
                best = steps, found
        if len(successes) == 1:
            return successes[0]
        more = f"Found {len(successes)} valid alternatives" if successes else "Found none valid"
        _plain_error(f"{named} must validate one and only one schema (oneOf). {more}", errors)
        if best is None or successes:
            return 0
        errors.merge(best[1])
        return best[0]


def _type_of(value: Any) -> tuple[str, str]:
    """The type of a value and, of a number, its format."""
    match value:
        case None:
            return "null", ""
        case bool():
            return "boolean", ""
        case str():
            return "string", ""
        case int():
            return "integer", "int64"
        case float():
            return "number", "float64"
        case list():
            return "array", ""
        case _:
            return "object", ""


def _type_error(path: str, wanted: str, given: str, errors: Errors) -> None:
    text = f"{path} in body must be of type {wanted}: {quoted(given)}"
    errors.add(SchemaError("type", path, given, text))


def _value_error(path: str, value: Any, detail: str, errors: Errors) -> None:
    errors.add(SchemaError("value", path, value, f"{path} in body {detail}"))


def _plain_error(text: str, errors: Errors) -> None:
    errors.add(SchemaError("value", NO_PATH, "", text))


def _key_of(item: Any, names: Sequence[str]) -> bytes:
    found = {name: item.get(name) for name in names} if isinstance(item, dict) else item
    return msgspec.json.encode(found, order="sorted")


def _same(value: Any, old: Any) -> bool:
    """Equal, also in the types of what they contain: 1 is not true."""
    return msgspec.json.encode(value, order="sorted") == msgspec.json.encode(old, order="sorted")
