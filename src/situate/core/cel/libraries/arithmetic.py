"""The operators: `+ - * / %`, order, `in`, `!`."""

from collections.abc import Callable
from math import inf, isnan, nan
from typing import Any

from situate.core.cel.comparison import compare, equal, is_comparable
from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.functions import Function, Library, Overload, overload
from situate.core.cel.meter import second_size, traverse_both, traverse_smaller
from situate.core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    list_of,
    map_of,
    param,
)
from situate.core.cel.values import (
    INT64_MAX,
    INT64_MIN,
    UINT64_MAX,
    DurationValue,
    MapValue,
    MutableList,
    TimestampValue,
    UInt,
    Value,
)

INT_OVERFLOW = "integer overflow"
UINT_OVERFLOW = "unsigned integer overflow"
TIMESTAMP_OVERFLOW = "timestamp overflow"
DIVISION_BY_ZERO = "division by zero"
MODULUS_BY_ZERO = "modulus by zero"
MIN_SECONDS, MAX_SECONDS = -62_135_596_800, 253_402_300_799
SECOND = 10**9

A, B = param("A"), param("B")
LIST, MAP = list_of(A), map_of(A, B)


def checked_int(number: int) -> int | ErrorValue:
    return number if INT64_MIN <= number <= INT64_MAX else ErrorValue(INT_OVERFLOW)


def checked_uint(number: int) -> UInt | ErrorValue:
    return UInt(number) if 0 <= number <= UINT64_MAX else ErrorValue(UINT_OVERFLOW)


def _duration(nanos: int) -> DurationValue | ErrorValue:
    number = checked_int(nanos)
    return number if isinstance(number, ErrorValue) else DurationValue(number)


def shift(time: TimestampValue, nanos: int) -> TimestampValue | ErrorValue:
    moved = time.nanos + nanos
    if not MIN_SECONDS <= moved // SECOND <= MAX_SECONDS:
        return ErrorValue(TIMESTAMP_OVERFLOW)
    return TimestampValue(moved, time.offset)


def add(left: Any, right: Any) -> Any:
    kind, other = type(left), type(right)
    if isinstance(left, list):
        return _add_lists(left, right)
    if kind is DurationValue and other is TimestampValue:
        return shift(right, left.nanos)
    if kind is TimestampValue and other is DurationValue:
        return shift(left, right.nanos)
    if kind is not other or kind is TimestampValue:
        return no_such_overload()
    if kind is int:
        return checked_int(left + right)
    if kind is UInt:
        return checked_uint(int(left) + int(right))
    if kind is DurationValue:
        return _duration(left.nanos + right.nanos)
    return left + right


def _add_lists(left: list[Any], right: Any) -> Any:
    if not isinstance(right, list):
        return no_such_overload()
    if isinstance(left, MutableList):
        left.extend(right)
        return left
    if not left:
        return right
    return left + right if right else left


def is_addable(value: Value) -> bool:
    kinds = (int, UInt, float, str, bytes, DurationValue, TimestampValue)
    return type(value) in kinds or isinstance(value, list)


def _subtract(left: Any, right: Any) -> Any:
    kind, other = type(left), type(right)
    if kind is TimestampValue and other is DurationValue:
        if right.nanos == INT64_MIN:
            return ErrorValue(INT_OVERFLOW)
        return shift(left, -right.nanos)
    if kind is not other:
        return no_such_overload()
    if kind is int:
        return checked_int(left - right)
    if kind is UInt:
        return checked_uint(int(left) - int(right))
    if kind in (DurationValue, TimestampValue):
        return _duration(left.nanos - right.nanos)
    return left - right


def _multiply(left: Any, right: Any) -> Any:
    if type(left) is not type(right):
        return no_such_overload()
    if type(left) is int:
        return checked_int(left * right)
    if type(left) is UInt:
        return checked_uint(int(left) * int(right))
    return left * right


