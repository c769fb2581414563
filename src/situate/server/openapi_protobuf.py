"""OpenAPI v2 in protobuf, which kubectl asks for: the messages of gnostic's OpenAPIv2.proto.

A document is written in parts, because protobuf lets them be joined: each definition and each path is encoded once, and
whoever serves the whole joins their bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2

DOCUMENT_PATHS: Final = 8
DOCUMENT_DEFINITIONS: Final = 9
_PATHS_PATH: Final = 2


def document(title: str, version: str, paths: Sequence[bytes], definitions: Sequence[bytes]) -> bytes:
    """Of parts that `named_path` and `named_definition` made."""
    info = _text(1, title) + _text(2, version)
    head = _text(1, "2.0") + field(2, info)
    return head + field(DOCUMENT_PATHS, b"".join(paths)) + field(DOCUMENT_DEFINITIONS, b"".join(definitions))


def named_definition(name: str, schema: Mapping[str, Any]) -> bytes:
    return field(1, _text(1, name) + field(2, _schema(schema)))


def named_path(path: str, item: Mapping[str, Any]) -> bytes:
    return field(_PATHS_PATH, _text(1, path) + field(2, _path_item(item)))


# -- the encoding ------------------------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF  # negative numbers are written as 64 bits
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _text(number: int, value: Any) -> bytes:
    return field(number, str(value).encode("utf-8", "replace"))


def _integer(number: int, value: Any) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(int(value))


def _double(number: int, value: Any) -> bytes:
    return _varint(number << 3 | _FIXED64) + struct.pack("<d", float(value))


def _texts(number: int, values: Any) -> bytes:
    return b"".join(_text(number, one) for one in values)


def _any(number: int, value: Any) -> bytes:
    """Any value, as YAML; JSON is YAML."""
    return field(number, field(2, msgspec.json.encode(value)))


def _anys(number: int, values: Any) -> bytes:
    return b"".join(_any(number, one) for one in values)


def _schema_field(number: int, value: Any) -> bytes:
    return field(number, _schema(value))


def _schemas(number: int, values: Any) -> bytes:
    return b"".join(_schema_field(number, one) for one in values)


def _types(number: int, value: Any) -> bytes:
    return field(number, _text(1, value))


def _items(number: int, value: Any) -> bytes:
    return field(number, _schema_field(1, value))


def _additional(number: int, value: Any) -> bytes:
    return field(number, _integer(2, value) if isinstance(value, bool) else _schema_field(1, value))


def _properties(number: int, value: Any) -> bytes:
    return field(number, b"".join(named_definition(name, one) for name, one in value.items()))


_Encode = Callable[[int, Any], bytes]
_Fields = Mapping[str, tuple[int, _Encode]]
_SCHEMA_EXTENSIONS: Final = 31
_SCHEMA: Final[_Fields] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _integer),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _integer),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _integer),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _additional),
    "type": (22, _types),
    "items": (23, _items),
    "allOf": (24, _schemas),
    "properties": (25, _properties),
}


def _message(value: Mapping[str, Any], fields: _Fields, extensions: int) -> bytes:
    found = []
    for name, one in value.items():
        if name in fields:
            number, encode = fields[name]
            found.append(encode(number, one))
        elif name.startswith("x-"):
            found.append(field(extensions, _text(1, name) + _any(2, one)))
    return b"".join(found)


def _schema(value: Mapping[str, Any]) -> bytes:
    return _message(value, _SCHEMA, _SCHEMA_EXTENSIONS)


# -- paths -------------------------------------------------------------------------------------------------------------


def _parameters(number: int, values: Any) -> bytes:
    return b"".join(field(number, field(1, _parameter(one))) for one in values)


_PARAMETER_EXTENSIONS: Final = 23
_QUERY: Final[_Fields] = {
    "required": (1, _integer),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (6, _text),
    "uniqueItems": (21, _integer),
}
_IN_PATH: Final[_Fields] = {**_QUERY, "type": (5, _text), "uniqueItems": (20, _integer)}
_BODY: Final[_Fields] = {
    "description": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _integer),
    "schema": (5, _schema_field),
}


def _parameter(value: Mapping[str, Any]) -> bytes:
    if value["in"] == "body":
        return field(1, _message(value, _BODY, 6))
    if value["in"] == "query":
        return field(2, field(3, _message(value, _QUERY, _PARAMETER_EXTENSIONS)))
    return field(2, field(4, _message(value, _IN_PATH, _PARAMETER_EXTENSIONS - 1)))


def _responses(number: int, values: Any) -> bytes:
    answers = {"description": (1, _text), "schema": (2, lambda at, schema: field(at, _schema_field(1, schema)))}
    found = b""
    for code, answer in values.items():
        found += field(1, _text(1, code) + field(2, field(1, _message(answer, answers, 5))))
    return field(number, found)


_OPERATION: Final[_Fields] = {
    "tags": (1, _texts),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _texts),
    "consumes": (7, _texts),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "schemes": (10, _texts),
}


def _operation(number: int, value: Any) -> bytes:
    return field(number, _message(value, _OPERATION, 13))


_METHODS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_PATH_ITEM: Final[_Fields] = {
    **{name: (number, _operation) for name, number in _METHODS.items()},
    "parameters": (9, _parameters),
}


def _path_item(value: Mapping[str, Any]) -> bytes:
    return _message(value, _PATH_ITEM, 10)
