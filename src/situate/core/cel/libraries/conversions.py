"""Conversions between types, `size` and `type`."""

import re
from math import isinf, isnan
from typing import Any

from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.formatting import duration_text, go_float
from situate.core.cel.functions import Function, Library, Overload, member, overload
from situate.core.cel.libraries.arithmetic import (
    INT_OVERFLOW,
    LIST,
    MAP,
    MAX_SECONDS,
    MIN_SECONDS,
    SECOND,
    TIMESTAMP_OVERFLOW,
    UINT_OVERFLOW,
    checked_int,
    checked_uint,
)
from situate.core.cel.libraries.times import format_timestamp, parse_duration, parse_timestamp
from situate.core.cel.meter import traverse_first
from situate.core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    param,
    type_of,
)
from situate.core.cel.values import (
    DurationValue,
    ExtensionValue,
    MapValue,
    TimestampValue,
    TypeValue,
    UInt,
    Value,
    type_name,
)

A = param("A")

_DIGITS = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED = re.compile(r"[0-9]+", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(?:(?:inf|infinity|nan)|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?"
    r"|0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+)",
    re.ASCII | re.IGNORECASE,
)
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def _cannot(value: Value, target: str) -> ErrorValue:
    return ErrorValue(f"type conversion error from '{type_name(value)}' to '{target}'")


def _same(value: Any) -> Any:
    return value


def _string_to_int(text: str) -> Any:
    if _DIGITS.fullmatch(text) and len(text) < 400:
        number = checked_int(int(text))
        if not isinstance(number, ErrorValue):
            return number
    return _cannot(text, "int")


def _string_to_uint(text: str) -> Any:
    if _UNSIGNED.fullmatch(text) and len(text) < 400:
        number = checked_uint(int(text))
        if not isinstance(number, ErrorValue):
            return number
    return _cannot(text, "uint")


def string_to_double(text: str) -> Any:
    if not _FLOAT.fullmatch(text):
        return _cannot(text, "double")
    try:
        number = float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        return _cannot(text, "double")
    if isinf(number) and "inf" not in text.lower():
        return _cannot(text, "double")
    if isnan(number) and text[0] in "+-":
        return _cannot(text, "double")
    return number


def _string_to_bool(text: str) -> Any:
    if text in _TRUE:
        return True
    return False if text in _FALSE else _cannot(text, "bool")


def _double_to_int(number: float) -> Any:
    if isinf(number) or isnan(number) or number <= -(2.0**63) or number >= 2.0**63:
        return ErrorValue(INT_OVERFLOW)
    return int(number)


def _double_to_uint(number: float) -> Any:
    if isinf(number) or isnan(number) or number < 0 or number >= 2.0**64:
        return ErrorValue(UINT_OVERFLOW)
    return UInt(int(number))


def _int_to_timestamp(seconds: int) -> Any:
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        return ErrorValue(TIMESTAMP_OVERFLOW)
    return TimestampValue(seconds * SECOND)


def _string_to_duration(text: str) -> Any:
    nanos = parse_duration(text)
    return _cannot(text, "google.protobuf.Duration") if nanos is None else DurationValue(nanos)


def _string_to_timestamp(text: str) -> Any:
    time = parse_timestamp(text)
    if time is None:
        return _cannot(text, "google.protobuf.Timestamp")
    if not MIN_SECONDS <= time.nanos // SECOND <= MAX_SECONDS:
        return ErrorValue(TIMESTAMP_OVERFLOW)
    return time


def _bytes_to_string(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return ErrorValue("invalid UTF-8 in bytes, cannot convert to string")


def to_string(value: Any) -> Any:
    """Any value that has one, as its string conversion."""
    match value:
        case bool():
            return "true" if value else "false"
        case UInt() | int():
            return str(int(value))
        case float():
            return go_float(value)
        case str():
            return value
        case bytes():
            return _bytes_to_string(value)
        case DurationValue():
            return duration_text(value)
        case TimestampValue():
            return format_timestamp(value)
    return value.name if isinstance(value, TypeValue) else _cannot(value, "string")


def _is_sized(value: Value) -> bool:
    return isinstance(value, (str, bytes, list, MapValue)) and not isinstance(value, ExtensionValue)


def _type(value: Value) -> Any:
    return TypeValue(type_name(value))


def _sizes() -> tuple[Overload, ...]:
    kinds = (("bytes", BYTES), ("list", LIST), ("map", MAP), ("string", STRING))
    found: list[Overload] = []
    for name, kind in kinds:
        found += (overload(f"size_{name}", (kind,), INT), member(f"{name}_size", (kind,), INT))
    return tuple(found)


def _bool(value: Value) -> Any:
    return value if isinstance(value, bool) else no_such_overload()


LIBRARY = Library(
    (
        Function("size", _sizes(), code=len, takes=_is_sized),
        Function("type", (overload("type", (A,), type_of(A)),), code=_type),
        Function(
            "bool",
            (
                overload("bool_to_bool", (BOOL,), BOOL, _bool),
                overload("string_to_bool", (STRING,), BOOL, _string_to_bool),
            ),
        ),
        Function(
            "bytes",
            (
                overload("bytes_to_bytes", (BYTES,), BYTES, _same),
                overload("string_to_bytes", (STRING,), BYTES, lambda text: text.encode(), cost=traverse_first),
            ),
        ),
        Function(
            "double",
            (
                overload("double_to_double", (DOUBLE,), DOUBLE, _same),
                overload("int64_to_double", (INT,), DOUBLE, float),
                overload("string_to_double", (STRING,), DOUBLE, string_to_double),
                overload("uint64_to_double", (UINT,), DOUBLE, float),
            ),
        ),
        Function(
            "duration",
            (
                overload("duration_to_duration", (DURATION,), DURATION, _same),
                overload(
                    "int64_to_duration", (INT,), DURATION, lambda number: _cannot(number, "google.protobuf.Duration")
                ),
                overload("string_to_duration", (STRING,), DURATION, _string_to_duration),
            ),
        ),
        Function("dyn", (overload("to_dyn", (A,), DYN),), code=_same),
        Function(
            "int",
            (
                overload("int64_to_int64", (INT,), INT, _same),
                overload("double_to_int64", (DOUBLE,), INT, _double_to_int),
                overload("duration_to_int64", (DURATION,), INT, lambda value: value.nanos),
                overload("string_to_int64", (STRING,), INT, _string_to_int),
                overload("timestamp_to_int64", (TIMESTAMP,), INT, lambda time: time.nanos // SECOND),
                overload("uint64_to_int64", (UINT,), INT, lambda number: checked_int(int(number))),
            ),
        ),
        Function(
            "string",
            (
                overload("string_to_string", (STRING,), STRING, _same),
                overload("bool_to_string", (BOOL,), STRING, to_string),
                overload("bytes_to_string", (BYTES,), STRING, to_string, cost=traverse_first),
                overload("double_to_string", (DOUBLE,), STRING, to_string),
                overload("duration_to_string", (DURATION,), STRING, to_string),
                overload("int64_to_string", (INT,), STRING, to_string),
                overload("timestamp_to_string", (TIMESTAMP,), STRING, to_string),
                overload("uint64_to_string", (UINT,), STRING, to_string),
            ),
        ),
        Function(
            "timestamp",
            (
                overload("timestamp_to_timestamp", (TIMESTAMP,), TIMESTAMP, _same),
                overload("int64_to_timestamp", (INT,), TIMESTAMP, _int_to_timestamp),
                overload("string_to_timestamp", (STRING,), TIMESTAMP, _string_to_timestamp),
            ),
        ),
        Function(
            "uint",
            (
                overload("uint64_to_uint64", (UINT,), UINT, _same),
                overload("double_to_uint64", (DOUBLE,), UINT, _double_to_uint),
                overload("int64_to_uint64", (INT,), UINT, checked_uint),
                overload("string_to_uint64", (STRING,), UINT, _string_to_uint),
            ),
        ),
    )
)
