"""Lists as sets: `sets.contains`, `sets.equivalent`, `sets.intersects`."""

from collections.abc import Callable, Sequence
from typing import Any

from situate.core.cel.comparison import equal
from situate.core.cel.functions import Function, Library, overload
from situate.core.cel.meter import size_of
from situate.core.cel.types import BOOL, list_of, param

_TWO = (list_of(param("T")), list_of(param("T")))


def _has(values: list[Any], wanted: Any) -> bool:
    return any(equal(wanted, value) is True for value in values)


def _contains(values: list[Any], others: list[Any]) -> bool:
    return all(_has(values, other) for other in others)


def _equivalent(values: list[Any], others: list[Any]) -> bool:
    return _contains(values, others) and _contains(others, values)


def _intersects(values: list[Any], others: list[Any]) -> bool:
    return any(_has(others, value) for value in values)


def _cost(factor: int) -> Callable[[Sequence[Any], Any, str], int]:
    return lambda args, result, overload_id: 1 + size_of(args[0]) * size_of(args[1]) * factor


LIBRARY = Library(
    (
        Function("sets.contains", (overload("list_sets_contains_list", _TWO, BOOL, _contains, cost=_cost(1)),)),
        Function("sets.equivalent", (overload("list_sets_equivalent_list", _TWO, BOOL, _equivalent, cost=_cost(2)),)),
        Function("sets.intersects", (overload("list_sets_intersects_list", _TWO, BOOL, _intersects, cost=_cost(1)),)),
    )
)
