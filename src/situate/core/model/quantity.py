"""Quantity: Kubernetes' fixed-point numbers (`100m`, `1.5Gi`, `2e3`), parsed exactly.

A quantity is an integer number of billionths: finer parts are rounded up, away from zero, as in the API server. Parsing
takes time linear in the text, whose length and exponent are bounded. Objects keep quantities as text.

Two differences from Kubernetes: beyond int64, its Value() and MilliValue() overflow, and these saturate; a suffix
without digits is zero there, and an error here.
"""

import re
from functools import lru_cache

from situate.core.model.base import INT64_MAX
from situate.core.model.integers import clamp_int64

# As objects hold it: JSON strings and numbers are both accepted.
RawQuantity = str | int | float

MAX_LENGTH = 64
MAX_EXPONENT = 30
NANO = 10**9  # billionths in a unit

FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX_WRONG = "unable to parse quantity's suffix"
TOO_LONG = f"quantity must be no more than {MAX_LENGTH} characters"
EXPONENT_TOO_LARGE = f"quantity's exponent must be between -{MAX_EXPONENT} and {MAX_EXPONENT}"

_SHAPE = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_CACHE_SIZE = 16_384


class QuantityError(ValueError):
    """The text is not a quantity; the message says why, in Kubernetes' words where it has them."""


@lru_cache(maxsize=_CACHE_SIZE)
def parse_quantity(raw: RawQuantity) -> int:
    """The quantity in billionths."""
    text = raw.strip() if isinstance(raw, str) else repr(raw)
    if len(text) > MAX_LENGTH:
        raise QuantityError(TOO_LONG)
    shape = _SHAPE.fullmatch(text) if text else None
    if shape is None:
        raise QuantityError(FORMAT_WRONG)
    sign, whole, fraction, suffix = shape.groups(default="")
    digits = int(whole + fraction or "0")
    if suffix in _BINARY:
        nanos = _ceil_div((digits << _BINARY[suffix]) * NANO, 10 ** len(fraction))
        nanos = min(nanos, INT64_MAX * NANO)
    else:
        power = _exponent(suffix) + 9 - len(fraction)
        nanos = digits * 10**power if power >= 0 else _ceil_div(digits, 10**-power)
    return -nanos if sign == "-" else nanos


def _exponent(suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    written = _EXPONENT.fullmatch(suffix)
    if written is None:
        raise QuantityError(SUFFIX_WRONG)
    exponent = int(written[1])
    if not -MAX_EXPONENT <= exponent <= MAX_EXPONENT:
        raise QuantityError(EXPONENT_TOO_LARGE)
    return exponent


def _ceil_div(number: int, by: int) -> int:
    """Divide and round away from zero."""
    return -(-number // by) if number >= 0 else number // by


@lru_cache(maxsize=_CACHE_SIZE)
def parse_milli(raw: RawQuantity) -> int:
    """Thousandths, rounded up, without saturation.

    The API server rounds every entry of a resource list this way, so sums of entries are sums of these.
    """
    return _ceil_div(parse_quantity(raw), NANO // 1000)


def milli_value(raw: RawQuantity) -> int:
    """Kubernetes' MilliValue(): thousandths, rounded up."""
    return clamp_int64(parse_milli(raw))


def value(raw: RawQuantity) -> int:
    """Kubernetes' Value(): units, rounded up."""
    return clamp_int64(_ceil_div(parse_quantity(raw), NANO))
