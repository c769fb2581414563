"""Durations in Go's syntax (`1h2m3.5s`), as integer nanoseconds."""

import re
from typing import Annotated, Final

import msgspec

# Nanoseconds. The metadata tells the decoder that the file has text here, not a number.
Duration = Annotated[int, msgspec.Meta(extra={"text": "duration"})]

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

MAX_SECONDS: Final = (2**63 - 1) // SECOND
"""Go's longest duration in whole seconds, 292 years, which also limits what kube-apiserver adds to a time."""

_UNITS: Final = {
    "ns": 1,
    "us": MICROSECOND,
    "\u00b5s": MICROSECOND,  # micro sign
    "\u03bcs": MICROSECOND,  # Greek mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_LONGEST: Final = 2**63 - 1
_MOST_DIGITS: Final = 19  # as many as an int64 has: longer numbers are out of range before they are read


def parse_duration(text: str) -> int:
    """Nanoseconds; raises ValueError in Go's words."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total = 0
    at = 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None or not (part[1] or part[2]):
            raise ValueError(f"time: invalid duration {_quoted(text)}")
        total += _nanoseconds(part, text)
        if total > _LONGEST + negative:
            raise ValueError(f"time: invalid duration {_quoted(text)}")
        at = part.end()
    if not rest:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    return -total if negative else total


def _nanoseconds(part: re.Match[str], text: str) -> int:
    whole, fraction, unit = part[1].lstrip("0"), part[2] or "", part[3]
    if not unit:
        raise ValueError(f"time: missing unit in duration {_quoted(text)}")
    if unit not in _UNITS:
        raise ValueError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
    if len(whole) > _MOST_DIGITS:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    scale = _UNITS[unit]
    nanos = int(whole or "0") * scale
    if fraction:
        digits = fraction[:_MOST_DIGITS]
        nanos += int(digits) * scale // 10 ** len(digits)
    return nanos


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def format_duration(nanos: int) -> str:
    """As Go prints it: `10m0s`, `1.5s`, `100ms`, `0s`."""
    sign, left = ("-", -nanos) if nanos < 0 else ("", nanos)
    if left == 0:
        return "0s"
    if left < MICROSECOND:
        return f"{sign}{left}ns"
    if left < MILLISECOND:
        return f"{sign}{_decimal(left, MICROSECOND)}\u00b5s"
    if left < SECOND:
        return f"{sign}{_decimal(left, MILLISECOND)}ms"
    minutes, seconds = divmod(left, MINUTE)
    hours, minutes = divmod(minutes, 60)
    text = _decimal(seconds, SECOND) + "s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    fraction = str(rest + unit)[1:].rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)
