"""Functions of lists: Kubernetes' own and version 3 of cel-go's extension."""

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

from situate.core.cel.ast import Call, Comprehension, Ident, ListLiteral, Node, Select
from situate.core.cel.comparison import compare, equal, is_comparable
from situate.core.cel.errors import ErrorValue, GoPanicError, no_such_overload
from situate.core.cel.functions import Function, Library, Overload, member, overload
from situate.core.cel.libraries.arithmetic import add, is_addable
from situate.core.cel.macros import STANDARD_MACROS, UNUSED, Builder, MacroError
from situate.core.cel.meter import LIST_COST, STRING_FACTOR, size_of, traverse_all
from situate.core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    list_of,
    param,
)
from situate.core.cel.values import DurationValue, UInt, Value, type_name

A, T = param("A"), param("T")
_LIST = list_of(T)
_SUMMABLE = (("int", INT), ("uint", UINT), ("double", DOUBLE), ("duration", DURATION))
_COMPARABLE = (
    ("int", INT), ("uint", UINT), ("double", DOUBLE), ("bool", BOOL), ("duration", DURATION),
    ("timestamp", TIMESTAMP), ("string", STRING), ("bytes", BYTES),
)  # fmt: skip
_SORT_INPUT = "@__sortBy_input__"


def _is_sorted(values: list[Any]) -> Any:
    for index, value in enumerate(values):
        if not is_comparable(value):
            return no_such_overload()
        if index and compare(values[index - 1], value) == 1:
            return False
    return True


def _sum(zero: Value) -> Callable[[list[Any]], Any]:
    def run(values: list[Any]) -> Any:
        total: Any = zero
        for value in values:
            if not is_addable(value):
                return no_such_overload()
            total = add(total, value)
            if not is_addable(total):
                return total if isinstance(total, ErrorValue) else no_such_overload()
        return total

    return run


def _extreme(name: str, worse: int) -> Callable[[list[Any]], Any]:
    def run(values: list[Any]) -> Any:
        best: Any = None
        for index, value in enumerate(values):
            if not is_comparable(value):
                return no_such_overload()
            if not index or compare(best, value) == worse:
                best = value
        return best if values else ErrorValue(f"{name} called on empty list")

    return run


def _index_of(values: list[Any], wanted: Value) -> int:
    return next((index for index, value in enumerate(values) if equal(value, wanted) is True), -1)


def _last_index_of(values: list[Any], wanted: Value) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if equal(values[index], wanted) is True), -1)


