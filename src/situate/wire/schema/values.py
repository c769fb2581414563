"""Values with their own JSON form: quantities, times, base64. Each function checks text and returns what Go writes."""

import binascii
import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Final

from situate.core.model.quantity import FORMAT_WRONG, NANO, QuantityError, parse_quantity
from situate.wire.caching import cached_if_short

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
MAX_DEPTH: Final = 200
"""The maximum nesting of free-form values. Real objects are far below it, and copying works far above it."""
MAX_SHOWN: Final = 512
"""Characters of a value that an error message repeats."""
TOO_DEEP: Final = "exceeded max depth"
OUT_OF_RANGE: Final = "number out of range"
_CACHED: Final = 16_384
_CACHED_LENGTH: Final = 64


class ValueRefusedError(ValueError):
    """The text is not such a value. The message says why, in Go's words."""

    def __init__(self, text: str, converting: str = "") -> None:
        super().__init__(text)
        self.converting = converting or text
        """What kube-apiserver says where it converts a tree of values, as after a strategic merge."""


# ── quantities ───────────────────────────────────────────────────────────────────────────────────────────────────────

_PARTS: Final = re.compile(r"[+-]?([0-9]*)(?:\.([0-9]*))?([A-Za-z]*)([+-]?[0-9]*)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_FAST_DIGITS: Final = 18
_FAST_BINARY_DIGITS: Final = 14
_MILLI: Final = NANO // 1000


def canonical_quantity(raw: Any) -> str:
    """A quantity as Go writes it after reading it: `1000m` becomes `1`."""
    return _canonical(_quantity_text(raw), -9)


def canonical_amount(raw: Any) -> str:
    """A quantity in a resource list, which Go rounds up to thousandths."""
    return _canonical(_quantity_text(raw), -3)


def _quantity_text(raw: Any) -> str:
    if isinstance(raw, str):
        return raw
    if raw is None:
        return "0"
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise ValueRefusedError(FORMAT_WRONG)
    return repr(raw)


@cached_if_short(entries=_CACHED, length=_CACHED_LENGTH)
def _canonical(raw: str, finest: int) -> str:
    text = raw.strip()
    try:
        nanos = parse_quantity(text)
    except QuantityError as wrong:
        raise ValueRefusedError(str(wrong)) from None
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise ValueRefusedError(FORMAT_WRONG)
    whole, fraction, letters, power = parts.groups(default="")
    digits = whole.lstrip("0") + fraction
    if not nanos:
        return "0"
    if letters in _BINARY[1:]:
        return text if _kept_binary(digits, fraction, letters) else _binary_text(nanos, finest)
    exponent = int(power) if power else _DECIMAL[letters]
    scale = exponent - len(fraction)
    fits = len(digits) <= _FAST_DIGITS and scale >= finest
    if fits and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0":
        return text
    return _decimal_text(_rounded(nanos, finest), written_out=bool(power))


def _kept_binary(digits: str, fraction: str, suffix: str) -> bool:
    """Whether Go treats the text as canonical: no fraction, not too long, and no multiple of eight."""
    room = _FAST_BINARY_DIGITS - _BINARY.index(suffix) * 3
    return not fraction and len(digits) <= room and int(digits) % 8 != 0


def _rounded(nanos: int, finest: int) -> int:
    if finest == -9:
        return nanos
    away = -(-abs(nanos) // _MILLI) * _MILLI
    return away if nanos > 0 else -away


def _binary_text(nanos: int, finest: int) -> str:
    nanos = _rounded(nanos, finest)
    units, rest = divmod(nanos, NANO)
    if rest or -1024 < units < 1024:
        return _decimal_text(nanos, written_out=False)
    power = 0
    while units % 1024 == 0 and power < len(_BINARY) - 1:
        units //= 1024
        power += 1
    return f"{units}{_BINARY[power]}"


def _decimal_text(nanos: int, *, written_out: bool) -> str:
    """With the largest power of 1000 that leaves a whole number. `written_out` gives `e6` instead of `M`."""
    exponent = -9
    while nanos % 1000 == 0 and (written_out or exponent < _DECIMAL["E"]):
        nanos //= 1000
        exponent += 3
    if written_out:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_BY_EXPONENT[exponent]}"


# ── times ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_SECONDS: Final = "2006-01-02T15:04:05Z07:00"
_MICROS: Final = "2006-01-02T15:04:05.000000Z07:00"
_PLAIN: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII)
# The parts of Go's time layout, and what each part matches.
_LAYOUT: Final = tuple(
    (name, re.compile(pattern, re.ASCII))
    for name, pattern in (
        ("2006", "[0-9]{4}"),
        ("-", "-"),
        ("01", "[0-9]{2}"),
        ("-", "-"),
        ("02", "[0-9]{2}"),
        ("T", "T"),
        ("15", "[0-9]{1,2}"),
        (":", ":"),
        ("04", "[0-9]{2}"),
        (":", ":"),
        ("05", "[0-9]{2}"),
    )
)
_FRACTION: Final = re.compile(r"[.,][0-9]+", re.ASCII)
_SIX_DIGITS: Final = re.compile(r"\.[0-9]{6}", re.ASCII)
_ZONE: Final = re.compile(r"Z|([+-])([0-9]{2}):([0-9]{2})", re.ASCII)
_HOURS, _MINUTES = 24, 60
_ZERO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)


