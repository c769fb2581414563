"""Structural: a schema of openAPIV3Schema, read once. What it says about values is in `source`, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

META_FIELDS: Final = ("apiVersion", "kind", "metadata")


class _Absent:
    """No default, which is not null."""


ABSENT: Final = _Absent()


class Structural(Struct, frozen=True, eq=False, gc=False):
    """One level of a schema."""

    source: Mapping[str, Any]
    type: str
    properties: Mapping[str, Structural]
    items: Structural | None
    additional: Structural | None
    """The schema of other properties; None: they have none."""
    has_additional: bool
    """Whether it speaks of other properties at all: `additionalProperties: true` has no schema."""
    default: Any
    default_size: tuple[int, int]
    """How many values the default has, at all depths, and its bytes as JSON."""
    nullable: bool
    preserves: bool
    """x-kubernetes-preserve-unknown-fields."""
    embedded: bool
    """x-kubernetes-embedded-resource."""
    int_or_string: bool
    list_type: str
    map_keys: tuple[str, ...]
    map_type: str

    def field(self, name: str) -> Structural | None:
        """The schema of a property, specified or additional."""
        return self.properties.get(name, self.additional)


def structural(source: Mapping[str, Any] | None) -> Structural:
    """Read a schema. None: one that says nothing, and so prunes everything."""
    raw = source or {}
    additional, items = raw.get("additionalProperties"), raw.get("items")
    default = raw.get("default", ABSENT)
    return Structural(
        source=raw,
        type=raw.get("type", ""),
        properties={name: structural(one) for name, one in raw.get("properties", {}).items()},
        items=structural(items) if isinstance(items, dict) else None,
        additional=structural(additional) if isinstance(additional, dict) else None,
        has_additional=additional is not None and additional is not False,
        default=default,
        default_size=(0, 0) if default is ABSENT else (values_in(default), len(msgspec.json.encode(default))),
        nullable=raw.get("nullable", False),
        preserves=raw.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=raw.get("x-kubernetes-embedded-resource", False),
        int_or_string=raw.get("x-kubernetes-int-or-string", False),
        list_type=raw.get("x-kubernetes-list-type", ""),
        map_keys=tuple(raw.get("x-kubernetes-list-map-keys", ())),
        map_type=raw.get("x-kubernetes-map-type", ""),
    )


def values_in(value: Any) -> int:
    """How many values there are, at all depths."""
    if isinstance(value, dict):
        return 1 + sum(map(values_in, value.values()))
    return 1 + sum(map(values_in, value)) if isinstance(value, list) else 1


def levels(one: Structural) -> Iterator[Structural]:
    """The schema and all schemas inside of it, but for those of `allOf` and its like."""
    yield one
    for inner in one.properties.values():
        yield from levels(inner)
    if one.items is not None:
        yield from levels(one.items)
    if one.additional is not None:
        yield from levels(one.additional)
