"""Integers from text: what Go reads is read, what Go refuses is refused, however long it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.core.model.integers import parse_count, parse_int32, parse_int64, saturated_int64

ENDS = [-(2**63), -(2**31), 0, 2**31 - 1, 2**63 - 1]
NOT_FOR_GO = ["", "-", "+", "+-1", "1_000", " 1", "1 ", "1\n", "\u0661", "\u00b2", "1e3", "1.0", "0x1", "\0", "nan"]
LONG = "9" * 5_000
"""Python's own int raises ValueError for more than 4,300 digits."""


@given(st.one_of(st.integers(), st.sampled_from(ENDS)))
def test_a_number_is_read_as_it_was_written_if_it_fits(number: int) -> None:
    assert parse_int64(str(number)) == (number if -(2**63) <= number < 2**63 else None)
    assert parse_int32(str(number)) == (number if -(2**31) <= number < 2**31 else None)
    assert parse_count(str(number)) == (number if 0 <= number < 2**63 else None)
    assert saturated_int64(str(number)) == max(-(2**63), min(number, 2**63 - 1))


@pytest.mark.parametrize("text", NOT_FOR_GO)
def test_what_go_does_not_read_is_not_a_number(text: str) -> None:
    assert (parse_int64(text), parse_int32(text), parse_count(text), saturated_int64(text)) == (None,) * 4


def test_thousands_of_digits_are_no_number_or_the_end_of_the_range() -> None:
    assert parse_int64(LONG) is parse_int32(LONG) is parse_count(LONG) is None
    assert saturated_int64(LONG) == 2**63 - 1
    assert saturated_int64(f"-{LONG}") == -(2**63)
    assert saturated_int64("0" * 5_000 + "7") == 7


def test_a_count_has_no_sign() -> None:
    assert parse_count("+1") is None
    assert parse_int64("+1") == 1
