"""Durations are read and written as Go does."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    "text, nanoseconds",
    [
        pytest.param("0", 0, id="a bare zero needs no unit"),
        pytest.param("0s", 0, id="zero with a unit"),
        pytest.param("15s", 15_000_000_000, id="seconds"),
        pytest.param("-1s", -1_000_000_000, id="a negative one"),
        pytest.param("+1ms", 1_000_000, id="a plus sign"),
        pytest.param("1h2m3.5s", 3_723_500_000_000, id="several units add up"),
        pytest.param("2us", 2_000, id="microseconds in ASCII"),
        pytest.param("2\u00b5s", 2_000, id="microseconds with the micro sign"),
        pytest.param("2\u03bcs", 2_000, id="microseconds with the Greek letter"),
        pytest.param(".5s", 500_000_000, id="nothing before the point"),
        pytest.param("1.s", 1_000_000_000, id="nothing after the point"),
        pytest.param("0.9ns", 0, id="less than a nanosecond is cut off"),
        pytest.param("9223372036854775807ns", 2**63 - 1, id="the longest"),
        pytest.param("-9223372036854775808ns", -(2**63), id="the most negative"),
    ],
)
def test_a_duration_is_read(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text, problem",
    [
        pytest.param("", 'time: invalid duration ""', id="nothing"),
        pytest.param("-", 'time: invalid duration "-"', id="a sign alone"),
        pytest.param("s", 'time: invalid duration "s"', id="a unit alone"),
        pytest.param(".s", 'time: invalid duration ".s"', id="a point alone"),
        pytest.param("15", 'time: missing unit in duration "15"', id="no unit"),
        pytest.param("15 seconds", 'time: unknown unit " seconds" in duration "15 seconds"', id="a unit in words"),
        pytest.param("1d", 'time: unknown unit "d" in duration "1d"', id="days"),
        pytest.param("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"', id="too long by one"),
        pytest.param("9" * 5_000 + "h", f'time: invalid duration "{"9" * 5_000}h"', id="more digits than any number"),
        pytest.param('1"s', 'time: unknown unit "\\"s" in duration "1\\"s"', id="a quote"),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^time: ") as raised:
        parse_duration(text)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    "nanoseconds, text",
    [
        pytest.param(0, "0s", id="zero"),
        pytest.param(1, "1ns", id="nanoseconds"),
        pytest.param(1_100, "1.1\u00b5s", id="microseconds"),
        pytest.param(2_200_000, "2.2ms", id="milliseconds"),
        pytest.param(3_300_000_000, "3.3s", id="seconds"),
        pytest.param(600_000_000_000, "10m0s", id="minutes have seconds"),
        pytest.param(3_600_000_000_000, "1h0m0s", id="hours have minutes and seconds"),
        pytest.param(-1_500_000_000, "-1.5s", id="a negative one"),
        pytest.param(-(2**63), "-2562047h47m16.854775808s", id="the most negative"),
    ],
)
def test_a_duration_is_written(nanoseconds: int, text: str) -> None:
    assert format_duration(nanoseconds) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_is_read_back(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


@given(st.text("0123456789.hmsun\u00b5-+ ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert -(2**63) <= parse_duration(text) < 2**63
