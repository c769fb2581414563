"""Static types, as the checker sees them, with the names that error messages use."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "any", "bool", "bytes", "double", "duration", "dyn", "error", "int", "list", "map", "null", "opaque", "string",
    "struct", "timestamp", "type", "param", "uint",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class CelType:
    kind: Kind
    name: str
    parameters: "tuple[CelType, ...]" = ()
    nullable: bool = False  # a wrapper: the value or null

    @property
    def is_dynamic(self) -> bool:
        return self.kind in ("dyn", "any")

    @property
    def declared_name(self) -> str:
        return f"wrapper({self.name})" if self.nullable else self.name

    def __str__(self) -> str:
        """As the API server prints a result's type."""
        if self.kind == "param":
            return f"<{self.name}>"
        if not self.parameters:
            return self.declared_name
        return f"{self.declared_name}({', '.join(map(str, self.parameters))})"


ANY = CelType("any", "google.protobuf.Any")
BOOL = CelType("bool", "bool")
BYTES = CelType("bytes", "bytes")
DOUBLE = CelType("double", "double")
DURATION = CelType("duration", "google.protobuf.Duration")
DYN = CelType("dyn", "dyn")
ERROR = CelType("error", "error")
INT = CelType("int", "int")
NULL = CelType("null", "null_type")
STRING = CelType("string", "string")
TIMESTAMP = CelType("timestamp", "google.protobuf.Timestamp")
TYPE = CelType("type", "type")
UINT = CelType("uint", "uint")

_SHORT_NAMES = {"any": "any", "duration": "duration", "error": "!error!", "null": "null", "timestamp": "timestamp"}


def list_of(element: CelType) -> CelType:
    return CelType("list", "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType("map", "map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType("opaque", "optional_type", (value,))


def nullable(value: CelType) -> CelType:
    """A wrapper: a value of the type, or null."""
    return CelType(value.kind, value.name, value.parameters, True)


def opaque(name: str) -> CelType:
    return CelType("opaque", name)


def struct(name: str) -> CelType:
    return CelType("struct", name)


def type_of(value: CelType) -> CelType:
    return CelType("type", "type", (value,))


def param(name: str) -> CelType:
    return CelType("param", name)


def format_type(value: CelType) -> str:
    """As the checker's messages print a type; also the key of a type parameter's substitution."""
    if (short := _SHORT_NAMES.get(value.kind)) is not None:
        return short
    if value.kind == "param":
        return value.name
    if not value.parameters:
        return value.declared_name
    return f"{value.name}({', '.join(map(format_type, value.parameters))})"


def format_call(arguments: list[CelType], is_member: bool) -> str:
    shown = [format_type(argument) for argument in arguments]
    target = f"{shown.pop(0)}." if is_member else ""
    return f"{target}({', '.join(shown)})"


def unwrap_optional(value: CelType) -> tuple[CelType, bool]:
    if value.kind == "opaque" and value.name == "optional_type":
        return value.parameters[0], True
    return value, False


def is_exact(one: CelType, other: CelType) -> bool:
    """The same kind, name and parameters; a wrapper is like what it wraps."""
    return (
        one.kind == other.kind
        and one.name == other.name
        and len(one.parameters) == len(other.parameters)
        and all(map(is_exact, one.parameters, other.parameters))
    )


def is_equivalent(one: CelType, other: CelType) -> bool:
    """Exact but for the names of type parameters."""
    return (
        one.kind == other.kind
        and (one.kind == "param" or one.name == other.name)
        and len(one.parameters) == len(other.parameters)
        and all(map(is_equivalent, one.parameters, other.parameters))
    )


def accepts(declared: CelType, given: CelType) -> bool:
    """Whether a value of the given type is one of the declared type, without type parameters."""
    if declared.nullable and given.kind == "null":
        return True
    if declared.kind in ("dyn", "any", "param"):
        return True
    return (
        declared.kind == given.kind
        and declared.name == given.name
        and len(declared.parameters) == len(given.parameters)
        and all(map(accepts, declared.parameters, given.parameters))
    )
