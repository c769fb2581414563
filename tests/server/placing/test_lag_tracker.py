"""How far nodes are behind what was committed for them."""

from hypothesis import given
from hypothesis import strategies as st

from situate.server.placing.lag_tracker import MOST_WAITING, LagTracker


def test_a_lag_is_the_time_from_the_commit_to_the_acknowledgement() -> None:
    lags = LagTracker()
    lags.acknowledged("n", 1, 0.0)
    lags.committed("n", 5, 10.0)
    lags.committed("n", 6, 11.0)
    assert lags.acknowledged("n", 5, 12.0) == [2.0]
    assert lags.acknowledged("n", 7, 14.0) == [3.0]
    assert list(lags.behind(100.0, 0.0)) == []


def test_a_node_that_has_never_acknowledged_anything_is_not_measured() -> None:
    lags = LagTracker()
    lags.committed("kubelet", 5, 10.0)
    assert list(lags.behind(100.0, 0.0)) == []
    assert lags.acknowledged("kubelet", 5, 100.0) == []


def test_who_is_behind_is_so_since_the_oldest_version_that_it_does_not_have() -> None:
    lags = LagTracker()
    lags.acknowledged("n", 1, 0.0)
    lags.committed("n", 5, 10.0)
    lags.committed("n", 6, 14.0)
    assert list(lags.behind(15.0, 5.0)) == []
    assert list(lags.behind(15.5, 5.0)) == [("n", 5, 5.5)]
    lags.gone("n")
    assert list(lags.behind(15.5, 5.0)) == []


def test_what_was_there_before_anybody_looked_counts_from_then() -> None:
    lags = LagTracker()
    lags.acknowledged("n", 1, 0.0)
    lags.begun("n", 4, 3.0)
    lags.committed("n", 4, 3.5)
    assert lags.acknowledged("n", 4, 5.0) == [2.0]


def test_a_node_that_is_dead_for_long_takes_little_room() -> None:
    lags = LagTracker()
    lags.acknowledged("n", 1, 0.0)
    for version in range(2, 10_000):
        lags.committed("n", version, float(version))
    assert len(lags.acknowledged("n", 10_000, 20_000.0)) == MOST_WAITING


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30)), max_size=60))
def test_no_version_is_measured_twice_and_none_before_its_commit(told: list[tuple[bool, int]]) -> None:
    lags = LagTracker()
    lags.acknowledged("n", 0, 0.0)
    committed, measured = 0, 0
    for at, (is_commit, version) in enumerate(told, 1):
        if is_commit:
            lags.committed("n", version, float(at))
            committed += 1
        else:
            taken = lags.acknowledged("n", version, float(at))
            measured += len(taken)
            assert all(seconds > 0 for seconds in taken)
    assert measured <= committed


def test_what_was_acknowledged_before_it_was_seen_is_not_waited_for() -> None:
    lags = LagTracker()
    lags.acknowledged("n", 5, 0.0)
    lags.committed("n", 5, 1.0)
    lags.committed("n", 4, 1.0)
    lags.begun("n", 5, 1.0)
    assert list(lags.behind(100.0, 0.0)) == []
    assert lags.acknowledged("n", 9, 2.0) == []


def test_a_version_that_is_told_twice_counts_once_from_the_first_time() -> None:
    lags = LagTracker()
    lags.acknowledged("n", 1, 0.0)
    lags.begun("n", 5, 1.0)
    lags.committed("n", 5, 2.0)
    lags.begun("n", 6, 3.0)
    lags.committed("n", 4, 3.0)
    assert lags.acknowledged("n", 6, 10.0) == [9.0]


def test_an_acknowledgement_that_comes_again_or_late_changes_nothing() -> None:
    lags = LagTracker()
    lags.acknowledged("n", 3, 0.0)
    lags.committed("n", 5, 1.0)
    assert lags.acknowledged("n", 3, 2.0) == lags.acknowledged("n", 2, 2.0) == []
    assert list(lags.behind(3.0, 1.0)) == [("n", 5, 2.0)]
    lags.gone("n")
    lags.committed("n", 6, 4.0)
    assert list(lags.behind(100.0, 0.0)) == [], "it is not measured until it acknowledges something"
    assert lags.acknowledged("n", 0, 5.0) == []
    lags.committed("n", 6, 6.0)
    assert list(lags.behind(8.0, 1.0)) == [("n", 6, 2.0)]


def test_a_node_that_is_told_of_before_its_first_acknowledgement_is_not_behind() -> None:
    lags = LagTracker()
    lags.begun("n", 5, 0.0)
    assert list(lags.behind(100.0, 0.0)) == []