def _slice(values: list[Any], start: int, end: int) -> Any:
    if start < 0 or end < 0:
        return ErrorValue(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return ErrorValue(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        return ErrorValue(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _flatten(values: Any, *depth: Any) -> Any:
    if not isinstance(values, list) or (depth and type(depth[0]) is not int):
        shown = ", ".join(map(type_name, depth))
        return ErrorValue(f"no such overload: {_shown(values)}.flatten({shown})")
    levels = depth[0] if depth else 1
    if levels < 0:
        return ErrorValue("level must be non-negative")
    flat: list[Any] = []
    for value in values:
        if isinstance(value, list) and levels:
            flat.extend(_flatten(value, levels - 1))
        else:
            flat.append(value)
    return flat


def _shown(value: Value) -> str:
    return {"list": "list(dyn)", "map": "map(dyn, dyn)"}.get(type_name(value), type_name(value))


def _sort_by(values: list[Any], keys: list[Any]) -> Any:
    if len(values) != len(keys):
        return ErrorValue(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    if not is_comparable(keys[0]):
        return ErrorValue("list elements must be comparable")
    if len(keys) > 1 and any(type(key) is not type(keys[0]) for key in keys):
        return ErrorValue("list elements must have the same type")

    def order(one: int, other: int) -> int:
        found = compare(keys[one], keys[other])
        return 0 if isinstance(found, ErrorValue) else found

    return [values[index] for index in sorted(range(len(values)), key=cmp_to_key(order))]


# A longer range costs more than any limit allows; it is not made.
_MAX_RANGE = 10_000_000


def _range(count: int) -> list[int]:
    return list(range(min(count, _MAX_RANGE)))


def _distinct(values: list[Any]) -> list[Any]:
    seen: list[Any] = []
    for value in values:
        if not any(equal(value, other) is True for other in seen):
            seen.append(value)
    return seen


def _sort_by_macro(build: Builder, target: Node, args: list[Node]) -> Node:
    name = build.ident(_SORT_INPUT)
    if not isinstance(target, (ListLiteral, Select, Ident, Comprehension, Call)):
        raise MacroError(
            target, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
    keys = STANDARD_MACROS["map", 2, True](build, build.copy(name), args)
    if keys is None:
        return target
    sort = build.member_call("@sortByAssociatedKeys", build.copy(name), keys)
    return build.loop(build.list(), (UNUSED, ""), _SORT_INPUT, target, build.literal(False), name, sort)


# What a call costs that makes a list.


def _allocating(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST_COST


def _result_size(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return _allocating(1, size_of(result))


def _flatten_cost(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return _allocating(float(args[1]) if len(args) == 2 else 1.0, size_of(args[0]))


def _comparing(position: int) -> Callable[[Sequence[Any], Any, str], int]:
    def cost(args: Sequence[Any], result: Any, overload_id: str) -> int:
        values = args[position]
        if isinstance(values, ErrorValue):
            raise GoPanicError("interface conversion: *types.Err is not traits.Lister: missing method Add")
        factor = 2.0 + (STRING_FACTOR if values and isinstance(values[0], (str, bytes)) else 0)
        return _allocating(factor, len(values) * len(values))

    return cost


def _templated(pattern: str, kinds: Sequence[tuple[str, CelType]], result: CelType | None, code: Any) -> Any:
    return tuple(member(pattern.format(name), (list_of(kind),), result or kind, code) for name, kind in kinds)


_ZEROS: dict[str, Value] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": DurationValue(0)}
_EXTENSION = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)

KUBERNETES = Library(
    (
        Function("isSorted", _templated("list_{0}_is_sorted_bool", _COMPARABLE, BOOL, _is_sorted), cost=traverse_all),
        Function(
            "sum",
            tuple(
                member(f"list_{name}_sum_{name}", (list_of(kind),), kind, _sum(_ZEROS[name]))
                for name, kind in _SUMMABLE
            ),
            cost=traverse_all,
        ),
        Function("max", _templated("list_{0}_max_{0}", _COMPARABLE, None, _extreme("max", -1)), cost=traverse_all),
        Function("min", _templated("list_{0}_min_{0}", _COMPARABLE, None, _extreme("min", 1)), cost=traverse_all),
        Function("indexOf", (member("list_a_index_of_int", (list_of(A), A), INT, _index_of),), cost=traverse_all),
        Function(
            "lastIndexOf",
            (member("list_a_last_index_of_int", (list_of(A), A), INT, _last_index_of),),
            cost=traverse_all,
        ),
    )
)

EXTENSION = Library(
    (
        Function("slice", (member("list_slice", (_LIST, INT, INT), _LIST, _slice, cost=_result_size),)),
        Function(
            "flatten",
            (
                member("list_flatten", (list_of(_LIST),), _LIST, _flatten, cost=_flatten_cost),
                member("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten, cost=_flatten_cost),
            ),
            guarded=False,
        ),
        Function(
            "sort",
            tuple(
                Overload(f"list_{kind.name}_sort", (list_of(kind),), list_of(kind), is_member=True, cost=_comparing(0))
                for kind in _EXTENSION
            ),
            code=lambda values: _sort_by(values, values),
            takes=lambda value: isinstance(value, list),
        ),
        Function(
            "@sortByAssociatedKeys",
            tuple(
                Overload(
                    f"list_{kind.name}_sortByAssociatedKeys",
                    (_LIST, list_of(kind)),
                    _LIST,
                    is_member=True,
                    cost=_comparing(1),
                )
                for kind in _EXTENSION
            ),
            code=_sort_by,
            takes=lambda value: isinstance(value, list),
        ),
        Function("lists.range", (overload("lists_range", (INT,), list_of(INT), _range, cost=_result_size),)),
        Function("reverse", (member("list_reverse", (_LIST,), _LIST, lambda values: values[::-1], cost=_result_size),)),
        Function("distinct", (member("list_distinct", (_LIST,), _LIST, _distinct, cost=_comparing(0)),)),
    ),
    macros={("sortBy", 2, True): _sort_by_macro},
)
