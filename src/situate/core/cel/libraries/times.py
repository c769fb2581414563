"""Durations and timestamps: their text, and the functions that take one apart."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from situate.core.cel.errors import ErrorValue
from situate.core.cel.formatting import go_quote
from situate.core.cel.functions import Function, Library, member
from situate.core.cel.types import DURATION, INT, STRING, TIMESTAMP
from situate.core.cel.values import INT64_MAX, INT64_MIN, DurationValue, TimestampValue

SECOND: Final = 10**9
_UNITS = {
    "ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND,
    "h": 3600 * SECOND,
}  # fmt: skip
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)
_OFFSET_PART = re.compile(r"[+-]?[0-9]+", re.ASCII)


def parse_duration(text: str) -> int | None:
    """Go's time.ParseDuration, in nanoseconds."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        return None
    total, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or not (part[1] or part[2]):
            return None
        whole, fraction, unit = part[1], part[2] or "", _UNITS[part[3]]
        if len(whole.lstrip("0")) > 19:
            return None
        number = int(whole or "0") * unit
        if fraction:
            number += int(int(fraction[:18]) * (unit / 10 ** len(fraction[:18])))
        total += number
        if total > 2**63:
            return None
        position = part.end()
    nanos = sign * total
    return nanos if INT64_MIN <= nanos <= INT64_MAX else None


def parse_timestamp(text: str) -> TimestampValue | None:
    """RFC 3339 as Go reads it: the hour may have one digit."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[index]) for index in range(1, 7))
    if hour > 23 or minute > 59 or second > 59 or not 1 <= month <= 12 or not 1 <= day <= _days(year, month):
        return None
    offset = 0
    if found[9]:
        hours, minutes = int(found[10]), int(found[11])
        if hours > 24 or minutes > 60:
            return None
        offset = (hours * 60 + minutes) * 60 * (-1 if found[9] == "-" else 1)
    nanos = int((found[7] or "0")[:9].ljust(9, "0"))
    days = _days_since_epoch(year, month, day)
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset
    return TimestampValue(seconds * SECOND + nanos, offset)


def _days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_since_epoch(year: int, month: int, day: int) -> int:
    """In the Gregorian calendar, whose years here begin in March."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


@dataclass(frozen=True, slots=True)
class _Local:
    """A point in time, taken apart."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    weekday: int  # from Sunday, which is 0
    day_of_year: int  # from 0
    nanos: int


def _local(time: TimestampValue, offset: int) -> _Local:
    days, seconds = divmod(time.nanos // SECOND + offset, 86_400)
    era, day = divmod(days + 719_468, 146_097)
    year_of_era = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    from_march = day - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * from_march + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = era * 400 + year_of_era + (month <= 2)
    return _Local(
        year=year,
        month=month,
        day=from_march - (153 * shifted + 2) // 5 + 1,
        hour=seconds // 3600,
        minute=seconds // 60 % 60,
        second=seconds % 60,
        weekday=(days + 4) % 7,
        day_of_year=days - _days_since_epoch(year, 1, 1),
        nanos=time.nanos % SECOND,
    )


def format_timestamp(time: TimestampValue) -> str:
    local = _local(time, time.offset)
    nanos = time.nanos % SECOND
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    zone = "Z"
    if time.offset:
        minutes = abs(time.offset) // 60
        zone = f"{'-' if time.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    day = f"{local.year:04d}-{local.month:02d}-{local.day:02d}"
    return f"{day}T{local.hour:02d}:{local.minute:02d}:{local.second:02d}{fraction}{zone}"


def _zone_offset(name: str, time: TimestampValue) -> int | ErrorValue:
    """Seconds east of UTC: of `+02:00`, or of the few names that need no database."""
    hours, colon, minutes = name.partition(":")
    if not colon:
        if name in ("UTC", "", "Local"):
            return 0
        return _named_offset(name, time)
    for part in (hours, minutes):
        if not _OFFSET_PART.fullmatch(part):
            return ErrorValue(f"strconv.Atoi: parsing {go_quote(part)}: invalid syntax")
    east = int(hours) * 60 - int(minutes) if name.startswith("-") else int(hours) * 60 + int(minutes)
    return east * 60


def _named_offset(name: str, time: TimestampValue) -> int | ErrorValue:
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ErrorValue(f"unknown time zone {name}")
    moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=time.nanos // SECOND)
    offset = moment.astimezone(zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


Getter = Callable[[_Local], int]


def _with_zone(get: Getter) -> Callable[[TimestampValue, str], Any]:
    def run(time: TimestampValue, zone: str = "UTC") -> Any:
        offset = _zone_offset(zone, time)
        if isinstance(offset, ErrorValue):
            return offset
        return get(_local(time, offset))

    return run


def _getter(name: str, label: str, get: Getter, of_duration: Callable[[DurationValue], int] | None = None) -> Function:
    code = _with_zone(get)
    overloads = [
        member(f"timestamp_to_{label}", (TIMESTAMP,), INT, code),
        member(f"timestamp_to_{label}_with_tz", (TIMESTAMP, STRING), INT, code),
    ]
    if of_duration is not None:
        overloads.append(member(f"duration_to_{label}", (DURATION,), INT, of_duration))
    return Function(name, tuple(overloads))


def _truncated(nanos: int, unit: int) -> int:
    return nanos // unit if nanos >= 0 else -(-nanos // unit)


LIBRARY = Library(
    (
        _getter("getFullYear", "year", lambda local: local.year),
        _getter("getMonth", "month", lambda local: local.month - 1),
        _getter("getDayOfYear", "day_of_year", lambda local: local.day_of_year),
        _getter("getDayOfMonth", "day_of_month", lambda local: local.day - 1),
        _getter("getDate", "day_of_month_1_based", lambda local: local.day),
        _getter("getDayOfWeek", "day_of_week", lambda local: local.weekday),
        _getter("getHours", "hours", lambda local: local.hour, lambda value: _truncated(value.nanos, 3600 * SECOND)),
        _getter(
            "getMinutes", "minutes", lambda local: local.minute, lambda value: _truncated(value.nanos, 60 * SECOND)
        ),
        _getter("getSeconds", "seconds", lambda local: local.second, lambda value: _truncated(value.nanos, SECOND)),
        _getter(
            "getMilliseconds",
            "milliseconds",
            lambda local: local.nanos // 10**6,
            lambda value: _truncated(value.nanos, 10**6),
        ),
    )
)
