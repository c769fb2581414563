"""Kubernetes' quantities in expressions: `quantity("1Gi").isGreaterThan(...)`."""

import re
from collections.abc import Sequence
from typing import Any, Final

from situate.core.cel.errors import ErrorValue, no_such_overload
from situate.core.cel.functions import Function, Library, member, overload
from situate.core.cel.meter import ceil_of, one, plain_size
from situate.core.cel.types import BOOL, DOUBLE, INT, STRING, struct
from situate.core.cel.values import INT64_MAX, INT64_MIN, ExtensionValue, Value

QUANTITY: Final = struct("kubernetes.Quantity")
FORMAT_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"
NUMBER_WRONG: Final = "unable to parse numeric part of quantity"
NO_INTEGER: Final = "cannot convert value to integer"

NANO: Final = -9
# As many digits as an int64 surely holds.
_INT64_DIGITS: Final = 18
_MAX_POWER: Final = 400

_SHAPE = re.compile(r"([+-]?)(0*)([0-9]*)(?:(\.)([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityParseError(ValueError):
    """The text is not a quantity; the message is Kubernetes'."""


class Quantity(ExtensionValue):
    """`value * 10**scale`. `is_big` if Kubernetes would hold it as a decimal, which is never "an integer".

    A sum or difference is `computed`: cel-go finds nothing equal to one on the right of `==`.

    It changes while an expression is evaluated, as in Go. Comparing with a decimal makes a decimal of it. A decimal and
    what was computed from it share their digits: `add` and `sub` change both.
    """

    __slots__ = ("_shared", "computed", "is_big", "scale", "value")
    type_name = "kubernetes.Quantity"

    def __init__(self, value: int, scale: int = 0, is_big: bool = False, computed: bool = False) -> None:
        self.value = value
        self.scale = scale
        self.is_big = is_big
        self.computed = computed
        self._shared: list[Quantity] | None = None
        """The decimals that share their digits, with this one."""

    def copy(self) -> "Quantity":
        """One that shares nothing."""
        return Quantity(self.value, self.scale, self.is_big, self.computed)

    def share(self, value: int, scale: int) -> "Quantity":
        """A decimal that was computed from this one, and that this one is, too, from now on."""
        made = Quantity(value, scale, is_big=True, computed=True)
        shared = [self] if self._shared is None else self._shared
        shared.append(made)
        for each in shared:
            each.value, each.scale, each._shared = value, scale, shared
        return made

    @classmethod
    def parse(cls, text: str) -> "Quantity":
        """Raises QuantityParseError."""
        return _parse(text)

    def equal(self, other: Value) -> Value:
        if not isinstance(other, Quantity) or other.computed:
            return no_such_overload()
        return self.compare(other) == 0

    def ordered(self, other: "Quantity") -> int:
        """`compare`, as the functions do it."""
        self.is_big |= other.is_big
        return self.compare(other)

    def compare(self, other: "Quantity") -> int:
        sign, other_sign = _sign(self.value), _sign(other.value)
        if sign != other_sign or sign == 0:
            return _sign(sign - other_sign)
        size = len(str(abs(self.value))) + self.scale
        other_size = len(str(abs(other.value))) + other.scale
        if size != other_size:
            return sign if size > other_size else -sign
        low = min(self.scale, other.scale)
        return _sign(self.value * 10 ** (self.scale - low) - other.value * 10 ** (other.scale - low))

    @property
    def integer(self) -> int | None:
        """The value as Kubernetes' AsInt64 gives it, if it does."""
        if self.is_big or self.scale < 0 or (self.value and self.scale > _INT64_DIGITS):
            return None
        number = self.value * 10**self.scale if self.value else 0
        return number if INT64_MIN <= number <= INT64_MAX else None

    def __repr__(self) -> str:
        return f"Quantity({self.value}, {self.scale})"


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _parse(text: str) -> Quantity:
    if not text:
        raise QuantityParseError(FORMAT_WRONG)
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise QuantityParseError(FORMAT_WRONG)
    sign, zeros, digits, _, fraction, suffix = shape.groups(default="")
    number = digits or "0"
    power, base = _suffix(suffix)
    negative = sign == "-"
    fits = _INT64_DIGITS - len(number) - len(fraction) >= 0
    if base == 2:
        fits = not fraction and 15 - len(number) - int(power * 3 / 10) - 1 >= 0
    scale = (power if base == 10 else 0) - len(fraction)
    if fits and scale >= NANO:
        value = int(number + fraction) << (power if base == 2 else 0)
        if value <= INT64_MAX:
            return Quantity(-value if negative else value, scale)
    if not zeros and not digits and not fraction:
        raise QuantityParseError(NUMBER_WRONG)
    return _parse_big(int((zeros + digits + fraction) or "0"), power, base, len(fraction), negative)


def _suffix(suffix: str) -> tuple[int, int]:
    """The exponent and its base."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], 10
    if suffix in _BINARY:
        return _BINARY[suffix], 2
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or len(exponent[1].lstrip("+-").lstrip("0")) > 18:
        raise QuantityParseError(SUFFIX_WRONG)
    return (int(exponent[1]) + 2**31) % 2**32 - 2**31, 10


def _parse_big(unscaled: int, power: int, base: int, fraction: int, negative: bool) -> Quantity:
    scale = -fraction
    if base == 2:
        unscaled <<= power
    else:
        scale += power
    if unscaled and scale < NANO:
        # Parts below a billionth round up.
        steps = NANO - scale
        unscaled = 1 if steps > len(str(unscaled)) else -(-unscaled // 10**steps)
        scale = NANO
    elif unscaled and scale - NANO <= _MAX_POWER:
        unscaled *= 10 ** (scale - NANO)
        scale = NANO
    if base == 2 and unscaled * 10 ** (scale - NANO) > INT64_MAX * 10**9:
        unscaled, scale = INT64_MAX, 0
    return Quantity(-unscaled if negative else unscaled, scale, is_big=True)


def _add(left: Quantity, right: Quantity, sign: int = 1) -> Quantity:
    value, scale = right.value * sign, right.scale
    if not left.is_big and not right.is_big:
        # Go's negation of the smallest integer is that integer.
        small = _add_small(left, INT64_MIN if value == INT64_MAX + 1 else value, scale)
        if small is not None:
            return small
    low = min(left.scale, scale)
    if max(left.scale, scale) - low > _MAX_POWER:
        # Kubernetes would compute for hours; the larger is near enough.
        larger = left if left.scale > scale else Quantity(value, scale)
        return _decimal(left, larger.value, larger.scale)
    total = left.value * 10 ** (left.scale - low) + value * 10 ** (scale - low)
    return _decimal(left, total, low)


def _decimal(left: Quantity, value: int, scale: int) -> Quantity:
    """What was computed from `left`, as a decimal."""
    return left.share(value, scale) if left.is_big else Quantity(value, scale, is_big=True, computed=True)


def _add_small(left: Quantity, value: int, scale: int) -> Quantity | None:
    """The sum in 64 bits; None if that, or what has to be computed for it, is out of range."""
    if value == 0:
        return Quantity(left.value, left.scale, computed=True)
    if left.value == 0:
        return Quantity(value, scale, computed=True)
    low = min(left.scale, scale)
    addends = left.value * 10 ** (left.scale - low), value * 10 ** (scale - low)
    if all(INT64_MIN <= one <= INT64_MAX for one in (*addends, sum(addends))):
        return Quantity(sum(addends), low, computed=True)
    return None


def _quantity(text: str) -> Any:
    try:
        return _parse(text)
    except QuantityParseError as error:
        return ErrorValue(str(error))


def _is_quantity(text: str) -> bool:
    try:
        _parse(text)
    except QuantityParseError:
        return False
    return True


def _as_integer(quantity: Quantity) -> Any:
    number = quantity.integer
    return ErrorValue(NO_INTEGER) if number is None else number


def _as_float(quantity: Quantity) -> float:
    base = float(quantity.value)
    if quantity.scale == 0:
        return base
    power = float(f"1e{quantity.scale}")
    return base * power


def parse_cost(args: Sequence[Any], result: Any, overload_id: str) -> int:
    return ceil_of(plain_size(args[0]))


_TWO = (QUANTITY, QUANTITY)
LIBRARY = Library(
    (
        Function("quantity", (overload("string_to_quantity", (STRING,), QUANTITY, _quantity),), cost=parse_cost),
        Function("isQuantity", (overload("is_quantity_string", (STRING,), BOOL, _is_quantity),), cost=parse_cost),
        Function("sign", (overload("quantity_sign", (QUANTITY,), INT, lambda q: _sign(q.value)),), cost=one),
        Function(
            "isGreaterThan",
            (member("quantity_is_greater_than", _TWO, BOOL, lambda q, other: q.ordered(other) == 1),),
            cost=one,
        ),
        Function(
            "isLessThan",
            (member("quantity_is_less_than", _TWO, BOOL, lambda q, other: q.ordered(other) == -1),),
            cost=one,
        ),
        Function("compareTo", (member("quantity_compare_to", _TWO, INT, lambda q, other: q.ordered(other)),), cost=one),
        Function("asApproximateFloat", (member("quantity_get_float", (QUANTITY,), DOUBLE, _as_float),), cost=one),
        Function("asInteger", (member("quantity_get_int", (QUANTITY,), INT, _as_integer),), cost=one),
        Function(
            "isInteger",
            (member("quantity_is_integer", (QUANTITY,), BOOL, lambda q: q.integer is not None),),
            cost=one,
        ),
        Function(
            "add",
            (
                member("quantity_add", _TWO, QUANTITY, _add),
                member("quantity_add_int", (QUANTITY, INT), QUANTITY, lambda q, n: _add(q, Quantity(n))),
            ),
            cost=one,
        ),
        Function(
            "sub",
            (
                member("quantity_sub", _TWO, QUANTITY, lambda q, other: _add(q, other, -1)),
                member("quantity_sub_int", (QUANTITY, INT), QUANTITY, lambda q, n: _add(q, Quantity(n), -1)),
            ),
            cost=one,
        ),
    )
)
