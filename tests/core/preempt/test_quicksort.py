"""The order of equals is that of Go's sort.Slice; `data/sorted_by_go.jsonl` is what Go 1.26 made of such keys."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.preempt import quicksort
from situate.core.preempt.quicksort import order_of

RECORDED = [
    json.loads(line) for line in (Path(__file__).parent / "data" / "sorted_by_go.jsonl").read_text().splitlines()
]


def test_equals_come_out_as_go_leaves_them() -> None:
    wrong = [case for case in RECORDED if order_of(case["keys"]) != case["order"]]
    assert not wrong


def test_the_recorded_cases_are_not_those_of_a_stable_sort() -> None:
    unstable = [
        case for case in RECORDED if sorted(case["order"], key=lambda at: (case["keys"][at], at)) != case["order"]
    ]
    assert len(unstable) > 50


def test_up_to_twelve_equals_keep_their_order() -> None:
    assert order_of([5] * 12) == list(range(12))


def test_a_few_equals_that_each_compare_as_less_are_turned_round() -> None:
    assert order_of([5, 5, 5, 4], [True, True, True, False]) == [3, 2, 1, 0]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 9), max_size=150))
def test_the_result_is_sorted_and_nothing_is_lost(keys: list[int]) -> None:
    order = order_of(keys)
    assert sorted(order) == list(range(len(keys)))
    assert [keys[at] for at in order] == sorted(keys)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 9), min_size=13, max_size=60))
def test_it_sorts_even_when_every_pivot_was_bad(keys: list[int]) -> None:
    items = [(key, False, at) for at, key in enumerate(keys)]
    quicksort._sort(items, 0, len(items), bad_pivots=0)
    assert [key for key, _, _ in items] == sorted(keys)
    assert sorted(at for _, _, at in items) == list(range(len(keys)))


@pytest.mark.parametrize("length", [13, 49, 50, 200])
def test_what_is_sorted_already_stays_as_it_is(length: int) -> None:
    keys = [at // 3 for at in range(length)]
    assert order_of(keys) == list(range(length))
