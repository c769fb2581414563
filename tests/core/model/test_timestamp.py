"""Times are RFC 3339 text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.timestamp import TimestampError, epoch_ms


@pytest.mark.parametrize(
    "text, ms",
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59Z", -1000),
        ("2026-07-30T12:00:00Z", 1785412800000),
        ("2026-07-30t12:00:00.123456789z", 1785412800123),
        ("2026-07-30T07:30:00-04:30", 1785412800000),
    ],
)
def test_a_time_in_milliseconds(text: str, ms: int) -> None:
    assert epoch_ms(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-07-30",
        "2026-07-30T12:00:00",
        "2026-13-01T00:00:00Z",
        "2026-07-30T25:00:00Z",
        "0000-01-01T00:00:00Z",
    ]
    + ["2026-07-30 12:00:00Z", "２０２６-07-30T12:00:00Z", "2026-07-30T12:00:00Z\n", "2026-07-30T12:00:00+25:00"],
)
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(TimestampError, match="as an RFC 3339 time"):
        epoch_ms(text)


@given(
    st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29)),  # noqa: DTZ001
    st.integers(-23 * 60, 23 * 60),
)
def test_a_time_agrees_with_datetime(when: datetime, minutes: int) -> None:
    aware = when.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert epoch_ms(aware.isoformat()) == expected
