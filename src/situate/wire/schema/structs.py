"""msgspec structs built from the table: they check types in C, refuse unknown fields, and omit what Go omits.

Kubernetes may accept what they refuse, such as nulls: walking.py decides, and writes the error.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final

import msgspec

from situate.wire.schema.table import Field, Message, Type, flat_fields, is_recursive, message
from situate.wire.schema.values import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    base64_text,
    canonical_amount,
    canonical_quantity,
    check_free,
    micro_time_text,
    time_text,
)


class _Quantity(str):
    __slots__ = ()


class _Amount(str):
    __slots__ = ()


class _Time(str):
    __slots__ = ()


class _MicroTime(str):
    __slots__ = ()


class _Base64(str):
    __slots__ = ()


class _Late:
    """A value that is decoded in a second step, because its type contains itself, or is one of several."""

    __slots__ = ("value",)
    kind: Type

    def __init__(self, value: Any) -> None:
        self.value = value


class _Free:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]

_NO_BYTES: Final = _Base64("")
"""One object, because msgspec compares with the value of an absent field by identity."""

# The type, and the value of an absent field.
_SCALARS: Final[dict[str, tuple[Any, Any]]] = {
    "string": (str, ""),
    "bool": (bool, False),
    "int32": (Int32, 0),
    "int64": (Int64, 0),
    "double": (int | float, 0),
    "bytes": (_Base64, _NO_BYTES),
}
_SPECIAL: Final[dict[str, tuple[Any, Any]]] = {
    "Quantity": (_Quantity, None),
    "Amount": (_Amount, None),
    "IntOrString": (Int32 | str, 0),
    "Time": (_Time, None),
    "MicroTime": (_MicroTime, None),
    "Raw": (_Free, None),
    "Free": (_Free, None),
}
_READ: Final[dict[Any, Callable[[Any], str | None]]] = {
    _Quantity: canonical_quantity,
    _Amount: canonical_amount,
    _Time: time_text,
    _MicroTime: micro_time_text,
    _Base64: base64_text,
}


def _read(kind: Any, value: Any) -> Any:
    if kind is _Free:
        check_free(value)
        return _Free(value)
    if issubclass(kind, _Late):
        return kind(msgspec.convert(value, _annotation_of_late(kind.kind, value), dec_hook=_read))
    if type(value) is int and kind in (_Quantity, _Amount):
        value = str(value)
    # Each of these reads text. walking.py handles anything else.
    if type(value) is not str:
        raise TypeError
    read = _READ[kind](value)
    if read is None:
        raise ValueError
    return kind(read) if read or kind is not _Base64 else _NO_BYTES


def _annotation_of_late(kind: Type, value: Any) -> Any:
    """The annotation that fits the value."""
    if kind.form == "message":
        return struct_of(kind.name)
    wanted = _FORMS.get(type(value))
    for one in kind.options:
        if wanted == ("bool" if one.name == "bool" else one.form):
            return _annotation(one)[0]
    raise TypeError


_FORMS: Final[dict[type, str]] = {dict: "message", list: "list", bool: "bool"}


@cache
def _late(kind: Type) -> type[_Late]:
    return type(f"_Late_{kind.name.replace('.', '_')}", (_Late,), {"kind": kind, "__slots__": ()})


def _shown(value: Any) -> Any:
    if isinstance(value, _Late):
        return (
            builtin(value.value)
            if isinstance(value.value, msgspec.Struct)
            else msgspec.to_builtins(value.value, enc_hook=_shown)
        )
    return value.value if type(value) is _Free else str(value)


def _zero_text() -> str:
    return "0"


@cache
def struct_of(name: str) -> type[msgspec.Struct]:
    """The struct of a message, by its name."""
    return msgspec.defstruct(
        name.replace(".", "_"),
        _fields(message(name)),
        omit_defaults=True,
        forbid_unknown_fields=True,
        gc=False,
    )


def _fields(one: Message) -> list[tuple[str, Any, Any]]:
    # With a prefix, because JSON names may be Python keywords, as `from`.
    return [
        (f"f_{field.name}", *_annotated(field)[:1], msgspec.field(name=field.name, **_annotated(field)[1]))
        for field in flat_fields(one)
    ]


def _annotated(field: Field) -> tuple[Any, dict[str, Any]]:
    """A field's type and default. msgspec always writes a field whose factory makes neither a list nor a map."""
    kind = field.type
    annotation, zero = _annotation(kind)
    if kind.form in ("list", "map"):
        return annotation, {"default_factory": list if kind.form == "list" else dict}
    if field.always and kind.form == "message" and not field.pointer:
        return annotation, {"default_factory": annotation}
    if field.always and kind.name in ("Quantity", "Amount"):
        return annotation, {"default_factory": _zero_text}
    if field.pointer or zero is None:
        return annotation | None, {"default": None}
    if field.always:
        return annotation, {"default_factory": type(zero)}
    return annotation, {"default": zero}


@cache
def _annotation(kind: Type) -> tuple[Any, Any]:
    if kind.form == "list" and kind.of:
        return list[_annotation(kind.of)[0]], None  # type: ignore[misc]
    if kind.form == "map" and kind.of:
        return dict[str, _annotation(kind.of)[0]], None  # type: ignore[misc]
    if kind.form == "either" or (kind.form == "message" and is_recursive(kind.name)):
        return _late(kind), None
    if kind.form == "message":
        return struct_of(kind.name), None
    return (_SCALARS if kind.form == "scalar" else _SPECIAL)[kind.name]


@cache
def decoder_of(name: str) -> msgspec.json.Decoder[Any]:
    """The JSON decoder of a message, by its name."""
    return msgspec.json.Decoder(struct_of(name), dec_hook=_read)


def from_builtin(name: str, obj: Any) -> Any:
    """The struct of a message, from an object."""
    return msgspec.convert(obj, struct_of(name), dec_hook=_read)


def builtin(struct: Any) -> dict[str, Any]:
    """A new object with the fields in the table's order, without what Go omits."""
    found: dict[str, Any] = msgspec.to_builtins(struct, enc_hook=_shown)
    return found
