"""The shapes of objects: which lists are merged by which key, and which values have one owner as a whole.

Shapes come from the tables in facts.py. A field that is not in them has the shape OPEN: an object in it is merged field
by field, anything else is one value. Knows no types but list, object and scalar: whether an object is valid is for
others to say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, NamedTuple

import msgspec

from situate.wire.patching import facts

__all__ = ["OPEN", "Key", "Shape", "blank", "is_served", "resets", "shape_of"]


class Key(NamedTuple):
    """A field by which the items of a list are told apart."""

    name: str
    default: str = ""
    optional: bool = False
    """An item without it is another item than one with it, whatever its value."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a value is merged, and how finely it is owned."""

    form: Literal["open", "whole", "keyed", "set"] = "open"
    keys: tuple[Key, ...] = ()
    merge_key: str | None = None
    """A strategic merge patch merges lists by it; "" is for lists of scalars, and None for lists that it replaces."""
    replaced: bool = False
    """A strategic merge patch replaces the object."""
    type: str = ""
    """The type of the object, or of the list's items; "" if there is nothing to say about its fields, and "whole" for
    items that have one owner each."""

    def field(self, name: str) -> "Shape":
        """The shape of a field of an object of this shape."""
        return _TYPES[self.type].get(name, OPEN) if self.type else OPEN

    @property
    def item(self) -> "Shape":
        """The shape of the items of a list of this shape."""
        return _item_of(self.type)


OPEN: Final = Shape()
_LIKE_CUSTOM: Final = "PodGroup"  # as a custom resource with a status: what writes one cannot write the other


@cache
def _item_of(type_name: str) -> Shape:
    return Shape("whole") if type_name == "whole" else Shape(type=type_name)


def shape_of(api_version: str, kind: str) -> Shape:
    """The shape of a kind's objects. For a kind that is not in the tables, only the metadata's is known."""
    return _KINDS.get((api_version, kind), _UNKNOWN)


def is_served(api_version: str, kind: str) -> bool:
    """Whether a kind of the tables has this version."""
    return (api_version, kind) in _KINDS


def blank(api_version: str, kind: str) -> dict[str, Any]:
    """An object of the kind that nobody has written to."""
    found: dict[str, Any] = msgspec.json.decode(_BLANKS.get((api_version, kind), "{}"))
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, **found}


def resets(kind: str, subresource: str) -> tuple[tuple[str, ...], ...]:
    """Paths that a request cannot write, and so never owns."""
    if kind not in _KNOWN:
        kind = _LIKE_CUSTOM
    return _RESETS.get((kind, subresource), ())


def _parse_row(row: str) -> tuple[str, Shape]:
    """`ports by containerPort,protocol=TCP` and the like; the notation is explained where the table is."""
    field, *words = row.split()
    match words:
        case ["set", *more]:
            return field, Shape("set", merge_key="" if more == ["merged"] else None)
        case ["whole", "merged", key]:
            return field, Shape("whole", merge_key=key)
        case ["whole", *more]:
            return field, Shape("whole", replaced=more == ["replaced"])
        case ["by", keys, *more]:
            parsed = tuple(_parse_key(key) for key in keys.split(","))
            replaced = more[:1] == ["replaced"]
            inner = more[1:] if replaced else more
            return field, Shape("keyed", parsed, None if replaced else parsed[0].name, type="".join(inner))
        case [inner_type]:
            return field, Shape(type=inner_type)
    raise ValueError(f"not a row of the table: {row}")


def _parse_key(text: str) -> Key:
    name, _, default = text.partition("=")
    return Key(name.removesuffix("?"), default, name.endswith("?"))


def _parse_types() -> Iterator[tuple[str, dict[str, Shape]]]:
    for line in facts.TYPES.replace("\n    ", " ").split("\n"):
        name, _, rows = line.partition(": ")
        if rows:
            yield name, dict(_parse_row(row) for row in rows.split("; "))


def _parse_kinds() -> Iterator[tuple[tuple[str, str], str]]:
    for version, names in facts.KINDS.items():
        for name in names.split():
            kind, _, type_name = name.partition("=")
            yield (version, kind), type_name or kind


def _parse_blanks() -> Iterator[tuple[tuple[str, str], str]]:
    for line in facts.BLANKS.replace("\n    ", "").strip().split("\n"):
        version, kind, text = line.split(" ", 2)
        for name, template in facts.TEMPLATES.items():
            text = text.replace(name, template)
        yield (version, kind), text


def _parse_resets() -> Iterator[tuple[tuple[str, str], tuple[tuple[str, ...], ...]]]:
    for line in facts.RESETS.strip().split("\n"):
        kinds, _, both = line.partition(": ")
        for subresource, paths in zip(("", "status"), both.split(" | "), strict=True):
            for kind in kinds.split():
                yield (kind, subresource), tuple(tuple(path.split(".")) for path in paths.split())


_METADATA: Final = {"metadata": Shape(type="ObjectMeta")}
_UNKNOWN: Final = Shape(type="-")
_KINDS: Final = {kind: Shape(type=type_name) for kind, type_name in _parse_kinds()}
_TYPES: Final = dict(_parse_types())
_TYPES.update({shape.type: _METADATA | _TYPES.get(shape.type, {}) for shape in (*_KINDS.values(), _UNKNOWN)})
_BLANKS: Final = dict(_parse_blanks())
_RESETS: Final = dict(_parse_resets())
_KNOWN: Final = frozenset(kind for _, kind in _KINDS)
