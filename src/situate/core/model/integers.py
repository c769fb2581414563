"""Integers from text that others wrote: bounded in length and in range, by the rules of Go's strconv.

Python's own `int` reads more than Go does (underscores, spaces, digits of other scripts), and raises ValueError for
more than 4,300 digits. Every number in an annotation, a query or a percentage goes through one of these.
"""

import re

from situate.core.model.base import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

MAX_DIGITS = 64
"""The longest text that is converted: any int64 with some leading zeros."""

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def is_integer(text: str) -> bool:
    """Whether the text is ASCII digits with an optional sign, as Go's ParseInt reads. It may be out of range."""
    return _INTEGER.fullmatch(text) is not None


def clamp_int64(number: int) -> int:
    return max(INT64_MIN, min(number, INT64_MAX))


def next_int64(number: int) -> int:
    """One more, for generations and revisions, but never more than int64's maximum."""
    return min(number, INT64_MAX - 1) + 1


def saturated_int64(text: str) -> int | None:
    """The integer, clamped to int64; None if the text is not an integer."""
    if not is_integer(text):
        return None
    digits = text.lstrip("+-0")
    if len(digits) > MAX_DIGITS:
        return INT64_MIN if text[0] == "-" else INT64_MAX
    number = int(digits or "0")
    return clamp_int64(-number if text[0] == "-" else number)


def parse_int64(text: str) -> int | None:
    """Decimal text as Go's ParseInt reads it, or None: ASCII digits, an optional sign, within int64."""
    if len(text) > MAX_DIGITS or not is_integer(text):
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def parse_int32(text: str) -> int | None:
    """As `parse_int64`, within int32."""
    number = parse_int64(text)
    return None if number is None or not INT32_MIN <= number <= INT32_MAX else number


def parse_count(text: str) -> int | None:
    """A number from 0 to int64's maximum, written in digits only; None for anything else."""
    return None if text[:1] in ("+", "-") else parse_int64(text)
