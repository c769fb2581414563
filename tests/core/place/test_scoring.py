"""Scoring: answers are weighed and summed; whoever sits out adds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod
from situate.core.contract import Scores
from situate.core.place.profile import Profile, Weighted
from situate.core.place.scoring import run_scorers, totals
from situate.core.plugins.support.normalize import constant
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


@dataclass(frozen=True)
class Says:
    name: str
    answer: Sequence[int] | None

    def score(self, pod: PodClass, view: View) -> Scores | None:
        if self.answer is None:
            return None
        if len(set(self.answer)) == 1:
            return constant(self.answer[0], view)
        return np.array(self.answer, np.int64)


def setting(nodes: int = 3) -> tuple[PodClass, View]:
    cluster = Cluster()
    for at in range(nodes):
        cluster.add_node(node(f"n{at}"))
    return cluster.class_of(pod()), View(cluster)


scores = st.integers(0, 100)
columns = st.one_of(st.none(), st.lists(scores, min_size=3, max_size=3), scores.map(lambda one: [one] * 3))
answers = st.lists(
    st.tuples(columns, st.integers(1, 1000)),
    max_size=5,
)


@given(answers)
def test_the_total_is_the_weighed_sum(given_scores: list[tuple[list[int] | None, int]]) -> None:
    kind, view = setting()
    scorers = tuple(Weighted(Says(f"S{at}", one), weight) for at, (one, weight) in enumerate(given_scores))  # type: ignore[arg-type]
    profile = Profile("s", (), scorers)
    feasible = np.ones(3, np.bool_)
    found = run_scorers(profile, kind, view, feasible)
    weighed = {f"S{at}": [weight * s for s in one] for at, (one, weight) in enumerate(given_scores) if one is not None}
    assert {name: np.broadcast_to(scores, 3).tolist() for name, scores in found.by_plugin.items()} == weighed
    assert found.total.tolist() == [sum(column) for column in zip([0] * 3, *weighed.values(), strict=False)][:3]
    assert totals(profile, kind, view, feasible).tolist() == found.total.tolist()


def test_a_scorer_is_told_which_nodes_are_feasible() -> None:
    seen = []

    class Asks:
        name = "Asks"

        def score(self, pod: PodClass, view: View) -> Scores | None:
            seen.append(view.feasible.tolist())
            return None

    kind, view = setting()
    profile = Profile("s", (), (Weighted(Asks(), 1),))  # type: ignore[arg-type]
    feasible = np.array([True, False, True])
    run_scorers(profile, kind, view, feasible)
    totals(profile, kind, view, feasible)
    assert seen == [[True, False, True]] * 2


def test_scores_of_a_scorer_are_not_changed_by_summing_them() -> None:
    """A scorer may hand out the same column again: it is not ours to add to."""
    column = np.array([1, 2, 3])

    class Keeps:
        name = "Keeps"

        def score(self, pod: PodClass, view: View) -> Scores:
            return column

    kind, view = setting()
    profile = Profile("s", (), (Weighted(Keeps(), 1), Weighted(Keeps(), 1)))  # type: ignore[arg-type]
    assert totals(profile, kind, view, np.ones(3, np.bool_)).tolist() == [2, 4, 6]
    assert run_scorers(profile, kind, view, np.ones(3, np.bool_)).total.tolist() == [2, 4, 6]
    assert column.tolist() == [1, 2, 3]