def _divide(left: Any, right: Any) -> Any:
    if type(left) is not type(right):
        return no_such_overload()
    if type(left) is float:
        return _divide_doubles(left, right)
    if right == 0:
        return ErrorValue(DIVISION_BY_ZERO)
    if type(left) is UInt:
        return UInt(int(left) // int(right))
    quotient = abs(left) // abs(right)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or isnan(left):
        return nan
    negative = (left < 0) != str(right).startswith("-")
    return -inf if negative else inf


def _modulo(left: Any, right: Any) -> Any:
    if type(left) is not type(right):
        return no_such_overload()
    if right == 0:
        return ErrorValue(MODULUS_BY_ZERO)
    if type(left) is UInt:
        return UInt(int(left) % int(right))
    if left == INT64_MIN and right == -1:
        return ErrorValue(INT_OVERFLOW)
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _negate(value: Any) -> Any:
    if isinstance(value, bool):
        return no_such_overload()
    if isinstance(value, DurationValue):
        return _duration(-value.nanos)
    return checked_int(-value) if type(value) is int else -value


def _not(value: Any) -> Any:
    return not value if isinstance(value, bool) else no_such_overload()


def _order(test: Callable[[int], bool]) -> Callable[[Any, Any], Any]:
    def run(left: Any, right: Any) -> Any:
        order = compare(left, right)
        return order if isinstance(order, ErrorValue) else test(order)

    return run


def _in(element: Any, within: Any) -> Any:
    if isinstance(within, list):
        return any(equal(element, one) is True for one in within)
    if isinstance(within, MapValue):
        return within.contains(element)
    return no_such_overload()


def _same(name: str, *kinds: CelType) -> tuple[Overload, ...]:
    return tuple(overload(f"{name}_{_short(kind)}", (kind, kind), kind) for kind in kinds)


def _short(kind: CelType) -> str:
    names = {"int": "int64", "uint": "uint64", "google.protobuf.Duration": "duration"}
    return names.get(kind.name) or {"google.protobuf.Timestamp": "timestamp"}.get(kind.name, kind.name)


def _takes(*kinds: type) -> Callable[[Value], bool]:
    return lambda value: type(value) in kinds or (list in kinds and isinstance(value, list))


_ORDERED = (
    (BOOL, BOOL), (INT, INT), (INT, DOUBLE), (INT, UINT), (UINT, UINT), (UINT, DOUBLE), (UINT, INT), (DOUBLE, DOUBLE),
    (DOUBLE, INT), (DOUBLE, UINT), (STRING, STRING), (BYTES, BYTES), (TIMESTAMP, TIMESTAMP), (DURATION, DURATION),
)  # fmt: skip


def _relation(name: str, operator: str, test: Callable[[int], bool]) -> Function:
    overloads = []
    for left, right in _ORDERED:
        suffix = _short(left) if left is right else f"{_short(left)}_{_short(right)}"
        cost = traverse_smaller if left in (STRING, BYTES) else None
        overloads.append(overload(f"{name}_{suffix}", (left, right), BOOL, cost=cost))
    return Function(operator, tuple(overloads), code=_order(test), takes=is_comparable)


LIBRARY = Library(
    (
        Function("_?_:_", (overload("conditional", (BOOL, A, A), A),)),
        Function("_&&_", (overload("logical_and", (BOOL, BOOL), BOOL),)),
        Function("_||_", (overload("logical_or", (BOOL, BOOL), BOOL),)),
        Function("!_", (overload("logical_not", (BOOL,), BOOL),), code=_not),
        Function("@not_strictly_false", (overload("not_strictly_false", (BOOL,), BOOL),)),
        Function("_==_", (overload("equals", (A, A), BOOL),)),
        Function("_!=_", (overload("not_equals", (A, A), BOOL),)),
        Function(
            "_+_",
            (
                overload("add_bytes", (BYTES, BYTES), BYTES, cost=traverse_both),
                overload("add_double", (DOUBLE, DOUBLE), DOUBLE),
                overload("add_duration_duration", (DURATION, DURATION), DURATION),
                overload("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
                overload("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
                overload("add_int64", (INT, INT), INT),
                overload("add_list", (LIST, LIST), LIST),
                overload("add_string", (STRING, STRING), STRING, cost=traverse_both),
                overload("add_uint64", (UINT, UINT), UINT),
            ),
            code=add,
            takes=is_addable,
        ),
        Function("_/_", _same("divide", DOUBLE, INT, UINT), code=_divide, takes=_takes(int, UInt, float)),
        Function("_%_", _same("modulo", INT, UINT), code=_modulo, takes=_takes(int, UInt)),
        Function("_*_", _same("multiply", DOUBLE, INT, UINT), code=_multiply, takes=_takes(int, UInt, float)),
        Function(
            "-_",
            (overload("negate_double", (DOUBLE,), DOUBLE), overload("negate_int64", (INT,), INT)),
            code=_negate,
            takes=_takes(int, float, bool, DurationValue),
        ),
        Function(
            "_-_",
            (
                overload("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
                overload("subtract_duration_duration", (DURATION, DURATION), DURATION),
                overload("subtract_int64", (INT, INT), INT),
                overload("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
                overload("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
                overload("subtract_uint64", (UINT, UINT), UINT),
            ),
            code=_subtract,
            takes=_takes(int, UInt, float, DurationValue, TimestampValue),
        ),
        _relation("less", "_<_", lambda order: order < 0),
        _relation("less_equals", "_<=_", lambda order: order <= 0),
        _relation("greater", "_>_", lambda order: order > 0),
        _relation("greater_equals", "_>=_", lambda order: order >= 0),
        Function("_[_]", (overload("index_list", (LIST, INT), A), overload("index_map", (MAP, A), B))),
        Function(
            "@in",
            (
                overload("in_list", (A, LIST), BOOL, cost=second_size),
                overload("in_map", (A, MAP), BOOL),
            ),
            code=_in,
        ),
    )
)
