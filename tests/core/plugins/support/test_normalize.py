"""Scores in proportion to the highest of the feasible nodes, rounded down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.contract import MAX_SCORE
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.plugins.support.normalize import NodeRanking, cached_scores, constant, normalized, rank_scores, ranked
from situate.core.state.cluster import Cluster
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.view import FEASIBLE, View


def by_hand(raw: list[int], feasible: list[bool], reverse: bool) -> dict[int, int]:
    """Of each feasible node, as Kubernetes puts it."""
    top = max((score for score, fits in zip(raw, feasible, strict=True) if fits), default=0)
    scores = {}
    for at, score in enumerate(raw):
        if feasible[at]:
            share = MAX_SCORE * score // top if top else 0
            scores[at] = MAX_SCORE - share if reverse else share
    return scores


def cluster_of(size: int) -> Cluster:
    cluster = Cluster()
    for at in range(size):
        cluster.add_node(Node(metadata=ObjectMeta(name=f"n{at}")))
    return cluster


RAW = st.lists(st.tuples(st.integers(0, 300), st.booleans()), min_size=1, max_size=8)


@settings(max_examples=150)
@given(RAW, st.booleans())
def test_normalised_scores_are_those_of_the_rule(rows: list[tuple[int, bool]], reverse: bool) -> None:
    raw, feasible = [score for score, _ in rows], [fits for _, fits in rows]
    got = normalized(np.array(raw), np.array(feasible), reverse=reverse)
    assert {at: int(got[at]) for at, fits in enumerate(feasible) if fits} == by_hand(raw, feasible, reverse)


@settings(max_examples=150)
@given(RAW, st.booleans(), st.data())
def test_a_kept_ranking_settles_to_the_same_whatever_is_feasible(
    rows: list[tuple[int, bool]], reverse: bool, data: st.DataObject
) -> None:
    cluster = cluster_of(len(rows))
    raw = [score for score, _ in rows]
    for feasible in (
        [fits for _, fits in rows],
        data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))),
    ):
        view = View(cluster).scoring(np.array(feasible))
        got = cached_scores("kept", lambda whole: ranked(np.array(raw), whole, reverse=reverse), view, reverse=reverse)
        assert {at: int(got[at]) for at, fits in enumerate(feasible) if fits} == by_hand(raw, feasible, reverse)


def scores(raw: list[int], feasible: list[bool], *, reverse: bool = False) -> tuple[list[int], bool]:
    """And whether it was asked which nodes are feasible."""
    view = View(cluster_of(len(raw))).scoring(np.array(feasible))
    got = cached_scores("some", lambda whole: ranked(np.array(raw), whole, reverse=reverse), view, reverse=reverse)
    return got.tolist(), bool(view.reads & FEASIBLE)


def test_scores_that_are_all_alike_do_not_ask_which_nodes_are_feasible() -> None:
    assert scores([0, 0], [True, False]) == ([0, 0], False)
    assert scores([0, 0], [True, False], reverse=True) == ([100, 100], False)
    assert scores([7, 7], [True, False]) == ([100, 100], False)
    assert scores([7, 7], [True, False], reverse=True) == ([0, 0], False)


def test_scores_that_differ_are_measured_against_the_best_feasible_node() -> None:
    assert scores([1, 3, 9], [True, True, True]) == ([11, 33, 100], True)
    got, asked = scores([1, 3, 9], [True, True, False])
    assert (got[:2], asked) == ([33, 100], True)


def test_an_empty_row_is_no_node_to_be_measured_against() -> None:
    cluster = cluster_of(3)
    cluster.remove_node("n1")
    view = View(cluster)
    raw = np.array([5, 0, 5])
    assert not isinstance(ranked(raw, view), NodeRanking), "the nodes that are there are alike"
    rising = ranked(np.array([1, 9, 5]), view)
    assert isinstance(rising, NodeRanking)
    assert rising.top_row == 2


def test_a_cluster_without_nodes_has_no_scores() -> None:
    view = View(Cluster()).scoring(np.zeros(0, np.bool_))
    assert cached_scores("none", lambda whole: ranked(np.zeros(0, np.int64), whole), view).tolist() == []


def test_a_narrowed_view_is_measured_by_what_it_shows() -> None:
    cluster = cluster_of(3)
    raw: IntColumn = np.array([1, 3, 9])
    feasible: Mask = np.array([True])
    view = View(cluster).at(1).scoring(feasible)
    assert cached_scores("part", lambda whole: ranked(raw, whole), view).tolist() == [100]


def test_a_constant_is_one_number_in_memory_and_as_long_as_the_view() -> None:
    cluster = cluster_of(2)
    first = constant(100, View(cluster))
    assert first.tolist() == [100, 100]
    assert not first.flags.writeable
    assert first.strides == (0,)
    assert constant(100, View(cluster).at(1)).tolist() == [100]
    cluster.add_node(Node(metadata=ObjectMeta(name="n9")))
    assert constant(100, View(cluster)).tolist() == [100, 100, 100]


@pytest.mark.parametrize(
    "raw, feasible, expected",
    [
        pytest.param([5, 3, 4], [True, True, True], [0, 100, 50], id="by place, and not in proportion"),
        pytest.param([5, 3, 3], [True, True, True], [0, 100, 100], id="equals share a place"),
        pytest.param([5, 1, 3], [True, False, True], [0, 0, 100], id="who is not feasible has none"),
        pytest.param([7], [True], [100], id="the only one is the best"),
        pytest.param(
            list(range(0, 400, 2)),
            [True] * 200,
            [*range(100, 0, -1), *[0] * 100],
            id="the best hundred are told apart, however many there are",
        ),
    ],
)
def test_scores_by_place(raw: list[int], feasible: list[bool], expected: list[int]) -> None:
    assert rank_scores(np.array(raw), np.array(feasible)).tolist() == expected
