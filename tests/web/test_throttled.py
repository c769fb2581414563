"""Rows that are made once a second at most, and sent only when they differ."""

from typing import Any

from situate.web.limits import WAITING_S
from situate.web.throttled import ThrottledRows


def test_rows_are_made_again_after_a_while_and_only_if_something_changed() -> None:
    made: list[int] = []
    clock = [0.0]

    def make() -> dict[str, Any]:
        made.append(len(made))
        return {"rows": made[-1]}

    rows = ThrottledRows(make, lambda: clock[0])
    assert rows.read(now=1, since=-1) == {"rows": 0}
    rows.changed(2)
    assert rows.read(now=2, since=1) is None
    late = rows.late
    assert late, "it is too soon to make them again"
    clock[0] += WAITING_S
    assert rows.read(now=2, since=1) == {"rows": 1}
    late = rows.late
    assert not late
    clock[0] += WAITING_S
    assert rows.read(now=3, since=2) is None
    assert made == [0, 1]


def test_rows_that_are_the_same_as_before_are_told_to_nobody() -> None:
    clock = [0.0]
    rows = ThrottledRows(lambda: {"rows": []}, lambda: clock[0])
    assert rows.read(now=1, since=-1) == {"rows": []}
    rows.changed(2)
    clock[0] += WAITING_S
    assert rows.read(now=2, since=1) is None
    assert not rows.late
    assert rows.read(now=2, since=-1) == {"rows": []}, "but to somebody who is new"
