"""Objects with their merge schemas: the fields of an object, changes between two, and the merge of two.

Four walks over the same ground, as structured merge and diff defines them: `fields_of`, `compared`, `merged` and
`removed`. They take decoded JSON and return new values, which may share parts with the old ones; neither is to be
changed afterwards. Depth is limited by whoever decoded the JSON.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from situate.wire.patching.errors import PatchError
from situate.wire.patching.fields import EMPTY, LEAF, Fields, Path, Step, field_step, path_text
from situate.wire.patching.items import MISSING, by_step, common_way, or_empty, step_of, way_of
from situate.wire.patching.schema import MergeSchema


class FieldChanges(NamedTuple):
    """The difference between two objects."""

    removed: Fields
    modified: Fields
    added: Fields


NOTHING: Final = FieldChanges(EMPTY, EMPTY, EMPTY)


def fields_of(value: Any, shape: MergeSchema) -> Fields:
    """The fields that an apply of this object owns."""
    match way_of(value, shape):
        case "object":
            inside = {
                field_step(name): LEAF if inner is None or inner == {} else fields_of(inner, shape.field(name))
                for name, inner in value.items()
            }
            return Fields(False, {step: below for step, below in inside.items() if below})
        case "list":
            # Nobody owns the content of duplicate items.
            rows = by_step(value, shape).items()
            return Fields(
                False,
                {
                    step: Fields(True, fields_of(items[0], shape.item).inside) if len(items) == 1 else LEAF
                    for step, items in rows
                },
            )
    return LEAF


def compared(old: Any, new: Any, shape: MergeSchema) -> FieldChanges:
    """The changes from the old object to the new one."""
    if old is MISSING:
        return FieldChanges(EMPTY, EMPTY, _everything(new, shape))
    if new is MISSING:
        return FieldChanges(_everything(old, shape), EMPTY, EMPTY)
    if old == new:
        return NOTHING
    match common_way(old, new, shape):
        case "object":
            left, right = or_empty(old, {}), or_empty(new, {})
            return _collected(
                (field_step(name), compared(left.get(name, MISSING), right.get(name, MISSING), shape.field(name)))
                for name in dict.fromkeys((*left, *right))
            )
        case "list":
            before, after = by_step(or_empty(old, []), shape), by_step(or_empty(new, []), shape)
            return _collected(
                (step, _compared_items(before.get(step, ()), after.get(step, ()), shape.item))
                for step in dict.fromkeys((*before, *after))
            )
    return FieldChanges(EMPTY, LEAF, EMPTY)


def _collected(inner: Iterable[tuple[Step, FieldChanges]]) -> FieldChanges:
    gone: dict[Step, Fields] = {}
    other: dict[Step, Fields] = {}
    more: dict[Step, Fields] = {}
    for step, found in inner:
        for below, inside in zip(found, (gone, other, more), strict=True):
            if below:
                inside[step] = below
    return FieldChanges(Fields(False, gone), Fields(False, other), Fields(False, more))


def _compared_items(old: Sequence[Any], new: Sequence[Any], shape: MergeSchema) -> FieldChanges:
    """Items of one key: usually at most one; several in old objects that were never valid."""
    if len(old) <= 1 and len(new) <= 1:
        return compared(old[0] if old else MISSING, new[0] if new else MISSING, shape)
    if len(old) > 1 and len(new) > 1:
        return FieldChanges(EMPTY, LEAF if old != new else EMPTY, EMPTY)
    if len(old) > 1:
        return FieldChanges(LEAF, EMPTY, _everything(new[0], shape) if new else EMPTY)
    return FieldChanges(_everything(old[0], shape) if old else EMPTY, EMPTY, LEAF)


def _everything(value: Any, shape: MergeSchema) -> Fields:
    """A value that is added or removed as a whole, with its content."""
    if not value or isinstance(value, str | int | float):
        return LEAF
    match way_of(value, shape):
        case "object":
            inside = {field_step(name): _everything(inner, shape.field(name)) for name, inner in value.items()}
            return Fields(True, inside)
        case "list":
            rows = by_step(value, shape).items()
            return Fields(
                True, {step: _everything(items[0], shape.item) if len(items) == 1 else LEAF for step, items in rows}
            )
    return LEAF


def merged(live: Any, config: Any, shape: MergeSchema) -> Any:
    """Merge the configuration into the live object. PatchError if it has duplicate list items."""
    return _merge(live, config, shape, ())


def _merge(live: Any, config: Any, shape: MergeSchema, path: Path) -> Any:
    way = common_way(live, config, shape)
    if way == "leaf":
        return live if config is MISSING else config
    if way == "object":
        left, right = or_empty(live, {}), or_empty(config, {})
        return {
            name: _merge(
                left.get(name, MISSING), right.get(name, MISSING), shape.field(name), (*path, field_step(name))
            )
            for name in dict.fromkeys((*left, *right))
        }
    return _merge_lists(or_empty(live, []), or_empty(config, []), shape, path)


def _merge_lists(live: list[Any], config: list[Any], shape: MergeSchema, path: Path) -> list[Any]:
    ours, theirs = by_step(live, shape, path), by_step(config, shape, path)
    for step, items in theirs.items():
        if len(items) > 1:
            raise PatchError(f"{path_text(path)}: duplicate entries for key {path_text((step,))}")
    steps = [step_of(item, shape, path) for item in live]
    result = []
    for step, index in _interleaved(steps, list(theirs)):
        if step not in theirs:
            result.append(live[index])
            continue
        # A duplicate item of the live list is replaced, not merged.
        before = ours.get(step, ())
        mine = MISSING if len(before) != 1 else before[0]
        result.append(_merge(mine, theirs[step][0], shape.item, (*path, step)))
    return result


def _interleaved(live: list[Step], config: list[Step]) -> Iterator[tuple[Step, int]]:
    """The order of the merged list: the configuration's for its own items, the live ones in between where they were.

    Yields the index in the live list with those items that only that has.
    """
    wanted, present = dict.fromkeys(config), dict.fromkeys(live)
    shared = iter([step for step in config if step in present])
    upcoming = next(shared, None)
    done: dict[Step, None] = {}
    left = right = 0
    while left < len(live) or right < len(config):
        if left < len(live) and right < len(config):
            step = live[left]
            if step == config[right]:
                yield step, left
                done[step] = None
                left, right, upcoming = left + 1, right + 1, next(shared, None)
                continue
            if step in wanted and upcoming is not None and upcoming != step:
                left += 1  # its turn comes later, or has come
                continue
        if left < len(live):
            if live[left] not in wanted:
                yield live[left], left
                left += 1
                continue
            if live[left] in done:
                left += 1
        if right < len(config):
            step = config[right]
            yield step, -1
            done[step] = None
            right += 1
            if upcoming == step:
                upcoming = next(shared, None)


def removed(value: Any, fields: Fields, shape: MergeSchema) -> Any:
    """The object without these fields; None where nothing is left."""
    match way_of(value, shape):
        case "leaf":
            return None if isinstance(value, dict | list) else value
        case "object":
            kept = {
                name: removed(inner, below, shape.field(name)) if below else inner
                for name, inner in value.items()
                if not (below := fields.at(field_step(name))).here
            }
            return kept or None
        case "list":
            items = [
                removed(item, below, shape.item) if below else item
                for item in value
                if not (below := fields.at(step_of(item, shape))).here
            ]
            return items or None


def with_named(fields: Fields) -> Fields:
    """The set, and the fields of objects that it has something inside of. Items of lists are not fields."""
    inside = {}
    for step, below in fields.inside.items():
        full = with_named(below)
        inside[step] = Fields(True, full.inside) if step[0] == "f" and full.inside else full
    return Fields(fields.here, inside)


def collapsed(fields: Fields, shape: MergeSchema) -> Fields:
    """The set, with the value itself for what is inside a value that has one owner: sets may be older than schemas."""
    in_list = any(step[0] != "f" for step in fields.inside)
    if fields.inside and (shape.form == "atomic" or (in_list and shape.form == "open")):
        return LEAF
    inside = {
        step: collapsed(below, shape.field(step[2:]) if step[0] == "f" else shape.item)
        for step, below in fields.inside.items()
    }
    return Fields(fields.here, inside)


def size(value: Any) -> int:
    """How many values a value contains."""
    if isinstance(value, dict):
        return len(value) + sum(map(size, value.values()))
    return len(value) + sum(map(size, value)) if isinstance(value, list) else 0


def without_nulls(value: Any) -> Any:
    """The object without null fields."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def without_hollows(value: Any, shape: MergeSchema) -> Any:
    """The object as it is stored: without nulls, and without empty lists that nobody can own."""
    if isinstance(value, dict):
        return {
            name: without_hollows(inner, shape.field(name))
            for name, inner in value.items()
            if inner is not None and not (inner == [] and shape.field(name).form in ("keyed", "set"))
        }
    return [without_hollows(item, shape.item) for item in value] if isinstance(value, list) else value
