"""Times, shares of a number, conditions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.stored import Condition
from situate.core.reconcile.api_values import format_time, parse_time, scaled_value, with_condition, without_condition


@given(st.integers(0, 4_000_000_000_000))
def test_a_time_that_is_written_reads_as_its_second(now: int) -> None:
    assert parse_time(format_time(now)) == now - now % 1000


def test_what_is_no_time_is_none() -> None:
    assert parse_time(None) is None
    assert parse_time("tomorrow") is None


@pytest.mark.parametrize(
    "part, of, up, expected",
    [
        pytest.param(3, 10, True, 3, id="a number is itself"),
        pytest.param("25%", 10, True, 3, id="a percentage rounded up"),
        pytest.param("25%", 10, False, 2, id="a percentage rounded down"),
        pytest.param("0%", 10, True, 0, id="nothing of it"),
        pytest.param("150%", 10, True, 15, id="more than all of it"),
        pytest.param(None, 10, True, 0, id="none"),
        pytest.param("many", 10, True, 0, id="a word"),
        pytest.param("-5%", 10, True, 0, id="a negative percentage"),
        pytest.param("9" * 5_000 + "%", 10, True, 2**31 - 1, id="thousands of digits are as many as there can be"),
        pytest.param("99999999999%", 2**31 - 1, False, 2**31 - 1, id="no more than an int32 holds"),
    ],
)
def test_a_share_of_a_number(part: int | str | None, of: int, up: bool, expected: int) -> None:
    assert scaled_value(part, of, up=up) == expected


def condition(status: str, reason: str, at: str) -> Condition:
    return Condition(type="T", status=status, reason=reason, last_transition_time=at, last_update_time=at)


def test_a_condition_with_the_same_status_and_reason_stays_as_it_was() -> None:
    held = (condition("True", "A", "t1"),)
    assert with_condition(held, condition("True", "A", "t2")) is held


def test_a_new_reason_keeps_the_time_of_the_last_transition() -> None:
    (new,) = with_condition((condition("True", "A", "t1"),), condition("True", "B", "t2"))
    assert (new.reason, new.last_transition_time, new.last_update_time) == ("B", "t1", "t2")


def test_a_new_status_is_a_transition() -> None:
    (new,) = with_condition((condition("True", "A", "t1"),), condition("False", "A", "t2"))
    assert new.last_transition_time == "t2"


def test_a_condition_is_taken_away() -> None:
    held = (condition("True", "A", "t1"), Condition(type="U"))
    assert [one.type for one in without_condition(held, "T")] == ["U"]
    assert without_condition(held, "V") is held
