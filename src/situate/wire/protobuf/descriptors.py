"""Protobuf descriptors from the table, created for each kind on first use."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message as Parsed

from situate.wire.schema.table import Field, Type, inner_types, message

_Proto = descriptor_pb2.FieldDescriptorProto
PACKAGE: Final = "situate.wire"

_SCALARS: Final = {
    "string": _Proto.TYPE_STRING,
    "bool": _Proto.TYPE_BOOL,
    "int32": _Proto.TYPE_INT32,
    "int64": _Proto.TYPE_INT64,
    "double": _Proto.TYPE_DOUBLE,
    "bytes": _Proto.TYPE_BYTES,
}
# The fields of the messages with a JSON of their own; and of those that protobuf needs and JSON does not: the envelope,
# and a list as a map's value.
_MOMENT: Final = {"seconds": (1, "int64"), "nanos": (2, "int32")}
_OWN: Final = {
    "Quantity": {"string": (1, "string")},
    "Amount": {"string": (1, "string")},
    "IntOrString": {"type": (1, "int64"), "intVal": (2, "int32"), "strVal": (3, "string")},
    "Time": _MOMENT,
    "MicroTime": _MOMENT,
    "Raw": {"raw": (1, "bytes")},
    "Free": {"raw": (1, "bytes")},
}
ENVELOPE: Final = "Unknown"
LISTED: Final = "Listed"


@cache
def parser_of(name: str) -> type[Parsed]:
    """The class that parses a message, by the message's name or ENVELOPE."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package=PACKAGE, syntax="proto2")
    if name == ENVELOPE:
        _add_envelope(file)
    else:
        for own, fields in _OWN.items():
            _add(file, own, fields)
        for reached in _reached(name):
            _add_message(file, reached)
        for kind in _eithers(name):
            _add_either(file, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{_flat(name)}"))


def _flat(name: str) -> str:
    return name.replace(".", "_")


def _reached(name: str) -> list[str]:
    """The message and all messages inside of it, each once."""
    found = [name]
    for one in found:  # grows as it goes
        found += [inner for inner in dict.fromkeys(_inside(one)) if inner not in found]
    return found


def _inside(name: str) -> Iterator[str]:
    for field in message(name).fields:
        for kind in inner_types(field.type):
            if kind.form == "message":
                yield kind.name


def _eithers(name: str) -> list[Type]:
    """The types inside of a message that are one of several."""
    found: dict[Type, None] = {}
    for reached in _reached(name):
        for field in message(reached).fields:
            kind = field.type
            while kind.of is not None:
                kind = kind.of
            if kind.form == "either":
                found[kind] = None
    return list(found)


def _add_either(file: descriptor_pb2.FileDescriptorProto, kind: Type) -> None:
    one = file.message_type.add(name=_either_name(kind))
    for number, option in enumerate(kind.options, 1):
        _add_field(one, one.name, Field(f"f{number}", number, option))


def _either_name(kind: Type) -> str:
    return f"Either_{kind.go.replace('.', '_')}"


def _add(file: descriptor_pb2.FileDescriptorProto, name: str, fields: dict[str, tuple[int, str]]) -> None:
    one = file.message_type.add(name=name)
    for field, (number, kind) in fields.items():
        one.field.add(name=field, number=number, type=_SCALARS[kind], label=_Proto.LABEL_OPTIONAL)


def _add_envelope(file: descriptor_pb2.FileDescriptorProto) -> None:
    _add(file, "TypeMeta", {"apiVersion": (1, "string"), "kind": (2, "string")})
    _add(file, ENVELOPE, {"raw": (2, "bytes"), "contentEncoding": (3, "string"), "contentType": (4, "string")})
    file.message_type[1].field.add(
        name="typeMeta",
        number=1,
        type=_Proto.TYPE_MESSAGE,
        type_name=f".{PACKAGE}.TypeMeta",
        label=_Proto.LABEL_OPTIONAL,
    )


def _add_message(file: descriptor_pb2.FileDescriptorProto, name: str) -> None:
    one = file.message_type.add(name=_flat(name))
    for field in message(name).fields:
        if field.number:
            _add_field(one, _flat(name), field)


def _add_field(one: descriptor_pb2.DescriptorProto, scope: str, field: Field) -> None:
    kind = field.type
    repeated = kind.form in ("list", "map")
    added = one.field.add(
        name=f"f{field.number}",
        number=field.number,
        label=_Proto.LABEL_REPEATED if repeated else _Proto.LABEL_OPTIONAL,
    )
    if kind.form == "map" and kind.of:
        # A map is a list of entries, each a key and a value.
        entry = one.nested_type.add(name=f"Entry{field.number}")
        entry.field.add(name="key", number=1, type=_Proto.TYPE_STRING, label=_Proto.LABEL_OPTIONAL)
        value = entry.field.add(name="value", number=2, label=_Proto.LABEL_OPTIONAL)
        added.type, added.type_name = _Proto.TYPE_MESSAGE, f".{PACKAGE}.{scope}.{entry.name}"
        if kind.of.form == "list" and kind.of.of:
            listed = one.nested_type.add(name=f"{LISTED}{field.number}")
            _set_type(listed.field.add(name="items", number=1, label=_Proto.LABEL_REPEATED), kind.of.of)
            value.type, value.type_name = _Proto.TYPE_MESSAGE, f".{PACKAGE}.{scope}.{listed.name}"
        else:
            _set_type(value, kind.of)
        return
    _set_type(added, kind.of if kind.form == "list" and kind.of else kind)


def _set_type(field: descriptor_pb2.FieldDescriptorProto, kind: Type) -> None:
    if kind.form == "scalar":
        field.type = _SCALARS[kind.name]
    elif kind.form == "either":
        field.type, field.type_name = _Proto.TYPE_MESSAGE, f".{PACKAGE}.{_either_name(kind)}"
    else:
        field.type, field.type_name = _Proto.TYPE_MESSAGE, f".{PACKAGE}.{_flat(kind.name)}"
