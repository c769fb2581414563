"""Shared by all walks over objects: the key of a list item, and how to descend into a value."""

from typing import Any, Final, Literal

from situate.wire.patching.errors import PatchError
from situate.wire.patching.fields import Path, Step, key_step, path_text, value_step
from situate.wire.patching.schema import MergeSchema

Way = Literal["leaf", "object", "list"]
"""A leaf is one value, whatever it contains."""


class _Missing:
    """No value, which is not null."""


MISSING: Final = _Missing()


def step_of(item: Any, shape: MergeSchema, path: Path = ()) -> Step:
    """The key of a list item. Raises PatchError if it has none."""
    if shape.form == "set":
        if item is None or isinstance(item, dict | list):
            raise PatchError(f"{path_text(path)}: a list of scalars has an item that is none")
        return value_step(item)
    if not isinstance(item, dict):
        raise PatchError(f"{path_text(path)}: associative list with keys may not have non-map elements")
    keys = {
        key.name: item[key.name] if item.get(key.name) is not None else key.default
        for key in shape.keys
        if not key.optional or item.get(key.name) is not None
    }
    return key_step(keys)


def by_step(items: list[Any], shape: MergeSchema, path: Path = ()) -> dict[Step, list[Any]]:
    found: dict[Step, list[Any]] = {}
    for item in items:
        found.setdefault(step_of(item, shape, path), []).append(item)
    return found


def way_of(value: Any, shape: MergeSchema) -> Way:
    if isinstance(value, dict) and shape.form == "open":
        return "object"
    return "list" if isinstance(value, list) and shape.form in ("keyed", "set") else "leaf"


def common_way(left: Any, right: Any, shape: MergeSchema) -> Way:
    """Null and missing take the type of the other value; two empty ones are a leaf."""
    if left is MISSING or left is None:
        way = way_of(right, shape)
    elif right is MISSING or right is None:
        way = way_of(left, shape)
    else:
        way = way_of(left, shape)
        way = way if way == way_of(right, shape) else "leaf"
    return "leaf" if not _has_items(left) and not _has_items(right) else way


def _has_items(value: Any) -> bool:
    return value is not MISSING and bool(value)


def or_empty(value: Any, empty: Any) -> Any:
    return empty if value is MISSING or value is None else value
