"""The slow path of the decoder: reads an object field by field, with Go's errors, and collects unknown fields.

structs.py is the fast path. This one handles nulls, unknown and duplicate fields, and values of wrong types.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec

from situate.wire.schema.table import Field, Message, Type, message
from situate.wire.schema.values import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    MAX_SHOWN,
    ValueRefusedError,
    base64_text,
    canonical_amount,
    canonical_quantity,
    check_free,
    micro_time_text,
    time_text,
)

MAX_PROBLEMS: Final = 100
"""The number of problems to report, so that a bad body does not get an answer as long as itself."""

_RANGES: Final = {"int32": (INT32_MIN, INT32_MAX), "int64": (INT64_MIN, INT64_MAX)}
_MAX_DIGITS: Final = 20
_QUANTITIES: Final = {"Quantity": canonical_quantity, "Amount": canonical_amount}
_TIMES: Final = {"Time": time_text, "MicroTime": micro_time_text}


class Number(str):
    """A number as it is written in a body."""

    __slots__ = ()


class Pairs(dict[str, Any]):
    """An object in a body. `pairs` keeps duplicate names."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


class Walk(msgspec.Struct):
    """The findings of one walk."""

    problems: list[str] = msgspec.field(default_factory=list)
    refused: ValueRefusedError | None = None
    """The first value of a wrong type. The walk goes on, because Go reports text that it cannot parse first."""

    def note(self, what: str, path: str) -> None:
        text = f'{what} field "{_shortened(path)}"'
        if len(self.problems) < MAX_PROBLEMS and text not in self.problems:
            self.problems.append(text)

    def refuse(self, why: ValueRefusedError) -> None:
        self.refused = self.refused or why


class _Place(msgspec.Struct, frozen=True):
    """The place of a value: its struct and the fields from the root, as in Go's errors, and the path with indices."""

    struct: str
    fields: tuple[str, ...]
    path: str

    def refusal(self, value: str, go: str, converting: str = "") -> ValueRefusedError:
        if not self.fields:
            return ValueRefusedError(f"json: cannot unmarshal {value} into Go value of type {go}", converting)
        where = f"{self.struct}.{'.'.join(self.fields)}"
        text = f"json: cannot unmarshal {value} into Go struct field {where} of type {go}"
        return ValueRefusedError(text, converting)

    def wrong(self, value: Any, kind: Type) -> ValueRefusedError:
        """Refuses a value of another type."""
        return self.refusal(_called(value), kind.go, _unconverted(value, kind))


@cache
def _by_name(name: str) -> dict[str, tuple[Field, tuple[str, ...]]]:
    """A message's fields in JSON, each with the messages that inline it."""
    return {one.name: (one, through) for one, through in _reached(message(name), ())}


def _reached(one: Message, through: tuple[str, ...]) -> Iterator[tuple[Field, tuple[str, ...]]]:
    for each in one.fields:
        if each.inline:
            yield from _reached(message(each.type.name), (*through, each.name.rpartition(".")[2]))
        elif one.is_kind and each.name in ("kind", "apiVersion"):
            yield each, (*through, "TypeMeta")
        else:
            yield each, through


def walked(one: Message, value: Any, walk: Walk) -> dict[str, Any]:
    """The object that Go would write after reading the value. Raises ValueRefusedError, in Go's words."""
    kind = Type("message", one.name, f"{one.name.split('.')[-2]}.{one.go}")
    found = _message(kind, value, _Place("", (), ""), walk)
    if walk.refused is not None:
        raise walk.refused
    return found or {}


def _value(kind: Type, value: Any, place: _Place, walk: Walk) -> Any:
    if kind.form == "message":
        return _message(kind, value, place, walk)
    if kind.form == "special":
        return _special(kind, value, place)
    if kind.form == "scalar":
        return _scalar(kind, value, place, walk)
    if kind.form == "either":
        return _either(kind, value, place, walk)
    return _list(kind, value, place, walk) if kind.form == "list" else _map(kind, value, place, walk)


def _message(kind: Type, value: Any, place: _Place, walk: Walk) -> dict[str, Any] | None:
    if value is None:
        value = {}
    if not isinstance(value, dict):
        walk.refuse(place.wrong(value, kind))
        return None
    known = _by_name(kind.name)
    struct = kind.name.rpartition(".")[2]
    found: dict[str, Any] = {}
    for name, inner in _pairs(value):
        path = f"{place.path}.{name}" if place.path else name
        if name not in known:
            walk.note("unknown", path)
            continue
        if name in found:
            walk.note("duplicate", path)
        one, through = known[name]
        found[name] = _value(one.type, inner, _Place(struct, (*place.fields, *through, name), path), walk)
        if inner is None and (one.pointer or one.type.form != "message"):
            found[name] = None
    written = ((name, _written(one, found.get(name))) for name, (one, _) in known.items())
    return {name: inner for name, inner in written if inner is not None}


def _written(one: Field, value: Any) -> Any:
    """A field's value as Go writes it, or None if Go omits the field."""
    kind = one.type
    if one.pointer or kind.name in ("Time", "MicroTime", "Raw", "Free"):
        return value
    if one.always and value is None:
        return _zero(kind)
    return value or None if not one.always or kind.form in ("list", "map") else value


def _zero(kind: Type) -> Any:
    """The zero value. None for a list or a map."""
    if kind.form == "message":
        return msgspec.json.decode(_empty(kind))
    if kind.form == "special":
        return {"Quantity": "0", "Amount": "0", "IntOrString": 0}.get(kind.name)
    return {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0, "bytes": ""}.get(kind.name)


