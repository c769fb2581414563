"""An environment: the variables, types and functions that an expression may use. It is data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from situate.core.cel.functions import Function, Library
from situate.core.cel.macros import Macros
from situate.core.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    CelType,
    list_of,
    map_of,
    nullable,
    struct,
)
from situate.core.cel.values import MapValue, UInt, Value

_STANDARD_TYPES = (
    BOOL, BYTES, DOUBLE, DURATION, INT, list_of(DYN), map_of(DYN, DYN), NULL, STRING, TIMESTAMP, TYPE, UINT,
)  # fmt: skip


# Messages of protocol buffers that stand for types of CEL.
WELL_KNOWN = {
    "google.protobuf.Any": ANY,
    "google.protobuf.BoolValue": nullable(BOOL),
    "google.protobuf.BytesValue": nullable(BYTES),
    "google.protobuf.DoubleValue": nullable(DOUBLE),
    "google.protobuf.FloatValue": nullable(DOUBLE),
    "google.protobuf.Int32Value": nullable(INT),
    "google.protobuf.Int64Value": nullable(INT),
    "google.protobuf.UInt32Value": nullable(UINT),
    "google.protobuf.UInt64Value": nullable(UINT),
    "google.protobuf.StringValue": nullable(STRING),
    "google.protobuf.ListValue": list_of(DYN),
    "google.protobuf.Struct": map_of(STRING, DYN),
    "google.protobuf.Value": DYN,
    "google.protobuf.Empty": struct("google.protobuf.Empty"),
}

# Names that the checker takes for types, and that nothing defines.
UNDEFINED_TYPES = ("duration", "timestamp")
WRAPPERS: Mapping[str, bool | int | float | str | bytes] = {
    "google.protobuf.BoolValue": False,
    "google.protobuf.BytesValue": b"",
    "google.protobuf.DoubleValue": 0.0,
    "google.protobuf.FloatValue": 0.0,
    "google.protobuf.Int32Value": 0,
    "google.protobuf.Int64Value": 0,
    "google.protobuf.UInt32Value": UInt(0),
    "google.protobuf.UInt64Value": UInt(0),
    "google.protobuf.StringValue": "",
}


@dataclass(frozen=True, slots=True)
class Environment:
    variables: Mapping[str, CelType]
    functions: Mapping[str, Function]
    macros: Macros
    types: Mapping[str, CelType]  # by the name under which an expression may mention them
    fields: Mapping[str, Mapping[str, CelType]] = field(default_factory=dict)  # of each struct type
    make: Callable[[str, MapValue], Value] | None = None  # an object of a struct type; None: there are none to make


def make_environment(
    libraries: Sequence[Library],
    variables: Mapping[str, CelType],
    fields: Mapping[str, Mapping[str, CelType]],
) -> Environment:
    functions: dict[str, Function] = {}
    macros: Macros = {}
    types = {value.name: value for value in _STANDARD_TYPES}
    types.update(duration=DURATION, timestamp=TIMESTAMP)
    types.update(WELL_KNOWN)
    types.update({name: struct(name) for name in fields})
    for library in libraries:
        for function in library.functions:
            known = functions.get(function.name)
            functions[function.name] = function if known is None else known.merged(function)
        macros.update(library.macros)
        types.update({value.name: value for value in library.types})
    all_fields = {**{name: {"value": replace(WELL_KNOWN[name], nullable=False)} for name in WRAPPERS}, **fields}
    for name in (DURATION.name, TIMESTAMP.name):
        all_fields[name] = {"seconds": INT, "nanos": INT}
    return Environment(dict(variables), functions, macros, types, all_fields)
