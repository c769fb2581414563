"""Objects that an expression makes: `Object{spec: Object.spec{replicas: 1}}` and `JSONPatch{op: "add", ...}`.

An Object may have any fields, of any type, because nothing is known of the kind. The name of an inner one says where it
belongs.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from situate.core.cel.environment import Environment
from situate.core.cel.errors import ErrorValue
from situate.core.cel.formatting import duration_text
from situate.core.cel.libraries.times import format_timestamp
from situate.core.cel.types import DYN, STRING, CelType, struct
from situate.core.cel.values import DurationValue, MapValue, StringMap, TimestampValue, Value

OBJECT: Final = struct("Object")
JSON_PATCH: Final = struct("JSONPatch")
MISNAMED: Final = (
    'unexpected type name "{name}", expected "{path}", which matches field name path from root Object type'
)
NO_JSON: Final = "unable to convert to JSON"
_PATCH_FIELDS: Final = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


class ObjectValue(StringMap):
    """An object of a named type."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: Mapping[str, Value]) -> None:
        super().__init__(fields)
        self.type_name = type_name


class _AnyField(dict[str, CelType]):
    """The fields of an Object."""

    def get(self, _name: str, _default: Any = None) -> Any:
        return DYN


class _Types(dict[str, CelType]):
    """Types by name, with all those of Objects."""

    def get(self, name: str, default: Any = None) -> Any:
        return struct(name) if _is_object(name) else super().get(name, default)

    def __contains__(self, name: object) -> bool:
        return (isinstance(name, str) and _is_object(name)) or super().__contains__(name)

    def __missing__(self, name: str) -> CelType:
        return struct(name)


class _Fields(dict[str, Mapping[str, CelType]]):
    def get(self, name: str, default: Any = None) -> Any:
        return _AnyField() if _is_object(name) else super().get(name, default)

    def __contains__(self, name: object) -> bool:
        return (isinstance(name, str) and _is_object(name)) or super().__contains__(name)


def _is_object(name: str) -> bool:
    return name == OBJECT.name or name.startswith(f"{OBJECT.name}.")


def with_objects(environment: Environment) -> Environment:
    """The environment of expressions that make Objects and JSON patches."""
    return replace(
        environment,
        types=_Types({**environment.types, JSON_PATCH.name: JSON_PATCH}),
        fields=_Fields({**environment.fields, JSON_PATCH.name: _PATCH_FIELDS}),
        make=_make,
    )


def _make(name: str, fields: MapValue) -> Value:
    found = {str(key): value for key, value in fields.items()}
    if name == JSON_PATCH.name:
        for key in ("op", "path", "from"):
            if key in found and not isinstance(found[key], str):
                return ErrorValue(f"unexpected type for JSONPatchType '{key}' field")
    return ObjectValue(name, found)


def misnamed(value: Value) -> list[str]:
    """What is wrong with the names of an Object's types: each must be the path to it."""
    root = value.type_name if isinstance(value, ObjectValue) else ""
    return list(_misnamed(value, root))


def _misnamed(value: Value, path: str) -> Iterator[str]:
    if isinstance(value, ObjectValue):
        if value.type_name != path:
            yield MISNAMED.format(name=value.type_name, path=path)
        for name, inner in value.names.items():
            yield from _misnamed(inner, f"{path}.{name}")
    elif isinstance(value, MapValue):
        for pair in value.items():
            yield from _misnamed(pair[1], path)
    elif isinstance(value, list):
        for inner in value:
            yield from _misnamed(inner, path)


def to_json(value: Value) -> Any:
    """Raises ValueError."""
    if isinstance(value, MapValue):
        found = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ValueError(NO_JSON)
            found[key] = to_json(inner)
        return found
    if isinstance(value, list):
        return [to_json(inner) for inner in value]
    if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, TimestampValue):
        return format_timestamp(value)
    if isinstance(value, DurationValue):
        return duration_text(value)
    raise ValueError(NO_JSON)
