"""Sets of fields, as managedFields writes them (FieldsV1).

A field is named by its path, and each step of a path by a text: `f:spec` is a field of an object, `k:{"name":"web"}` an
item of a list by its keys, `v:"a"` a scalar in a list. A set is a tree of steps. A path may be in the set without what
is inside it, and the other way round. Sets are values: nothing here changes one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any, Final

import msgspec

from situate.core.model.base import INT32_MAX
from situate.core.model.field_errors import extended
from situate.wire.patching.errors import PatchError

Step = str
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """A set of paths that start here."""

    here: bool = False
    """Whether this path itself is in the set."""
    inside: Mapping[Step, "Fields"] = field(default_factory=dict)
    """Has no empty sets."""

    def __bool__(self) -> bool:
        return self.here or bool(self.inside)

    def at(self, step: Step) -> "Fields":
        return self.inside.get(step, EMPTY)


EMPTY: Final = Fields()
LEAF: Final = Fields(here=True)

CACHED: Final = 8_192
"""Cached steps: every object of a kind has the same fields, names and ports."""
MAX_CACHED: Final = 200
"""Longer steps are not cached."""

# Go escapes these in JSON, even inside a step.
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def field_step(name: str) -> Step:
    return f"f:{name}"


def key_step(keys: Mapping[str, Any]) -> Step:
    if len(keys) == 1:
        [(name, value)] = keys.items()
        if isinstance(value, str) and len(value) <= MAX_CACHED:
            return _one_key_step(name, value)
    return _key_step(keys)


@lru_cache(CACHED)
def _one_key_step(name: str, value: str) -> Step:
    return _key_step({name: value})


def _key_step(keys: Mapping[str, Any]) -> Step:
    return "k:{" + ",".join(f"{_json(name)}:{_json(keys[name])}" for name in sorted(keys)) + "}"


def value_step(value: Any) -> Step:
    return "v:" + _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode().translate(_HTML)


def union(left: Fields, right: Fields) -> Fields:
    if not right.inside:
        return left if left.here or not right.here else Fields(True, left.inside)
    if not left.inside:
        return right if right.here or not left.here else Fields(True, right.inside)
    both = {step: union(mine, right.at(step)) for step, mine in left.inside.items()}
    return Fields(left.here or right.here, both | {s: f for s, f in right.inside.items() if s not in both})


def intersection(left: Fields, right: Fields) -> Fields:
    shared = {
        step: both
        for step, mine in left.inside.items()
        if step in right.inside and (both := intersection(mine, right.inside[step]))
    }
    return Fields(left.here and right.here, shared)


def difference(left: Fields, right: Fields) -> Fields:
    """The paths of the left set that are not in the right one."""
    if not right:
        return left
    rest = {step: own for step, mine in left.inside.items() if (own := difference(mine, right.at(step)))}
    return Fields(left.here and not right.here, rest)


def without(left: Fields, right: Fields) -> Fields:
    """The paths of the left set that are neither in the right one nor below one of its paths."""
    if right.here:
        return EMPTY
    if not right:
        return left
    rest = {step: own for step, mine in left.inside.items() if (own := without(mine, right.at(step)))}
    return Fields(left.here, rest)


def touches(tree: Mapping[str, Any], fields: Fields) -> bool:
    """Whether a set, as FieldsV1, may intersect another. False is certain."""
    for step, below in fields.inside.items():
        node = tree.get(step)
        if node is not None and (below.here or touches(node, below)):
            return True
    return False


def from_paths(all_paths: Iterable[Path]) -> Fields:
    tree: dict[str, Any] = {}
    for path in all_paths:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        node["."] = True
    tree.pop(".", None)  # nobody owns the object as a whole
    return _from_tree(tree)


def _from_tree(tree: dict[str, Any]) -> Fields:
    if len(tree) == 1 and "." in tree:
        return LEAF
    return Fields("." in tree, {step: _from_tree(inner) for step, inner in tree.items() if step != "."})


def paths(fields: Fields, start: Path = ()) -> Iterator[Path]:
    """All paths in Kubernetes' order: parents before children."""
    steps = sorted(fields.inside, key=_rank)
    for step in steps:
        if fields.inside[step].here:
            yield (*start, step)
    for step in steps:
        yield from paths(fields.inside[step], (*start, step))


def to_v1(fields: Fields) -> dict[str, Any]:
    """As FieldsV1."""
    return {step: _node_to_v1(fields.inside[step]) for step in sorted(fields.inside, key=_rank)}


def _node_to_v1(fields: Fields) -> dict[str, Any]:
    if not fields.inside:
        return {}
    inside = to_v1(fields)
    return {".": {}, **inside} if fields.here else inside


def from_v1(tree: Any) -> Fields:
    """Parse FieldsV1, without steps of unknown types. Raises PatchError."""
    return Fields(False, _node_from_v1(tree).inside)


def _node_from_v1(tree: Any) -> Fields:
    if not isinstance(tree, dict):
        raise PatchError("fieldsV1 must be an object of objects")
    inside = {}
    for text, inner in tree.items():
        step = _canonical(text) if text != "." else ""
        if step and (node := _node_from_v1(inner)):
            inside[step] = node
    return Fields("." in tree or not inside, inside)


def _canonical(text: str) -> Step:
    """The canonical spelling of a step; "" for one of an unknown type."""
    return text if text[:2] == "f:" else _respelled(text)


def _respelled(text: str) -> Step:
    if text[1:2] != ":":
        raise PatchError(f"missing colon: {text[:100]}")
    match text[0]:
        case "k":
            keys = _parsed(text)
            if not isinstance(keys, dict):
                raise PatchError(f"not the keys of an item: {text[:100]}")
            return key_step(keys)
        case "v":
            return value_step(_parsed(text))
        case "i":
            index = _parsed(text)
            if type(index) is not int or not 0 <= index <= INT32_MAX:
                raise PatchError(f"not the index of an item: {text[:100]}")
            return f"i:{index}"
    return ""


def _parsed(step: Step) -> Any:
    try:
        return msgspec.json.decode(step[2:])
    except (msgspec.DecodeError, RecursionError) as error:
        raise PatchError(f"not JSON: {step[:100]}") from error


def _rank(step: Step) -> tuple[Any, ...]:
    """Fields first, then items by keys, then scalars, each in their natural order."""
    if step[0] == "f":
        return (0, step)
    return _rank_in_list(step) if len(step) > MAX_CACHED else _cached_rank(step)


def _rank_in_list(step: Step) -> tuple[Any, ...]:
    match step[0]:
        case "k":
            return (1, tuple((name, *_scalar_rank(value)) for name, value in sorted(_parsed(step).items())))
        case "v":
            return (2, _scalar_rank(_parsed(step)))
    return (3, int(step[2:]))


_cached_rank: Final = lru_cache(CACHED)(_rank_in_list)


def _scalar_rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, _json(value))


def path_text(path: Path) -> str:
    """`.spec.containers[name="web"].image`, as messages have it."""
    return reduce(extended, map(_step_text, path), "")


def _step_text(step: Step) -> str:
    match step[0]:
        case "f":
            return f".{step[2:]}"
        case "k":
            return "[" + ",".join(f"{name}={_quoted(value)}" for name, value in sorted(_parsed(step).items())) + "]"
        case "v":
            return f"[={_quoted(_parsed(step))}]"
    return f"[{step[2:]}]"


def _quoted(value: Any) -> str:
    return msgspec.json.encode(value).decode()
