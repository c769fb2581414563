"""Filtering: which nodes pass every filter, and when a pod is turned away before any node is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from builders import node, pod
from situate.core.contract import RULED_OUT, Failure, Reason, Refusal, Verdict, Wake
from situate.core.place.filtering import Filtered, feasible_rows, fits_at, run_filters
from situate.core.place.profile import Profile
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

Answer = Sequence[int] | Refusal | Failure | None

OUT = RULED_OUT
GONE_FOR_GOOD, NOT_NOW = Refusal("for good"), Refusal("not now", eviction_helps=True)
BROKEN = Failure("broken")


@dataclass(frozen=True)
class Says:
    """A filter that gives the same answer whatever it is asked."""

    name: str
    answer: Answer
    reasons: tuple[Reason, ...] = (Reason("no", eviction_helps=True),)
    wakes_on: frozenset[Wake] = frozenset()

    def check(self, pod: PodClass, view: View) -> Verdict:
        if isinstance(self.answer, Refusal | Failure | None):
            return self.answer
        return np.array(self.answer, np.uint8)[view.rows]


def profile_of(*answers: Answer, before_nodes: tuple[str, ...] = ()) -> Profile:
    """Filters A, B, C, ... that say these things."""
    filters = tuple(Says("ABCD"[at], answer) for at, answer in enumerate(answers))
    return Profile("s", filters, (), before_nodes)  # type: ignore[arg-type]


def filtered(*answers: Answer, before_nodes: tuple[str, ...] = ()) -> Filtered:
    cluster = Cluster()
    for name in ("n0", "n1", "n2"):
        cluster.add_node(node(name))
    return run_filters(profile_of(*answers, before_nodes=before_nodes), cluster.class_of(pod()), View(cluster))


@pytest.mark.parametrize(
    "answers,feasible",
    [
        pytest.param((), [True, True, True], id="nobody is asked"),
        pytest.param((None, None), [True, True, True], id="nobody has a say"),
        pytest.param(([0, 1, 0], None, [0, 0, 1]), [True, False, False], id="each refuses another"),
        pytest.param(([0, OUT, 0],), [True, False, True], id="a node that is ruled out does not pass"),
        pytest.param(([1, 1, 1],), [False, False, False], id="none passes"),
    ],
)
def test_a_node_passes_if_no_filter_refuses_it(answers: tuple[Answer, ...], feasible: list[bool]) -> None:
    found = filtered(*answers)
    assert found.feasible.tolist() == feasible
    assert [None if codes is None else codes.tolist() for codes in found.codes] == list(answers)
    assert (found.turned_away, found.failed) == (None, None)


def test_a_row_without_a_node_never_passes() -> None:
    cluster = Cluster()
    cluster.add_node(node("n0"))
    cluster.add_node(node("n1"))
    cluster.remove_node("n0")
    assert run_filters(profile_of(None), cluster.class_of(pod()), View(cluster)).feasible.tolist() == [False, True]


@pytest.mark.parametrize("gone", [False, True], ids=["every row has a node", "a row has none"])
@pytest.mark.parametrize(
    "answers",
    [
        pytest.param((), id="nobody is asked"),
        pytest.param((None, None), id="nobody has a say"),
        pytest.param(([0, 1, 0, 0], None, [0, 0, 1, 0]), id="each refuses another"),
        pytest.param(([0, OUT, 0, 0],), id="a node is ruled out"),
        pytest.param(([1, 1, 1, 1],), id="none passes"),
        pytest.param(([0, 1, 0, 0], NOT_NOW), id="the pod is turned away"),
        pytest.param((BROKEN, [0, 1, 0, 0]), id="a filter fails"),
    ],
)
def test_the_rows_alone_are_those_of_the_whole_answer(answers: tuple[Answer, ...], gone: bool) -> None:
    cluster = Cluster()
    for name in ("n0", "n1", "n2", "n3"):
        cluster.add_node(node(name))
    if gone:
        cluster.remove_node("n3")
    profile, kind = profile_of(*answers), cluster.class_of(pod())
    rows, count = feasible_rows(profile, kind, View(cluster, once=True))
    assert rows.tolist() == run_filters(profile, kind, View(cluster)).feasible.tolist()
    assert count == rows.sum()


@pytest.mark.parametrize(
    "answers,order,plugin,text,last",
    [
        pytest.param((GONE_FOR_GOOD,), (), "A", "for good", "A", id="by one, for good"),
        pytest.param((NOT_NOW,), (), "A", "not now", "", id="by one, for now"),
        pytest.param((NOT_NOW, GONE_FOR_GOOD), (), "B", "for good", "B", id="for good goes before for now"),
        pytest.param((GONE_FOR_GOOD, Refusal("b")), (), "A", "for good", "A", id="by the first of two for good"),
        pytest.param(
            (NOT_NOW, Refusal("later", eviction_helps=True)), (), "B", "later", "", id="by the last of two for now"
        ),
        pytest.param((GONE_FOR_GOOD, Refusal("b")), ("B", "A"), "B", "b", "B", id="in the order of its own"),
        pytest.param(([1, 1, 1], GONE_FOR_GOOD), (), "B", "for good", "B", id="though another refuses every node"),
        pytest.param(
            ([0, OUT, OUT], [OUT, 0, OUT]),
            (),
            "",
            "node(s) didn't satisfy plugin(s) [A B] simultaneously",
            "B",
            id="by two that leave no node in common",
        ),
        pytest.param(
            ([OUT, OUT, 0], None, [OUT, 0, 0], [0, OUT, OUT]),
            ("D", "C", "A"),
            "",
            "node(s) didn't satisfy plugin(s) [C D] simultaneously",
            "C",
            id="by the first that leave none in common, named in alphabetical order",
        ),
        pytest.param(
            ([0, OUT, OUT], GONE_FOR_GOOD, [OUT, 0, OUT]),
            (),
            "B",
            "for good",
            "B",
            id="before the last is asked",
        ),
        pytest.param(
            ([0, OUT, OUT], [OUT, 0, OUT], GONE_FOR_GOOD),
            (),
            "",
            "node(s) didn't satisfy plugin(s) [A B] simultaneously",
            "B",
            id="before one that would say no for good is asked",
        ),
    ],
)
def test_a_pod_is_turned_away(
    answers: tuple[Answer, ...], order: tuple[str, ...], plugin: str, text: str, last: str
) -> None:
    found = filtered(*answers, before_nodes=order)
    assert found.turned_away is not None
    assert (found.turned_away.plugin, found.turned_away.refusal.text) == (plugin, text)
    assert found.turned_away.last_asked == last
    assert (bool(found.feasible.any()), found.failed) == (False, None)


def test_one_filter_that_rules_every_node_out_does_not_turn_the_pod_away() -> None:
    found = filtered([OUT, OUT, OUT], [0, 0, 1])
    assert (found.turned_away, bool(found.feasible.any())) == (None, False)


def test_two_that_leave_one_node_do_not_turn_the_pod_away() -> None:
    found = filtered([0, OUT, 0], [OUT, 0, 0], [0, 0, 1])
    assert (found.turned_away, bool(found.feasible.any())) == (None, False)


def test_who_may_not_speak_before_nodes_turns_nobody_away() -> None:
    found = filtered(GONE_FOR_GOOD, [0, 1, 0], before_nodes=("B",))
    assert (found.turned_away, found.feasible.tolist()) == (None, [True, False, True])


@pytest.mark.parametrize(
    "answers,plugin",
    [
        pytest.param((BROKEN, GONE_FOR_GOOD), "A", id="before another says no"),
        pytest.param((NOT_NOW, BROKEN), "B", id="after another said not now"),
        pytest.param(([0, 0, 0], BROKEN), "B", id="though every node passed the others"),
    ],
)
def test_a_filter_cannot_answer(answers: tuple[Answer, ...], plugin: str) -> None:
    found = filtered(*answers)
    assert found.failed == (plugin, BROKEN)
    assert (found.turned_away, bool(found.feasible.any())) == (None, False)


def test_a_pod_that_is_turned_away_for_good_first_does_not_come_to_the_filter_that_cannot_answer() -> None:
    found = filtered(GONE_FOR_GOOD, BROKEN)
    assert found.failed is None
    assert found.turned_away is not None


@pytest.mark.parametrize(
    "answers,fits",
    [
        pytest.param((), [True, True], id="nobody is asked"),
        pytest.param((None, [0, 1]), [True, False], id="one refuses the second"),
        pytest.param(([0, OUT],), [True, False], id="one rules it out"),
        pytest.param(([0, 0], GONE_FOR_GOOD), [False, False], id="the pod is turned away"),
        pytest.param(([0, 0], BROKEN), [False, False], id="somebody cannot answer"),
    ],
)
def test_one_node_is_tried(answers: tuple[Answer, ...], fits: list[bool]) -> None:
    cluster = Cluster()
    cluster.add_node(node("n0"))
    cluster.add_node(node("n1"))
    filters, kind, view = profile_of(*answers).filters, cluster.class_of(pod()), View(cluster)
    assert [fits_at(filters, kind, view, row) for row in (0, 1)] == fits