@cache
def _empty(kind: Type) -> bytes:
    """An encoded empty message. Decoding it is the fastest way to make another one."""
    return msgspec.json.encode(_message(kind, {}, _Place("", (), ""), Walk()))


def _list(kind: Type, value: Any, place: _Place, walk: Walk) -> list[Any] | None:
    if value is None or kind.of is None:
        return None
    if not isinstance(value, list | tuple):
        walk.refuse(place.wrong(value, kind))
        return None
    found = []
    for index, inner in enumerate(value):
        there = _Place(place.struct, place.fields, f"{place.path}[{index}]")
        found.append(_zero(kind.of) if inner is None else _value(kind.of, inner, there, walk))
    return found


def _map(kind: Type, value: Any, place: _Place, walk: Walk) -> dict[str, Any] | None:
    if value is None or kind.of is None:
        return None
    if not isinstance(value, dict):
        walk.refuse(place.wrong(value, kind))
        return None
    found: dict[str, Any] = {}
    for name, inner in _pairs(value):
        there = _Place(place.struct, place.fields, f"{place.path}.{name}")
        if name in found:
            walk.note("duplicate", there.path)
        found[name] = _zero(kind.of) if inner is None else _value(kind.of, inner, there, walk)
    return found


def _either(kind: Type, value: Any, place: _Place, walk: Walk) -> Any:
    wanted = "bool" if isinstance(value, bool) else "message" if isinstance(value, dict) else "list"
    for one in kind.options:
        if wanted == ("bool" if one.name == "bool" else one.form) and (wanted != "list" or isinstance(value, list)):
            return _value(one, value, place, walk)
    if value is not None and any(one.name == "bool" for one in kind.options):
        walk.refuse(ValueRefusedError("boolean or JSON schema expected"))
    return None


def _pairs(value: dict[str, Any]) -> Any:
    return value.pairs if isinstance(value, Pairs) else value.items()


def _scalar(kind: Type, value: Any, place: _Place, walk: Walk) -> Any:
    if value is None:
        return None
    try:
        if kind.name in _RANGES:
            return _integer(kind.name, kind.go, value, place, _unconverted(value, kind))
        if kind.name == "double":
            return _double(value, kind, place)
        if isinstance(value, bool) if kind.name == "bool" else isinstance(value, str) and not isinstance(value, Number):
            return base64_text(value) if kind.name == "bytes" else value
        raise place.wrong(value, kind)
    except ValueRefusedError as refused:
        walk.refuse(refused)
        return None


def _integer(name: str, go: str, value: Any, place: _Place, converting: str = "") -> int:
    low, high = _RANGES[name]
    text = value if isinstance(value, Number) else repr(value)
    if isinstance(value, bool) or not isinstance(value, Number | int | float):
        raise place.refusal(_called(value), go, converting)
    if isinstance(value, float) or not text.lstrip("-").isdigit() or len(text) > _MAX_DIGITS:
        raise place.refusal(f"number {_shortened(text)}", go, converting)
    number = int(text)
    if not low <= number <= high:
        raise place.refusal(f"number {text}", go)
    return number


def _double(value: Any, kind: Type, place: _Place) -> int | float:
    if isinstance(value, bool) or not isinstance(value, Number | int | float):
        raise place.wrong(value, kind)
    number: int | float = plain_value(value) if isinstance(value, Number) else value
    return number


def _special(kind: Type, value: Any, place: _Place) -> Any:
    if kind.name in ("Raw", "Free"):
        check_free(value)
        return plain_value(value)
    if value is None:
        return None
    if kind.name in _QUANTITIES:
        return _QUANTITIES[kind.name](str(value) if isinstance(value, str) else value)
    if kind.name in _TIMES:
        if not isinstance(value, str) or isinstance(value, Number):
            raise place.refusal(_called(value), "string")
        return _TIMES[kind.name](value)
    if isinstance(value, str) and not isinstance(value, Number):
        return value
    return _integer("int32", "int32", value, place)


def _called(value: Any) -> str:
    """What Go calls the type of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Number | int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"


def _unconverted(value: Any, kind: Type) -> str:
    """What Kubernetes' converter says of a value of another type. Go converts numbers, an integer even to text, which
    the converter then refuses by the type's name."""
    given = _converted_as(value)
    if kind.form == "message":
        return f"cannot restore struct from: {given}"
    if kind.form in ("list", "map"):
        return f"cannot restore {'slice' if kind.form == 'list' else 'map'} from {given}"
    integer = kind.name in _RANGES
    if (given == "int64" and kind.name == "string") or (given == "float64" and integer):
        return f"cannot convert {given} to {kind.go}"
    return f"unrecognized type: {kind.name if integer or kind.name in ('bool', 'string') else 'float64'}"


def _converted_as(value: Any) -> str:
    """Go's kind of a JSON value in a tree."""
    if isinstance(value, Number | int | float) and not isinstance(value, bool):
        return "int64" if str(value).lstrip("-").isdigit() else "float64"
    return {"object": "map", "array": "slice"}.get(_called(value), _called(value))


def plain_value(value: Any) -> Any:
    """A value of a body as plain Python objects. Its depth was checked."""
    if isinstance(value, dict):
        return {name: plain_value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(inner) for inner in value]
    if not isinstance(value, Number):
        return value
    whole = value.lstrip("-").isdigit() and len(value) <= _MAX_DIGITS
    number = int(value) if whole else float(value[:MAX_SHOWN])
    check_free(number)
    return number
