"""Columns grow by doubling, keep what they hold, and are shown read-only."""

import numpy as np
import pytest

from situate.core.state.columns import FIRST_CAPACITY, capacity_for, grown, sealed


def test_room_is_made_in_powers_of_two() -> None:
    assert [capacity_for(wanted) for wanted in (1, 16, 17, 32, 33)] == [FIRST_CAPACITY, 16, 32, 32, 64]


def test_a_grown_column_keeps_its_rows_and_fills_the_rest() -> None:
    flat = grown(np.array([1, 2], np.int64), 4, -1)
    assert flat.tolist() == [1, 2, -1, -1]
    stacked = grown(np.array([[1, 2], [3, 4]], np.int64), 3, 0)
    assert stacked.tolist() == [[1, 2, 0], [3, 4, 0]]


def test_a_sealed_column_cannot_be_written_and_shows_what_is_written_to_the_other() -> None:
    column = np.zeros(2, np.int64)
    shown = sealed(column)
    with pytest.raises(ValueError, match="read-only"):
        shown[0] = 1
    column[0] = 7
    assert shown.tolist() == [7, 0]
