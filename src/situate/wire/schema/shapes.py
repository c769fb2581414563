"""Checks that stored JSON has the shape of its kind: every field that we know has its type.

It reads no times and no quantities and ignores fields that it does not know, so it costs a third of decoding. Code
that works on stored objects relies on their shape.
"""

from functools import cache
from typing import Annotated, Any, Final

import msgspec

from situate.wire.schema.table import Type, flat_fields, is_recursive, message, message_of
from situate.wire.schema.values import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]

_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "bool": bool,
    "int32": Int32,
    "int64": Int64,
    "double": float,
    "bytes": str,
    "Quantity": str,
    "Amount": str,
    "IntOrString": Int32 | str,
    "Time": str,
    "MicroTime": str,
    "Raw": msgspec.Raw,
    "Free": msgspec.Raw,
}


@cache
def shape_of(api_version: str, kind: str) -> msgspec.json.Decoder[Any]:
    """Its `decode` raises msgspec.DecodeError for another shape. The fields of the result have the prefix `f_`."""
    found = message_of(api_version, kind)
    if found is None:
        raise ValueError(f"unknown kind: {kind} in {api_version}")
    return msgspec.json.Decoder(_struct(found.name))


@cache
def _struct(name: str) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any, Any]] = []
    for field in flat_fields(message(name)):
        # Unset rather than None: nothing is stored as null but times that Go always writes, as in Events.
        annotation = str | None if field.always and field.type.name in ("Time", "MicroTime") else _type(field.type)
        fields.append((f"f_{field.name}", annotation, msgspec.field(name=field.name, default=msgspec.UNSET)))
    return msgspec.defstruct(name.replace(".", "_"), fields, gc=False)


@cache
def _type(kind: Type) -> Any:
    if kind.form == "list" and kind.of:
        inner = _type(kind.of)
        return list[inner]  # type: ignore[valid-type]
    if kind.form == "map" and kind.of:
        inner = _type(kind.of)
        return dict[str, inner]  # type: ignore[valid-type]
    if kind.form == "either" or (kind.form == "message" and is_recursive(kind.name)):
        return msgspec.Raw
    return _struct(kind.name) if kind.form == "message" else _TYPES[kind.name]
