"""Lists of x-kubernetes-list-type `set` and `map` have no two items of one value or key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from situate.core.model.field_errors import extended
from situate.wire.structural.schema import Structural, levels


class ListError(NamedTuple):
    path: str
    value: Any
    text: str = ""
    """Empty: the value is a duplicate."""


def has_list_types(schema: Structural) -> bool:
    return any(one.list_type in ("set", "map") for one in levels(schema))


def list_errors(value: Any, schema: Structural | None, path: str = "") -> Iterator[ListError]:
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.additional is not None:
            for name, inner in value.items():
                yield from list_errors(inner, schema.additional, extended(path, f"[{name}]"))
        for name, inner in value.items():
            if (known := schema.properties.get(name)) is not None:
                yield from list_errors(inner, known, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        if schema.list_type == "set":
            yield from _duplicates(value, path)
        elif schema.list_type == "map":
            yield from _same_keys(value, schema, path)
        for index, item in enumerate(value):
            yield from list_errors(item, schema.items, f"{path}[{index}]")


def _duplicates(items: Sequence[Any], path: str) -> Iterator[ListError]:
    """The first repetition of each value."""
    seen: dict[bytes, int] = {}
    for index, item in enumerate(items):
        key = msgspec.json.encode(item, order="sorted")
        seen[key] = times = seen.get(key, 0) + 1
        if times == 2:
            yield ListError(f"{path}[{index}]", item)


def _same_keys(items: Sequence[Any], schema: Structural, path: str) -> Iterator[ListError]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            yield ListError(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    keys = [{name: item[name] for name in schema.map_keys if name in item} if item else {} for item in items]
    yield from _duplicates(keys, path)
