"""The merge schemas of objects: the key of each list, and which values are atomic.

Shapes come from the table of messages, wire/schema. A field without merge words has the shape OPEN: an object in it is
merged field by field, anything else is one value. Nothing here validates an object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, NamedTuple

import msgspec

from situate.wire.schema.table import Field, Message, flat_fields, kinds, message, message_of


class Key(NamedTuple):
    """A key field of list items."""

    name: str
    default: Any = ""
    optional: bool = False
    """An item without it differs from every item with it."""


@dataclass(frozen=True, slots=True)
class MergeSchema:
    """How a value is merged, and at which depth it is owned."""

    form: Literal["open", "atomic", "keyed", "set"] = "open"
    keys: tuple[Key, ...] = ()
    merge_key: str | None = None
    """A strategic merge patch merges lists by it; "" is for lists of scalars, and None for lists that it replaces."""
    replaced: bool = False
    """A strategic merge patch replaces the object."""
    type: str = ""
    """The type of the object, or of the list's items; "" if there is nothing to say about its fields, and "atomic" for
    items that have one owner each."""
    fields: "Mapping[str, MergeSchema] | None" = None
    """Of an object of a custom kind, in place of a type."""
    others: "MergeSchema | None" = None
    """The schema of fields that `fields` does not name."""
    items: "MergeSchema | None" = None
    """The schema of a custom kind's list items, in place of a type."""

    def field(self, name: str) -> "MergeSchema":
        """The schema of a field."""
        if self.fields is not None:
            return self.fields.get(name, self.others or OPEN)
        return _fields(self.type).get(name, OPEN) if self.type else OPEN

    @property
    def item(self) -> "MergeSchema":
        """The schema of the list's items."""
        return self.items or _item_of(self.type)


OPEN: Final = MergeSchema()
_METADATA: Final = "meta.v1.ObjectMeta"
METADATA: Final = MergeSchema(type=_METADATA)
_UNKNOWN: Final = "-"
"""The type of a kind that is not in the table: only its metadata is known."""
# Fields that a write of the status resets. A write of the object itself resets the status.
_RESETS: Final = {
    "Deployment": "spec metadata.labels",
    "Pod": "spec metadata.deletionTimestamp metadata.ownerReferences",
    **dict.fromkeys(("PodGroup", "ResourceClaim", "VolumeAttachment"), "spec metadata"),
}
_CUSTOM: Final = ("scheduling.x-k8s.io/v1alpha1", "situate.dev/v1alpha1")
"""Versions of custom resources: a write of the status resets the metadata, and an object begins with nothing."""


@cache
def _item_of(type_name: str) -> MergeSchema:
    return MergeSchema("atomic") if type_name == "atomic" else MergeSchema(type=type_name)


@cache
def _fields(type_name: str) -> dict[str, MergeSchema]:
    if type_name == _UNKNOWN:
        return {"metadata": METADATA}
    return {field.name: _shape(field) for field in flat_fields(message(type_name))}


def _shape(field: Field) -> MergeSchema:
    inner = field.type.of if field.type.form == "list" and field.type.of else field.type
    name = inner.name if inner.form == "message" else ""
    match field.merge.split():
        case ["set", *more]:
            return MergeSchema("set", merge_key="" if more == ["merged"] else None)
        case ["atomic", "merged", key]:
            return MergeSchema("atomic", merge_key=key)
        case ["atomic", *more]:
            return MergeSchema("atomic", replaced=more == ["replaced"])
        case ["by", keys, *more]:
            parsed = tuple(_parse_key(key) for key in keys.split(","))
            merge_key = None if "replaced" in more else parsed[0].name
            return MergeSchema("keyed", parsed, merge_key, type="atomic" if "atomic" in more else name)
    return MergeSchema(type=name) if field.type.form == "message" else OPEN


def _parse_key(text: str) -> Key:
    name, _, default = text.partition("=")
    return Key(name.removesuffix("?"), default, name.endswith("?"))


@cache
def merge_schema(api_version: str, kind: str) -> MergeSchema:
    """The schema of a kind. For a kind that is not in the table, it covers the metadata only."""
    one = message_of(api_version, kind)
    return MergeSchema(type=_UNKNOWN if one is None else one.name)


def is_served(api_version: str, kind: str) -> bool:
    """Whether the table has the kind in this version."""
    return message_of(api_version, kind) is not None


def blank(api_version: str, kind: str) -> dict[str, Any]:
    """An object of the kind that nobody has written to: Go has some fields even when they are empty, so that a manager
    that fills one in owns what is inside, and not the field itself."""
    found: dict[str, Any] = {} if api_version in _CUSTOM else msgspec.json.decode(_blank(api_version, kind))
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, **found}


@cache
def _blank(api_version: str, kind: str) -> bytes:
    one = message_of(api_version, kind)
    return msgspec.json.encode(_empty(one) if one is not None else {})


def _empty(one: Message) -> dict[str, Any]:
    """Every field that Go writes even if it is empty."""
    return {field.name: _zero(field) for field in flat_fields(one) if field.always}


def _zero(field: Field) -> Any:
    if field.pointer:
        return None
    if field.type.form == "message":
        return _empty(message(field.type.name))
    return {"string": "", "bool": False, "int32": 0, "int64": 0}.get(field.type.name)


@cache
def resets(kind: str, subresource: str) -> tuple[tuple[str, ...], ...]:
    """Paths that a request cannot write, and so cannot own."""
    versions = [version for version, name in kinds() if name == kind]
    if not any("status" in _fields(kinds()[version, kind]) for version in versions):
        return ()
    written = "spec metadata" if versions[0] in _CUSTOM else _RESETS.get(kind, "spec")
    paths = {"": "status", "status": written}.get(subresource, "")
    return tuple(tuple(path.split(".")) for path in paths.split())
