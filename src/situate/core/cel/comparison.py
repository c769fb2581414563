"""Equality and order of values."""

from math import isnan

from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.values import (
    INT64_MAX,
    INT64_MIN,
    MISSING,
    UINT64_MAX,
    DurationValue,
    ExtensionValue,
    MapValue,
    OptionalValue,
    TimestampValue,
    TypeValue,
    UInt,
    Value,
)

NAN_ORDER = "NaN values cannot be ordered"
_NUMBERS = (int, UInt, float)


def equal(left: Value, right: Value) -> bool | ErrorValue:
    """`left == right`: numbers by value, everything else only with its own kind."""
    kind = type(left)
    if kind is str:
        return type(right) is str and left == right
    if kind is bool:
        return type(right) is bool and left is right
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and _compare_numbers(left, right) == 0  # type: ignore[arg-type]
    if isinstance(left, ExtensionValue):
        return left.equal(right)  # type: ignore[return-value]
    if isinstance(left, list):
        return isinstance(right, list) and _equal_lists(left, right)
    if isinstance(left, MapValue):
        return isinstance(right, MapValue) and _equal_maps(left, right)
    return _equal_others(left, right)


def _equal_others(left: Value, right: Value) -> bool | ErrorValue:
    if isinstance(left, bytes):
        return isinstance(right, bytes) and left == right
    if isinstance(left, (DurationValue, TimestampValue)):
        return type(left) is type(right) and left.nanos == right.nanos
    if isinstance(left, TypeValue):
        return isinstance(right, TypeValue) and left.name == right.name
    if isinstance(left, OptionalValue):
        if not isinstance(right, OptionalValue) or left.has_value != right.has_value:
            return False
        return not left.has_value or equal(left.value, right.value)
    return False


def _equal_lists(left: list[Value], right: list[Value]) -> bool:
    return len(left) == len(right) and all(
        equal(one, other) is not False for one, other in zip(left, right, strict=True)
    )


def _equal_maps(left: MapValue, right: MapValue) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        other = right.find(key)
        if other is MISSING or equal(value, other) is False:  # type: ignore[arg-type]
            return False
    return True


def _compare_numbers(left: int | float, right: int | float) -> int:
    """-1, 0 or 1; with a double, integers are compared as doubles. NaN is neither, and gives 2."""
    if isinstance(left, float) or isinstance(right, float):
        if isnan(left) or isnan(right):
            return 2
        if isinstance(left, float) and not isinstance(right, float):
            return _compare_double(left, right)
        if isinstance(right, float) and not isinstance(left, float):
            return -_compare_double(right, left)
    return (left > right) - (left < right)


def _compare_double(double: float, integer: int) -> int:
    low, high = (0, UINT64_MAX) if type(integer) is UInt else (INT64_MIN, INT64_MAX)
    if double < low:
        return -1
    if double > float(high):
        return 1
    rounded = float(integer)
    return (double > rounded) - (double < rounded)


def compare(left: Value, right: Value) -> int | ErrorValue:
    """-1, 0 or 1, or why there is no order between the two."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        if other not in _NUMBERS:
            return ErrorValue(NAN_ORDER) if kind is float and isnan(left) else no_such_overload()  # type: ignore[arg-type]
        order = _compare_numbers(left, right)  # type: ignore[arg-type]
        return ErrorValue(NAN_ORDER) if order == 2 else order
    if kind is not other:
        return no_such_overload()
    if kind in (DurationValue, TimestampValue):
        left, right = left.nanos, right.nanos  # type: ignore[union-attr]
    elif kind is str:
        # Go compares bytes; the order of UTF-8 is that of the code points, which is Python's.
        pass
    elif kind not in (bool, bytes):
        return no_such_overload()
    return (left > right) - (left < right)  # type: ignore[operator]


def is_comparable(value: Value) -> bool:
    return isinstance(value, (bool, int, float, str, bytes, DurationValue, TimestampValue))
