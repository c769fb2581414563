"""Selecting: the highest total; among equals, the first in node order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from situate.core.place.selecting import NOWHERE, best_rows, first_best


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12))
def test_the_best_are_all_feasible_rows_with_the_highest_total(rows: list[tuple[int, bool]]) -> None:
    total = np.array([score for score, _ in rows], np.int64)
    feasible = np.array([fits for _, fits in rows], np.bool_)
    highest = max((score for score, fits in rows if fits), default=None)
    expected = [at for at, (score, fits) in enumerate(rows) if fits and score == highest]
    assert best_rows(total, feasible).tolist() == expected
    rank = np.where(feasible, total, -1)
    assert first_best(rank) == (expected[0] if expected else NOWHERE)
