"""Authors who think of one node at a time: wrapped, their plugins answer as ones that think of all nodes do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.contract import Codes, Filter, Reason, RowFilter, RowScorer, Scorer, Scores
from situate.core.place.profile import Profile, Weighted
from situate.core.place.verdict_cache import VerdictCache
from situate.core.plugins.support.errors import PluginError
from situate.core.plugins.support.per_node import OneNode, PerNodeFilter, PerNodeScorer
from situate.core.state.classes import CPU, PODS, PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import LOAD, View

NOISY = Reason("node(s) were too noisy", eviction_helps=False)
BUSY = Reason("node(s) were too busy", eviction_helps=True)
REASONS = (NOISY, BUSY)


class ByNode:
    def check_one(self, pod: PodClass, node: OneNode) -> Reason | None:
        if node.labels.get("noise") == "high":
            return NOISY
        return BUSY if len(node.pods) >= 2 or node.free("cpu") < pod.requests.milli_cpu else None

    def score_one(self, pod: PodClass, node: OneNode) -> int:
        return min(100, node.requested("cpu") // 100 + len(node.pods))


class OverAll:
    """The same, over all nodes at once."""

    name = "OverAll"
    reasons = REASONS
    wakes_on: frozenset[Any] = frozenset()

    def check(self, pod: PodClass, view: View) -> Codes:
        ids, values = view.label("noise")
        noisy = ids == values.find("high") if values.find("high") >= 0 else np.zeros(view.size, np.bool_)
        short = view.allocatable(CPU) - view.requested(CPU) < pod.requests.milli_cpu
        busy = (view.requested(PODS) >= 2) | short
        codes: Codes = np.where(noisy, 1, np.where(busy, 2, 0)).astype(np.uint8)
        codes[~view.present] = 0
        return codes

    def score(self, pod: PodClass, view: View) -> Scores:
        scores: Scores = np.minimum(100, view.requested(CPU) // 100 + view.requested(PODS))
        return scores


def wrapped(plugin: Any = None) -> tuple[PerNodeFilter, PerNodeScorer]:
    plugin = plugin or ByNode()
    return PerNodeFilter(plugin, "Mine", REASONS, frozenset()), PerNodeScorer(plugin, "Mine")


nodes = st.lists(st.tuples(st.sampled_from(["high", "low", None]), st.integers(0, 3)), min_size=1, max_size=5)
bound = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1500)), max_size=8)


def cluster_of(made: list[tuple[str | None, int]], pods: list[tuple[int, int]]) -> Cluster:
    cluster = Cluster()
    for row, (noise, cpu) in enumerate(made):
        cluster.add_node(node(f"n{row}", cpu=str(cpu), labels={} if noise is None else {"noise": noise}))
    for at, (row, milli) in enumerate(pods):
        cluster.add_pod(pod(f"p{at}", node_name=f"n{row}", cpu=f"{milli}m"))
    return cluster


@settings(max_examples=80)
@given(nodes, bound, st.integers(0, 1000), st.booleans())
def test_it_answers_as_its_twin_over_all_nodes_does(
    made: list[tuple[str | None, int]], pods: list[tuple[int, int]], asked: int, one_leaves: bool
) -> None:
    cluster = cluster_of(made, pods)
    if one_leaves:
        cluster.remove_node("n0")
    kind, whole = cluster.class_of(pod("w", cpu=f"{asked}m")), View(cluster)
    check, score = wrapped()
    twin = OverAll()
    overlays = [whole, whole.plus([(kind, len(made) - 1)])]
    if not one_leaves:
        overlays.append(whole.without(whole.pods_on(0)))
    for view in overlays:
        assert check.check(kind, view).tolist() == twin.check(kind, view).tolist()
        expected = np.where(view.present, twin.score(kind, view), 0).tolist()
        assert score.score(kind, view).tolist() == expected
        for row in range(view.size):
            assert check.check(kind, view.at(row)).tolist() == twin.check(kind, view).tolist()[row : row + 1]
            assert score.score(kind, view.at(row)).tolist() == expected[row : row + 1]


@settings(max_examples=40)
@given(nodes, bound, bound)
def test_kept_answers_follow_what_is_bound(
    made: list[tuple[str | None, int]], pods: list[tuple[int, int]], coming: list[tuple[int, int]]
) -> None:
    cluster = cluster_of(made, pods)
    kind = cluster.class_of(pod("w", cpu="500m"))
    check, score = wrapped()
    mine = VerdictCache(cluster, Profile("s", (check,), (Weighted(score, 2),)), kind)  # type: ignore[arg-type]
    twin = VerdictCache(cluster, Profile("s", (OverAll(),), (Weighted(OverAll(), 2),)), kind)  # type: ignore[arg-type]
    for at, (row, milli) in enumerate(coming):
        cluster.add_pod(pod(f"new{at}", node_name=f"n{row}", cpu=f"{milli}m"))
        assert mine.choose() == twin.choose()
        assert mine.feasible.tolist() == twin.feasible.tolist()
        assert mine.total[mine.feasible].tolist() == twin.total[twin.feasible].tolist()


def test_it_is_asked_again_about_the_rows_that_were_touched_and_no_others() -> None:
    asked: list[str] = []

    class Counts:
        def check_one(self, pod: PodClass, node: OneNode) -> None:
            asked.append(f"check {node.name}")

        def score_one(self, pod: PodClass, node: OneNode) -> int:
            asked.append(f"score {node.name}")
            return 1

    cluster = cluster_of([(None, 4), (None, 4)], [])
    check, score = wrapped(Counts())
    profile = Profile("s", (check,), (Weighted(score, 1),))  # type: ignore[arg-type]
    standing = VerdictCache(cluster, profile, cluster.class_of(pod("w")))
    assert asked == ["check n0", "check n1", "score n0", "score n1"]
    asked.clear()
    cluster.add_pod(pod("p", node_name="n1"))
    standing.choose()
    assert asked == ["check n1", "score n1"]
    asked.clear()
    standing.choose()
    assert asked == []


def test_a_node_is_shown_with_what_it_has_and_what_is_taken_of_it() -> None:
    cluster = Cluster()
    cluster.add_node(node("a", cpu="4", memory="1Ki", pods="9", labels={"rack": "r1"}, allocatable={"x.com/gpu": "2"}))
    cluster.add_pod(pod("p", node_name="a", cpu="1", requests={"x.com/gpu": "1"}))
    view, kind = View(cluster), cluster.class_of(pod("p", cpu="1", requests={"x.com/gpu": "1"}))
    found = view.node(0)
    assert found is not None
    shown = OneNode(view, 0, found)
    assert (shown.name, shown.labels, shown.node) == ("a", {"rack": "r1"}, found)
    assert shown.pods == [kind]
    for name, room, taken in (("cpu", 4000, 1000), ("memory", 1024, 0), ("pods", 9, 1), ("x.com/gpu", 2, 1)):
        assert (shown.allocatable(name), shown.requested(name), shown.free(name)) == (room, taken, room - taken)
    assert (shown.allocatable("unheard.of/x"), shown.requested("unheard.of/x"), shown.free("unheard.of/x")) == (0, 0, 0)
    emptied = view.without(view.pods_on(0))
    assert (OneNode(emptied, 0, found).free("cpu"), OneNode(emptied, 0, found).pods) == (4000, [])


def answering(answer: Any) -> Any:
    class Answers:
        def check_one(self, pod: PodClass, node: OneNode) -> Any:
            return answer() if callable(answer) else answer

        score_one = check_one

    return Answers()


def raising() -> Any:
    raise KeyError("rack")


WRONG: list[Any] = [
    pytest.param("no", "check_one gave 'no' for node n0, which is none of its reasons", id="text for a reason"),
    pytest.param(False, "check_one gave False for node n0, which is none of its reasons", id="a boolean"),
    pytest.param(
        Reason("unheard of", eviction_helps=True),
        "check_one gave Reason(text='unheard of', eviction_helps=True) for node n0, which is none of its reasons",
        id="a reason that is not listed",
    ),
    pytest.param(raising, "check_one raised KeyError: 'rack' (test_per_node.py, line ", id="it raises"),
]


@pytest.mark.parametrize("answer,problem", WRONG)
def test_a_wrong_verdict_is_an_error_that_names_the_node(answer: Any, problem: str) -> None:
    cluster = cluster_of([(None, 4)], [])
    with pytest.raises(PluginError) as caught:
        wrapped(answering(answer))[0].check(cluster.class_of(pod("w")), View(cluster))
    assert str(caught.value).startswith(f'plugin "Mine": {problem}')


@pytest.mark.parametrize(
    "answer,problem",
    [
        pytest.param(101, "score_one gave 101 for node n0, which is not an integer within 0..100", id="too high"),
        pytest.param(-1, "score_one gave -1 for node n0, which is not an integer within 0..100", id="negative"),
        pytest.param(0.5, "score_one gave 0.5 for node n0, which is not an integer within 0..100", id="a fraction"),
        pytest.param(None, "score_one gave None for node n0, which is not an integer within 0..100", id="nothing"),
        pytest.param("7", "score_one gave '7' for node n0, which is not an integer within 0..100", id="text"),
        pytest.param(raising, "score_one raised KeyError: 'rack' (test_per_node.py, line ", id="it raises"),
    ],
)
def test_a_wrong_score_is_an_error_that_names_the_node(answer: Any, problem: str) -> None:
    cluster = cluster_of([(None, 4)], [])
    with pytest.raises(PluginError) as caught:
        wrapped(answering(answer))[1].score(cluster.class_of(pod("w")), View(cluster))
    assert str(caught.value).startswith(f'plugin "Mine": {problem}')


def test_numpys_integers_are_integers() -> None:
    cluster = cluster_of([(None, 4)], [])
    for given_score in (np.int64(7), np.uint8(7), 7):
        score = wrapped(answering(given_score))[1].score(cluster.class_of(pod("w")), View(cluster))
        assert score.tolist() == [7]
        assert score.dtype == np.int64


def test_each_reason_has_its_code() -> None:
    cluster = cluster_of([(None, 4)], [])
    for code, reason in enumerate(REASONS, 1):
        assert wrapped(answering(reason))[0].check(cluster.class_of(pod("w")), View(cluster)).tolist() == [code]


def test_wrapped_plugins_are_what_the_contract_asks_for() -> None:
    check, score = wrapped()
    assert isinstance(check, Filter)
    assert isinstance(check, RowFilter)
    assert isinstance(score, Scorer)
    assert isinstance(score, RowScorer)
    cluster = cluster_of([(None, 4)], [])
    view = View(cluster)
    check.check(cluster.class_of(pod("w")), view)
    assert (view.reads, view.tallies_read) == (LOAD, [])
