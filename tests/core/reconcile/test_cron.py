"""Schedules: what they say, and when that is, also where clocks are changed."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.reconcile.cron import Schedule, ScheduleError, latest, only_utc, parse_schedule, upcoming


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def zones(name: str, when: int) -> int | None:
    try:
        zone = ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return None
    offset = datetime.fromtimestamp(when, zone).utcoffset()
    return None if offset is None else int(offset.total_seconds())


@pytest.mark.parametrize(
    "schedule, after, expected",
    [
        pytest.param("* * * * *", "2024-01-01T00:00:30", "2024-01-01T00:01:00", id="every minute"),
        pytest.param("*/15 * * * *", "2024-01-01T00:15:00", "2024-01-01T00:30:00", id="later than the time itself"),
        pytest.param("30 4 * * *", "2024-01-01T05:00:00", "2024-01-02T04:30:00", id="once a day"),
        pytest.param("0 0 1 1 *", "2024-01-01T00:00:00", "2025-01-01T00:00:00", id="once a year"),
        pytest.param("0 0 29 2 *", "2024-03-01T00:00:00", "2028-02-29T00:00:00", id="in leap years"),
        pytest.param("0 12 * * mon-fri", "2024-01-05T12:00:00", "2024-01-08T12:00:00", id="on working days"),
        pytest.param("0 12 * JAN,mar sun", "2024-01-29T00:00:00", "2024-03-03T12:00:00", id="names in any case"),
        pytest.param("0 0 13 * 5", "2024-01-01T00:00:00", "2024-01-05T00:00:00", id="both kinds of days: either"),
        pytest.param("0 0 */2 * 5", "2024-01-01T00:00:00", "2024-01-05T00:00:00", id="a step of all is all: both"),
        pytest.param("5/20 1 * * *", "2024-01-01T01:05:00", "2024-01-01T01:25:00", id="from five on, each twentieth"),
        pytest.param("0 0 ? * 0", "2024-01-01T00:00:00", "2024-01-07T00:00:00", id="a question mark is a star"),
        pytest.param("@hourly", "2024-01-01T00:30:00", "2024-01-01T01:00:00", id="hourly"),
        pytest.param("@weekly", "2024-01-01T00:30:00", "2024-01-07T00:00:00", id="weekly"),
        pytest.param("@monthly", "2024-01-01T00:30:00", "2024-02-01T00:00:00", id="monthly"),
        pytest.param("@yearly", "2024-01-01T00:30:00", "2025-01-01T00:00:00", id="yearly"),
        pytest.param("@every 90s", "2024-01-01T00:00:10", "2024-01-01T00:01:40", id="every so often"),
    ],
)
def test_when_it_is_next(schedule: str, after: str, expected: str) -> None:
    assert upcoming(parse_schedule(schedule), at(after)) == at(expected)


def test_a_day_that_never_comes_is_not_waited_for() -> None:
    assert upcoming(parse_schedule("0 0 30 2 *"), at("2024-01-01T00:00:00")) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("* * * *", id="four fields"),
        pytest.param("* * * * * *", id="six fields"),
        pytest.param("60 * * * *", id="a minute that is not"),
        pytest.param("* * 0 * *", id="a day that is not"),
        pytest.param("* * * 13 *", id="a month that is not"),
        pytest.param("* * * * 7", id="a weekday that is not"),
        pytest.param("5-1 * * * *", id="a range backwards"),
        pytest.param("*/0 * * * *", id="a step of none"),
        pytest.param("a * * * *", id="a word"),
        pytest.param("@noon", id="a word that is not one of those"),
        pytest.param("@every day", id="a length of time that is none"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(text)


def test_in_a_zone_it_is_that_zones_time() -> None:
    found = upcoming(parse_schedule("0 9 * * *"), at("2024-07-01T00:00:00"), "America/New_York", zones)
    assert found == at("2024-07-01T13:00:00")


def test_an_hour_that_a_clock_skips_is_skipped() -> None:
    schedule = parse_schedule("30 2 * * *")
    found = upcoming(schedule, at("2024-03-10T00:00:00"), "America/New_York", zones)
    assert found == at("2024-03-11T06:30:00")


def test_a_midnight_that_a_clock_skips_is_got_over() -> None:
    schedule = parse_schedule("30 4 1 5 *")
    found = upcoming(schedule, at("2024-04-20T00:00:00"), "Africa/Cairo", zones)
    assert found == at("2024-05-01T01:30:00")


def test_an_hour_that_a_clock_repeats_is_scheduled_twice() -> None:
    schedule = parse_schedule("30 1 * * *")
    first = upcoming(schedule, at("2024-11-03T00:00:00"), "America/New_York", zones)
    assert first == at("2024-11-03T05:30:00")
    assert upcoming(schedule, at("2024-11-03T05:30:00"), "America/New_York", zones) == at("2024-11-03T06:30:00")


def test_without_a_table_of_zones_only_utc_is_known() -> None:
    assert only_utc("UTC", 0) == 0
    assert only_utc("", 0) == 0
    assert only_utc("Europe/Berlin", 0) is None


FIELDS = st.tuples(
    st.sampled_from(["*", "0", "*/7", "5,50", "30-40/3"]),
    st.sampled_from(["*", "0", "2", "3-5", "*/6"]),
    st.sampled_from(["*", "1", "15", "31", "*/10"]),
    st.sampled_from(["*", "3", "10-11", "feb"]),
    st.sampled_from(["*", "0", "mon", "1-5"]),
)
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Cairo"]
)


def plainly(schedule: Schedule, after: int, zone: str, days: int) -> int | None:
    """Minute by minute."""
    local = ZoneInfo(zone)
    start = datetime.fromtimestamp(after - after % 60, UTC)
    for minute in range(1, days * 24 * 60):
        when = start + timedelta(minutes=minute)
        here = when.astimezone(local)
        if here.minute in schedule.minutes and here.hour in schedule.hours and schedule.has_day(here):
            return int(when.timestamp())
    return None


@settings(max_examples=40, deadline=None)
@given(fields=FIELDS, zone=ZONES, month=st.sampled_from([1, 2, 3, 4, 9, 10, 11]), day=st.integers(1, 31))
def test_it_is_what_going_minute_by_minute_finds(fields: tuple[str, ...], zone: str, month: int, day: int) -> None:
    schedule = parse_schedule(" ".join(fields))
    after = int(datetime(2024, month, 1, 22, 13, 7, tzinfo=UTC).timestamp()) + (day - 1) * 86_400
    expected = plainly(schedule, after, zone, 2)
    found = upcoming(schedule, after, zone, zones)
    if expected is not None:
        assert found == expected
    else:
        assert found is None or found >= after + 2 * 86_400 - 120


@settings(max_examples=40, deadline=None)
@given(fields=FIELDS, zone=ZONES, length=st.integers(0, 40 * 86_400))
def test_the_latest_is_the_last_of_all_that_were(fields: tuple[str, ...], zone: str, length: int) -> None:
    schedule = parse_schedule(" ".join(fields))
    after = at("2024-03-01T12:34:56")
    until = after + length
    found = latest(schedule, after, until, zone, zones)
    if found is None:
        first = upcoming(schedule, after, zone, zones)
        assert first is None or first > until
    else:
        assert after < found <= until
        following = upcoming(schedule, found, zone, zones)
        assert following is None or following > until


@pytest.mark.parametrize(
    "text, steps", [("0 0 31 2 *", 0), ("0 0 30 2 *", 0), ("0 0 29 2 *", 4_000), ("0 0 1 1 *", 1_000)]
)
def test_a_rare_day_or_none_takes_few_steps(text: str, steps: int) -> None:
    """Each step takes the control plane's time, and a namespace may have many CronJobs."""
    asked = []

    def zones(zone: str, at: int) -> int | None:
        asked.append(at)
        return 0

    latest(parse_schedule(text), 0, 1_800_000_000, "", zones)
    upcoming(parse_schedule(text), 1_800_000_000, "", zones)
    assert len(asked) <= steps
