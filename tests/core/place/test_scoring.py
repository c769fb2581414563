"""Scoring: answers are weighed and summed; whoever sits out adds nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod
from situate.core.contract import Bounds, DomainScores, Scores
from situate.core.place.profile import Profile, Weighted
from situate.core.place.scoring import MOST_CORRECTIONS, SMALL_SUM_WEIGHT, best_row, run_scorers, totals
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


@dataclass(frozen=True)
class Bounded(Says):
    """Its bounds are too high by what `more` says."""

    more: Sequence[int] = ()

    def bounds(self, pod: PodClass, view: View) -> Bounds | None:
        if self.answer is None:
            return None
        exact = [*self.answer]
        upper = np.array(exact, np.int16) + np.array(self.more, np.int16)
        return Bounds(upper, exact.__getitem__)


@dataclass(frozen=True)
class ByZone:
    """Scores by zone, but for a few rows; with no zones, the first is everybody's."""

    name: str
    zones: Sequence[int]
    rows: Mapping[int, int]
    keyed: bool

    def brief_scores(self, pod: PodClass, view: View) -> DomainScores:
        key, table = ("zone", [*self.zones, 0]) if self.keyed else (None, [self.zones[0]])
        return DomainScores(key, table, self.rows)

    def score(self, pod: PodClass, view: View) -> Scores:
        return self.brief_scores(pod, view).by_node(view)

    def of(self, row: int) -> int:
        return self.rows.get(row, self.zones[row % ZONES if self.keyed else 0])


ZONES = 3
NODES = 2 * MOST_CORRECTIONS
few = st.integers(0, 3)
rows = st.lists(few, min_size=NODES, max_size=NODES)
weights = st.sampled_from([1, 2, SMALL_SUM_WEIGHT + 1])
bounded = st.lists(st.tuples(rows, rows, weights), max_size=2)
zoned = st.lists(
    st.tuples(
        st.builds(
            ByZone,
            st.just("Z"),
            st.lists(few, min_size=ZONES, max_size=ZONES),
            st.dictionaries(st.integers(0, NODES - 1), few, max_size=3),
            st.booleans(),
        ),
        weights,
    ),
    max_size=2,
)


@given(bounded, zoned, st.none() | rows, st.sets(few))
def test_bounds_and_scores_by_zone_give_the_row_that_the_scores_give(
    bounds: list[tuple[list[int], list[int], int]],
    by_zone: list[tuple[ByZone, int]],
    plain: list[int] | None,
    excluded: set[int],
) -> None:
    cluster = Cluster()
    for at in range(NODES):
        cluster.add_node(node(f"n{at}", labels={"zone": f"z{at % ZONES}"}))
    kind, feasible = cluster.class_of(pod()), np.arange(NODES) % 5 != 3
    plugins: list[tuple[Any, int]] = [(Bounded("B", exact, more), weight) for exact, more, weight in bounds]
    plugins += [*by_zone, (Says("S", plain), 2)]
    profile = Profile("s", (), tuple(Weighted(plugin, weight) for plugin, weight in plugins))

    def total(row: int) -> int:
        exact = sum(weight * scores[row] for scores, _, weight in bounds)
        return exact + sum(weight * one.of(row) for one, weight in by_zone) + (2 * plain[row] if plain else 0)

    fitting = [row for row in range(NODES) if feasible[row] and row not in excluded]
    best = max(fitting, key=lambda row: (total(row), -row))
    assert best_row(profile, kind, View(cluster), feasible, excluded) == best
