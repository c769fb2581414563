"""Decodes a protobuf body into the same object as its JSON."""

import binascii
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

import msgspec
from google.protobuf.message import DecodeError as NotParsedError
from google.protobuf.message import Message as Parsed

from situate.wire.protobuf.descriptors import ENVELOPE, parser_of
from situate.wire.schema.decoder import DecodeError, normalised
from situate.wire.schema.table import Field, Type, message, message_of
from situate.wire.schema.values import ValueRefusedError, check_free

MAGIC: Final = b"k8s\x00"
NO_MAGIC: Final = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
NO_KIND: Final = 'no kind "{kind}" is registered for version "{version}"'
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXTUAL: Final = 1
"""The type of an IntOrString that is a string."""


def from_protobuf(body: bytes) -> dict[str, Any]:
    """The object in a body (MAGIC, then runtime.Unknown), normalised, with kind and apiVersion. Raises DecodeError."""
    if not body.startswith(MAGIC):
        raise DecodeError(NO_MAGIC)
    try:
        envelope: Any = parser_of(ENVELOPE).FromString(body[len(MAGIC) :])
        version, kind = envelope.typeMeta.apiVersion, envelope.typeMeta.kind
        one = message_of(version, kind)
        if one is None or not _has_numbers(one.name):
            raise DecodeError(NO_KIND.format(kind=kind, version=version))
        found = _object(one.name, parser_of(one.name).FromString(envelope.raw))
    except NotParsedError as wrong:
        raise DecodeError(f"proto: {wrong}") from None
    except (UnicodeDecodeError, msgspec.DecodeError, ValueRefusedError, OverflowError) as wrong:
        raise DecodeError(str(wrong)) from None
    return normalised(version, kind, found)


def _has_numbers(name: str) -> bool:
    """Custom resources, and our own kinds, are JSON only."""
    return any(field.number for field in message(name).fields)


@cache
def _by_number(name: str) -> dict[int, Field]:
    return {field.number: field for field in message(name).fields if field.number}


def _object(name: str, parsed: Parsed) -> dict[str, Any]:
    fields = _by_number(name)
    found: dict[str, Any] = {}
    for descriptor, value in parsed.ListFields():
        field = fields[descriptor.number]
        if field.inline:
            found.update(_object(field.type.name, value))
        else:
            found[field.name] = _value(field.type, value)
    return found


def _value(kind: Type, value: Any) -> Any:
    if kind.form == "scalar":
        return binascii.b2a_base64(value, newline=False).decode() if kind.name == "bytes" else value
    if kind.form == "message":
        return _object(kind.name, value)
    if kind.form == "either":
        return _either(kind, value)
    if kind.form == "list" and kind.of:
        return [_value(kind.of, one) for one in value]
    if kind.form == "map" and kind.of:
        return {entry.key: _entry(kind.of, entry) for entry in value}
    return _special(kind.name, value)


def _either(kind: Type, value: Any) -> Any:
    """The last option that is set: a schema rather than the boolean beside it."""
    found: Any = None
    for descriptor, inner in value.ListFields():
        found = _value(kind.options[descriptor.number - 1], inner)
    return found


def _entry(kind: Type, entry: Any) -> Any:
    return _value(kind, entry.value.items if kind.form == "list" else entry.value)


def _special(name: str, value: Any) -> Any:
    if name in ("Quantity", "Amount"):
        return value.string or "0"
    if name == "IntOrString":
        return value.strVal if value.type == _TEXTUAL else value.intVal
    if name in ("Time", "MicroTime"):
        return _moment(value, micros=name == "MicroTime")
    if not value.raw:
        return None
    free = msgspec.json.decode(value.raw)
    check_free(free)
    return free


def _moment(value: Any, *, micros: bool) -> str | None:
    """An empty message is an unset time."""
    if not value.ByteSize():
        return None
    moment = _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micros else "%Y-%m-%dT%H:%M:%SZ").rjust(27 if micros else 20, "0")