@cached_if_short(entries=_CACHED, length=_CACHED_LENGTH)
def time_text(text: str) -> str | None:
    """A Time: RFC 3339 in whole seconds of UTC. None for Go's zero time."""
    return _utc(_moment(text, micros=False), 19)


@cached_if_short(entries=_CACHED, length=_CACHED_LENGTH)
def micro_time_text(text: str) -> str | None:
    """A MicroTime: RFC 3339 with exactly six digits of a second. None for Go's zero time."""
    return _utc(_moment(text, micros=True), 26)


def _utc(moment: datetime, length: int) -> str | None:
    return (
        None if moment == _ZERO_TIME else f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')[:length]}Z"
    )


def _moment(text: str, *, micros: bool) -> datetime:
    layout = _MICROS if micros else _SECONDS
    found, at = _leading(text, layout)
    part = _SIX_DIGITS.match(text, at) if micros else _FRACTION.match(text, at)
    if micros and part is None:
        raise _unparsed(text, layout, at, ".000000")
    fraction = part[0][1:7].ljust(6, "0") if part else "0"
    at = part.end() if part else at
    zone = _ZONE.match(text, at)
    if zone is None:
        raise _unparsed(text, layout, at, "Z07:00")
    if zone.end() < len(text):
        raise ValueRefusedError(f"parsing time {_quoted(text)}: extra text: {_quoted(text[zone.end() :])}")
    year, month, day, hour, minute, second = (int(one) for one in found)
    for name, fine in (
        ("month", 1 <= month <= 12),
        ("hour", hour < _HOURS),
        ("minute", minute < _MINUTES),
        ("second", second < _MINUTES),
        ("time zone offset hour", not zone[1] or int(zone[2]) <= _HOURS),
        ("time zone offset minute", not zone[1] or int(zone[3]) < _MINUTES),
        ("day", year > 0 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]),
    ):
        if not fine:
            raise ValueRefusedError(f"parsing time {_quoted(text)}: {name} out of range")
    offset = timedelta(hours=int(zone[2]), minutes=int(zone[3])) if zone[1] else timedelta()
    try:
        moment = datetime(year, month, day, hour, minute, second, int(fraction), UTC)
        return moment + offset if zone[1] == "-" else moment - offset
    except OverflowError:
        raise ValueRefusedError(f"parsing time {_quoted(text)}: day out of range") from None


def _leading(text: str, layout: str) -> tuple[list[str], int]:
    """The numbers of a time up to its seconds, and the end of their text."""
    found: list[str] = []
    at = 0
    for name, pattern in _LAYOUT:
        part = pattern.match(text, at)
        if part is None:
            raise _unparsed(text, layout, at, name)
        if name.isdigit():
            found.append(part[0])
        at = part.end()
    return found, at


def _unparsed(text: str, layout: str, at: int, wanted: str) -> ValueRefusedError:
    rest = _quoted(text[at:])
    return ValueRefusedError(f'parsing time {_quoted(text)} as "{layout}": cannot parse {rest} as "{wanted}"')


def _quoted(text: str) -> str:
    escaped = text[:MAX_SHOWN].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_ALPHABET: Final = re.compile(r"[A-Za-z0-9+/]*", re.ASCII)


def base64_text(text: str) -> str:
    """Base64 as Go writes it: padded, on one line."""
    joined = text.replace("\n", "").replace("\r", "") if "\n" in text or "\r" in text else text
    try:
        data = binascii.a2b_base64(joined, strict_mode=True) if joined else b""
        return binascii.b2a_base64(data, newline=False).decode()
    except ValueError:
        raise ValueRefusedError(f"illegal base64 data at input byte {_illegal_at(joined)}") from None


def _illegal_at(text: str) -> int:
    """The offset in Go's error: of a foreign character, a missing or surplus `=`, or the truncated rest."""
    good = _ALPHABET.match(text)
    end = good.end() if good else 0
    rest = text[end:]
    if not rest:
        return end - end % 4
    if rest[0] != "=" or end % 4 < 2:
        return end
    padding = 4 - end % 4
    if rest[:padding] == "=" * padding:
        return end + padding
    return end if len(rest) >= padding else len(text)


# ── anything ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_free(value: Any) -> None:
    """Refuse values nested deeper than MAX_DEPTH, and numbers that JSON cannot represent. Without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inside: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inside.extend(one.values())
            elif isinstance(one, list | tuple):
                inside.extend(one)
            elif isinstance(one, int | float) and not _fits(one):
                raise ValueRefusedError(OUT_OF_RANGE)
        if not inside:
            return
        level = inside
    raise ValueRefusedError(TOO_DEEP)


def _fits(number: int | float) -> bool:
    return isfinite(number) if isinstance(number, float) else INT64_MIN <= number <= INT64_MAX
