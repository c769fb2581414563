"""A structural schema as types and values of CEL, for x-kubernetes-validations.

An object with properties is a struct of the schema's own, with names that CEL can write (`x-y` is `x__dash__y`). What a
schema says nothing about, an expression cannot name.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from situate.core.cel.libraries.times import parse_duration, parse_timestamp
from situate.core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelType,
    list_of,
    map_of,
    struct,
)
from situate.core.cel.values import DurationValue, StringMap, Value
from situate.wire.structural.schema import Structural

RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_METADATA: Final = {"name": STRING, "generateName": STRING}

Fields = dict[str, Mapping[str, CelType]]
"""The fields of struct types, by the types' names."""


def spellings(name: str) -> tuple[str, ...]:
    """How an expression may write a property; empty if it cannot. A reserved word may also follow a dot as it is."""
    if name in RESERVED:
        return f"__{name}__", name
    if not _NAME.fullmatch(name):
        return ()
    return (re.sub(r"__|[./-]", lambda match: _ESCAPES[match.group()], name),)


_SCALARS: Final = {"integer": INT, "number": DOUBLE, "boolean": BOOL}
_FORMATS: Final = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}


def declared_type(schema: Structural, path: str, fields: Fields, *, is_resource: bool = False) -> CelType | None:
    """The type of a value, with its struct types in `fields`; None if an expression cannot reach it."""
    if schema.int_or_string:
        return DYN
    if schema.type == "array":
        inner = None if schema.items is None else declared_type(schema.items, f"{path}.@idx", fields)
        return None if inner is None else list_of(inner)
    if schema.type == "object" and schema.additional is not None:
        value = declared_type(schema.additional, f"{path}.@elem", fields, is_resource=schema.additional.embedded)
        return None if value is None else map_of(STRING, value)
    if schema.type == "object":
        return _struct(schema, path, fields, is_resource=is_resource)
    if schema.type == "string":
        return _FORMATS.get(schema.source.get("format", ""), STRING)
    return _SCALARS.get(schema.type)


def _struct(schema: Structural, path: str, fields: Fields, *, is_resource: bool) -> CelType:
    own: dict[str, CelType] = {}
    for name, inner in schema.properties.items():
        known = spellings(name)
        kind = declared_type(inner, f"{path}.{known[0] if known else None}", fields, is_resource=inner.embedded)
        if kind is not None:
            own |= dict.fromkeys(known, kind)
    if is_resource or schema.embedded:
        fields[f"{path}.metadata"] = _METADATA
        own |= {"apiVersion": STRING, "kind": STRING, "metadata": struct(f"{path}.metadata")}
    fields[path] = own
    return struct(path)


def to_value(value: Any, schema: Structural | None, *, is_resource: bool = False) -> Value:
    """A value of an object for an expression."""
    if value is None or schema is None:
        return _plain(value)
    if schema.int_or_string:
        return _plain(value)
    if isinstance(value, dict):
        if schema.additional is not None:
            return StringMap({name: to_value(inner, schema.additional) for name, inner in value.items()})
        names: dict[str, Value] = {}
        for name, inner in value.items():
            if name in schema.properties and (known := spellings(name)):
                read = to_value(inner, schema.properties[name], is_resource=schema.properties[name].embedded)
                names |= dict.fromkeys(known, read)
        if is_resource or schema.embedded:
            names |= {name: value[name] for name in ("apiVersion", "kind") if name in value}
            meta = value.get("metadata") or {}
            names["metadata"] = StringMap({name: meta[name] for name in _METADATA if name in meta})
        return StringMap(names)
    if isinstance(value, list):
        return [to_value(item, schema.items) for item in value]
    if schema.type == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _text(value, schema.source.get("format", "")) if isinstance(value, str) else value


def _text(value: str, form: str) -> Value:
    match form:
        case "byte":
            try:
                return b64decode(value)
            except (binascii.Error, ValueError):
                return value
        case "duration":
            nanos = parse_duration(value)
            return value if nanos is None else DurationValue(nanos)
        case "date":
            return parse_timestamp(f"{value}T00:00:00Z") or value
        case "date-time":
            return parse_timestamp(value) or value
    return value


def _plain(value: Any) -> Value:
    if isinstance(value, dict):
        return StringMap({name: _plain(inner) for name, inner in value.items()})
    return [_plain(item) for item in value] if isinstance(value, list) else value
