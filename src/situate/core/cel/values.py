"""Runtime values: Python's own where they fit, and the classes below.

bool, int (64 bit), str, bytes, float, None and list are themselves; a map is a MapValue. A list or map that an
expression can reach is never changed.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from situate.core.cel.errors import ErrorValue
from situate.core.cel.types import CelType

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)
UINT64_MAX: Final = 2**64 - 1


class UInt(int):
    """An unsigned integer; `type(value) is UInt` tells it from an integer."""

    __slots__ = ()


class DurationValue:
    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos


class TimestampValue:
    """A point in time, with the offset from UTC that it was written with."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset


class TypeValue:
    """What `type(x)` and the name of a type are worth."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class OptionalValue:
    __slots__ = ("value",)

    def __init__(self, value: "Value") -> None:
        self.value = value

    @property
    def has_value(self) -> bool:
        return self is not NONE


class MapValue:
    """A map. Keys 1, 1u and 1.0 are three keys; a lookup finds any of them by any."""

    __slots__ = ("entries",)

    def __init__(self, entries: "dict[tuple[str, object], tuple[Value, Value]]") -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries)

    def find(self, key: "Value") -> "Value | _Missing":
        kind = type(key)
        if kind is str:
            found = self.entries.get(("string", key))
            return MISSING if found is None else found[1]
        for candidate in lookup_keys(key):
            if (found := self.entries.get(candidate)) is not None:
                return found[1]
        return MISSING

    def contains(self, key: "Value") -> bool:
        return self.find(key) is not MISSING

    def keys(self) -> "Iterator[Value]":
        return (key for key, _ in self.entries.values())

    def items(self) -> "Iterator[tuple[Value, Value]]":
        return iter(self.entries.values())


class StringMap(MapValue):
    """A map of names given by the caller; with a default, a name that is missing is worth that."""

    __slots__ = ("default", "names")

    def __init__(self, names: "Mapping[str, Value]", default: "Value | _Missing" = None) -> None:
        self.names = names
        self.default = MISSING if default is None else default

    @property
    def entries(self) -> "dict[tuple[str, object], tuple[Value, Value]]":  # type: ignore[override]
        return {("string", name): (name, value) for name, value in self.names.items()}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, key: "Value") -> "Value | _Missing":
        if type(key) is str and key in self.names:
            return self.names[key]
        return self.default

    def contains(self, key: "Value") -> bool:
        return type(key) is str and key in self.names

    def keys(self) -> "Iterator[Value]":
        return iter(self.names)

    def items(self) -> "Iterator[tuple[Value, Value]]":
        return iter(self.names.items())


class MutableList(list[Any]):
    """What a loop collects into: adding to it changes it."""

    __slots__ = ()


class MutableMap(MapValue):
    """What a loop inserts into."""

    __slots__ = ()


class _Missing:
    __slots__ = ()


MISSING: Final = _Missing()


class ExtensionValue:
    """A value of a library's own type: a quantity, a version, an address. `type_name` is its name in CEL."""

    __slots__ = ()
    type_name: str = ""

    def equal(self, other: "Value") -> "Value":
        raise NotImplementedError


Value = (
    bool | int | UInt | float | str | bytes | None | list["Value"] | MapValue | DurationValue | TimestampValue
    | TypeValue | OptionalValue | ExtensionValue | ErrorValue
)  # fmt: skip

NONE: Final = OptionalValue(None)
EMPTY_MAP: Final = MapValue({})

_NAMES: dict[type, str] = {
    bool: "bool", int: "int", UInt: "uint", float: "double", str: "string", bytes: "bytes", type(None): "null_type",
    list: "list", MapValue: "map", StringMap: "map", MutableList: "list", MutableMap: "map",
    DurationValue: "google.protobuf.Duration",
    TimestampValue: "google.protobuf.Timestamp", TypeValue: "type", OptionalValue: "optional_type", ErrorValue: "error",
}  # fmt: skip


def type_name(value: "Value") -> str:
    name = _NAMES.get(type(value))
    return name if name is not None else value.type_name  # type: ignore[union-attr]


def map_key(key: "Value") -> tuple[str, object]:
    """The key under which a map keeps an entry."""
    kind = type(key)
    if kind is str:
        return "string", key
    if kind in (DurationValue, TimestampValue):
        return type_name(key), key.nanos  # type: ignore[union-attr]
    if kind in (bool, int, UInt, float, bytes, type(None)):
        return type_name(key), key
    return type_name(key), key if isinstance(key, ExtensionValue) else object()  # nothing else is equal to it


def lookup_keys(key: "Value") -> list[tuple[str, object]]:
    """Under which keys a lookup looks, in order: numbers also as the other kinds of number."""
    kind = type(key)
    found = [map_key(key)]
    if kind is float and key == key and abs(key) < 2.0**64 and key == int(key):  # type: ignore[arg-type]
        number = int(key)
        if INT64_MIN <= number <= INT64_MAX:
            found.append(("int", number))
        if 0 <= number <= UINT64_MAX:
            found.append(("uint", number))
    elif kind is int and key >= 0:  # type: ignore[operator]
        found.append(("uint", key))
    elif kind is UInt and key <= INT64_MAX:  # type: ignore[operator]
        found.append(("int", key))
    return found


def make_map(pairs: "list[tuple[Value, Value]]") -> MapValue:
    return MapValue({map_key(key): (key, value) for key, value in pairs})


def value_accepts(declared: CelType, value: "Value") -> bool:
    """Whether a value fits a declared type, looking at the first element of a list or map only."""
    kind = declared.kind
    if declared.nullable and value is None:
        return True
    if kind in ("dyn", "any", "param"):
        return True
    if declared.name != type_name(value):
        return False
    if kind == "list" and value:
        return value_accepts(declared.parameters[0], value[0])  # type: ignore[index]
    if kind == "map" and value:
        key, element = next(value.items())  # type: ignore[union-attr]
        return value_accepts(declared.parameters[0], key) and value_accepts(declared.parameters[1], element)
    return True
