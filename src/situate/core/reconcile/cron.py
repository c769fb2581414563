"""Cron schedules: five fields, macros such as `@daily`, or `@every 90m`.

The caller supplies time zones as a function. A minute that a clock change skips is not scheduled; one that it repeats
is scheduled twice.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from situate.core.model.base import EMPTY
from situate.core.model.duration import parse_duration

Zones = Callable[[str, int], int | None]
"""(zone, seconds since the epoch) to the offset in seconds east of UTC; None: unknown zone."""

MINUTE, HOUR, DAY = 60, 3_600, 86_400
FIELDS = 5
HORIZON = 5 * 366 * DAY
"""The search limit for the next time, for the sake of 29 February."""

SHORTEST_MONTH = 28

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {"JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"[at * 3 : at * 3 + 3]: at + 1 for at in range(12)}
_WEEKDAYS = {"SUNMONTUEWEDTHUFRISAT"[at * 3 : at * 3 + 3]: at for at in range(7)}
_LONGEST = {month: 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31 for month in range(1, 13)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WINDOWS = (HOUR, DAY, 32 * DAY, 366 * DAY, HORIZON)


class ScheduleError(ValueError):
    """The text is not a schedule."""


class Schedule(msgspec.Struct, frozen=True):
    """Fields as sets of numbers, or `every` in seconds."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = False
    any_weekday: bool = False
    every: int = 0

    @property
    def never(self) -> bool:
        """Whether no month has such a day, as 31 February."""
        either = not self.any_day and not self.any_weekday
        return not self.every and not either and min(self.days) > max(_LONGEST[month] for month in self.months)

    def has_day(self, local: datetime) -> bool:
        """If day and weekday are both restricted, either matches."""
        by_date = local.day in self.days
        by_weekday = local.isoweekday() % 7 in self.weekdays
        either = not self.any_day and not self.any_weekday
        return local.month in self.months and (by_date or by_weekday if either else by_date and by_weekday)


def only_utc(zone: str, _at: int) -> int | None:
    """The zones that are known without a time zone database."""
    return 0 if zone in ("", "UTC", "Etc/UTC", "GMT", "Etc/GMT") else None


def parse_schedule(text: str) -> Schedule:
    text = text.strip()
    if text.startswith("@every "):
        try:
            seconds = parse_duration(text.removeprefix("@every ").strip()) // 1_000_000_000
        except ValueError as error:
            raise ScheduleError(f"failed to parse duration {text}: {error}") from None
        return Schedule(every=max(seconds, 1))
    if text.startswith("@") and text not in _MACROS:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    parts = _MACROS.get(text, text).split()
    if len(parts) != FIELDS:
        raise ScheduleError(f"expected exactly {FIELDS} fields, found {len(parts)}: {parts}")
    return Schedule(
        minutes=_field(parts[0], 0, 59),
        hours=_field(parts[1], 0, 23),
        days=_field(parts[2], 1, 31),
        months=_field(parts[3], 1, 12, _MONTHS),
        weekdays=_field(parts[4], 0, 6, _WEEKDAYS),
        any_day=_is_any(parts[2]),
        any_weekday=_is_any(parts[4]),
    )


def _is_any(text: str) -> bool:
    return any(part.partition("/")[0] in ("*", "?") for part in text.split(","))


def _field(text: str, low: int, high: int, names: Mapping[str, int] = EMPTY) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, EMPTY, part) if slash else 1
        first_text, dash, last_text = span.partition("-")
        if span in ("*", "?"):
            first, last = low, high
        else:
            first = _number(first_text, names, part)
            last = _number(last_text, names, part) if dash else high if slash else first
        if first < low or last > high or first > last or step < 1:
            raise ScheduleError(f"range out of bounds ({low}-{high}): {part}")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, names: Mapping[str, int], part: str) -> int:
    found = names.get(text.upper())
    if found is not None:
        return found
    if not (text.isascii() and text.isdigit()) or len(text) > 4:
        raise ScheduleError(f"failed to parse int from {text}: {part}")
    return int(text)


def _local(zones: Zones, zone: str, at: int) -> datetime:
    return _EPOCH + timedelta(seconds=at + (zones(zone, at) or 0))


def _next_day(zones: Zones, zone: str, at: int, local: datetime) -> int:
    """The first minute of the next day; if the clock is set back today, a later minute of today."""
    there = at + DAY - (local.hour * HOUR + local.minute * MINUTE)
    past = _local(zones, zone, there)
    # If the clock was set forward, this is past midnight: go back to it, unless midnight itself is skipped.
    begin = there - (past.hour * HOUR + past.minute * MINUTE)
    return begin if begin > at and _local(zones, zone, begin).date() == past.date() else there


def upcoming(schedule: Schedule, after: int, zone: str = "", zones: Zones = only_utc) -> int | None:
    """The first scheduled second after `after`; None: none before HORIZON."""
    if schedule.every:
        return after + schedule.every
    if schedule.never:
        return None
    at = after - after % MINUTE + MINUTE
    end = after + HORIZON
    while at <= end:
        local = _local(zones, zone, at)
        if local.month not in schedule.months and local.day < SHORTEST_MONTH:
            at += (SHORTEST_MONTH - local.day) * DAY  # still this month
        elif not schedule.has_day(local):
            at = _next_day(zones, zone, at, local)
        elif local.hour not in schedule.hours:
            at += HOUR - local.minute * MINUTE
        elif local.minute not in schedule.minutes:
            at += MINUTE
        else:
            return at
    return None


def latest(schedule: Schedule, after: int, until: int, zone: str = "", zones: Zones = only_utc) -> int | None:
    """The last scheduled second after `after` and not after `until`."""
    if after >= until:
        return None
    if schedule.every:
        times = (until - after) // schedule.every
        return after + times * schedule.every if times > 0 else None
    for window in _WINDOWS:
        start = max(after, until - window)
        found = None
        at = upcoming(schedule, start, zone, zones)
        while at is not None and at <= until:
            found, at = at, upcoming(schedule, at, zone, zones)
        if found is not None or start == after:
            return found
    return None
