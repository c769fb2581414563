"""Numbers as Go reads, checks and prints them."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Final

from situate.wire.schema.values import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

MAX_FLOAT32: Final = 3.4028234663852886e38
_SUSPECT: Final = re.compile(rb"[0-9][.eE]|[0-9]{19}")
"""A number that Go may read as another one. Text may look like that, too."""
_LARGE_EXPONENT: Final = 21


def may_have_odd_numbers(body: bytes) -> bool:
    return _SUSPECT.search(body) is not None


def go_numbers(value: Any) -> Any:
    """The value with numbers as Go keeps them: whole ones as integers, and what no int64 holds as a float."""
    if isinstance(value, dict):
        return {name: go_numbers(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [go_numbers(item) for item in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() and INT64_MIN <= value < INT64_MAX else value
    if isinstance(value, int) and not isinstance(value, bool) and not INT64_MIN <= value <= INT64_MAX:
        return float(value)
    return value


def out_of_range(value: int | float, kind: str, form: str) -> bool:
    """Whether a number cannot be one of this type and format."""
    if kind == "integer":
        low, high = (INT32_MIN, INT32_MAX) if form == "int32" else (INT64_MIN, INT64_MAX)
        return (isinstance(value, float) and not value.is_integer()) or not low <= value <= high
    return form == "float" and abs(value) > MAX_FLOAT32


def is_multiple(value: int | float, factor: int | float) -> bool:
    if factor <= 0:
        return False
    if isinstance(value, int) and float(factor).is_integer():
        return value % int(factor) == 0
    ratio = 1 / factor * value if factor < 1 else value / factor
    return isfinite(ratio) and is_json_integer(ratio)


def is_json_integer(number: float) -> bool:
    """Whether a float is close enough to an integer to be written as one."""
    if not isfinite(number) or abs(number) > 2**53:
        return False
    nearest = float(int(number))
    difference = abs(number - nearest)
    if number == nearest:
        return True
    if nearest == 0 or number == 0 or difference < 5e-324:
        return difference < 1e-9 * 5e-324
    return difference / (abs(number) + abs(nearest)) < 1e-9


def shown_number(value: int | float) -> str:
    """What %v prints."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < 10**_LARGE_EXPONENT:
        return str(int(value))
    text = repr(value)
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        mantissa = mantissa.removesuffix(".0")
        sign, digits = ("-", exponent[1:]) if exponent.startswith("-") else ("+", exponent.lstrip("+"))
        return f"{mantissa}e{sign}{digits.zfill(2)}"
    return text
