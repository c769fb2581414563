"""Who comes: the same seed the same pods, the whole trace first, and no more than the cluster is asked for."""

from collections import Counter

import pytest

from situate.sim.openb.experiment import arrivals
from trace_openb import CAPACITY, PODS


def test_the_same_seed_brings_the_same_pods_and_another_seed_others() -> None:
    assert arrivals(PODS, 42, 2 * CAPACITY) == arrivals(PODS, 42, 2 * CAPACITY)
    assert arrivals(PODS, 42, 2 * CAPACITY) != arrivals(PODS, 43, 2 * CAPACITY)


def test_all_of_the_trace_comes_first_and_then_some_of_it_again() -> None:
    coming = arrivals(PODS, 42, 2 * CAPACITY)
    assert Counter(coming[: len(PODS)]) == Counter(PODS)
    assert coming[: len(PODS)] != list(PODS)
    assert 2 * CAPACITY - 2_000 < sum(pod.ask.demand for pod in coming) <= 2 * CAPACITY


def test_where_the_trace_asks_for_more_some_of_it_stay_away() -> None:
    coming = arrivals(PODS, 42, 4_000)
    assert not Counter(coming) - Counter(PODS)
    assert 2_000 < sum(pod.ask.demand for pod in coming) <= 4_000


@pytest.mark.parametrize("seed", range(5))
def test_redrawn_pods_come_until_enough_is_asked_for(seed: int) -> None:
    coming = arrivals(PODS, seed, 3 * CAPACITY, redraw=True)
    asked = sum(pod.ask.demand for pod in coming)
    assert asked >= 3 * CAPACITY > asked - coming[-1].ask.demand
    assert Counter(coming[: len(PODS)]) != Counter(PODS)
