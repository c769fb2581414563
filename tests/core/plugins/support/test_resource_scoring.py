"""The three strategies, over all nodes and for one, beside the formulas in integers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.plugins.support.arguments import ResourceSpec
from situate.core.plugins.support.resource_scoring import Scoring, ShapePoint, Strategy, interpolated
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

GPU = "example.com/gpu"
LITTLE = {"cpu": 100, "memory": 200 << 20}
"""What a pod that does not say counts for where nodes are compared; one that asks for 0 counts for 0."""

Amounts = dict[str, int]
"""cpu in thousandths, memory in bytes, others counted."""

# -- the twins -----------------------------------------------------------------------------------------------------


def counted(asked: Amounts, name: str) -> int:
    return asked.get(name, LITTLE.get(name, 0))


def line(shape: list[tuple[int, int]], at: int) -> int:
    """Straight between the points, flat outside; division goes towards zero."""
    for (x0, y0), (x1, y1) in pairwise(shape):
        if x0 < at <= x1:
            step = (y1 - y0) * (at - x0)
            return y0 + (step // (x1 - x0) if step >= 0 else -(-step // (x1 - x0)))
    return shape[0][1] if at <= shape[0][0] else shape[-1][1]


def twin(strategy: Strategy, weights: dict[str, int], shape: list[tuple[int, int]], *parts: Any) -> int:
    """The score of one node from its room, the pods on it and the pod that waits."""
    room, bound, waiting = parts
    total = weighed = 0
    for name, weight in weights.items():
        capacity = room.get(name, 0)
        if not capacity or (name == GPU and not waiting.get(GPU)):
            continue
        used = sum(counted(one, name) for one in bound) + counted(waiting, name)
        if strategy == "LeastAllocated":
            score = (capacity - used) * 100 // capacity if used <= capacity else 0
        elif strategy == "MostAllocated":
            score = min(used, capacity) * 100 // capacity
        else:
            score = line(shape, min(used, capacity) * 100 // capacity)
            if not score:
                continue
        total += score * weight
        weighed += weight
    if not weighed:
        return 0
    if strategy == "RequestedToCapacityRatio":
        return int(total / weighed + 0.5)
    return total // weighed


# -- clusters ------------------------------------------------------------------------------------------------------

small, large = st.integers(0, 2_000), st.integers(0, 1 << 58)
amounts = st.one_of(
    st.fixed_dictionaries({}, optional={"cpu": small, "memory": st.integers(0, 4 << 30), GPU: st.integers(0, 4)}),
    st.fixed_dictionaries({}, optional={"cpu": large, "memory": large, GPU: large}),
)
nodes = st.lists(st.tuples(amounts, st.lists(amounts, max_size=3)), min_size=1, max_size=4)
weights = st.dictionaries(st.sampled_from(["cpu", "memory", GPU, "ephemeral-storage"]), st.integers(1, 100))
shapes = st.lists(st.integers(0, 100), min_size=1, max_size=4, unique=True).flatmap(
    lambda xs: st.lists(st.integers(0, 10), min_size=len(xs), max_size=len(xs)).map(
        lambda ys: [(x, 10 * y) for x, y in zip(sorted(xs), ys, strict=True)]
    )
)
strategies = st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])


def quantities(asked: Amounts) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in asked.items()}


def cluster_of(made: list[tuple[Amounts, list[Amounts]]]) -> Cluster:
    cluster = Cluster()
    for row, (room, bound) in enumerate(made):
        cluster.add_node(node(f"n{row}", allocatable=quantities(room)))
        for at, asked in enumerate(bound):
            cluster.add_pod(pod(f"p{row}-{at}", node_name=f"n{row}", requests=quantities(asked)))
    return cluster


def scoring(strategy: Strategy, weighed: dict[str, int], shape: list[tuple[int, int]]) -> Scoring:
    return Scoring(
        strategy,
        tuple(ResourceSpec(name, weight) for name, weight in weighed.items()),
        tuple(ShapePoint(x, y) for x, y in shape),
    )


HUGE = 73 + 100 * (1 << 51)
NEARLY = (37 * HUGE - 1) // 100
"""A hundred times this is one less than 37 times HUGE, which float64 cannot tell from 37 times."""


@settings(max_examples=250)
@given(nodes, amounts, strategies, weights, shapes)
@example([({"memory": HUGE}, [{"memory": 0}])], {"memory": HUGE - NEARLY}, "LeastAllocated", {"memory": 1}, [(0, 0)])
@example([({"memory": HUGE}, [{"memory": 0}])], {"memory": NEARLY}, "MostAllocated", {"memory": 1}, [(0, 0)])
@example([({"cpu": 0}, []), ({"cpu": 10}, [])], {"cpu": 5}, "MostAllocated", {"cpu": 3, "memory": 2}, [(0, 0)])
@example([({"cpu": 1000}, [{"cpu": 2000}])], {"cpu": 1}, "LeastAllocated", {"cpu": 1}, [(0, 0)])
@example([({"cpu": 1000, GPU: 4}, [])], {"cpu": 500}, "LeastAllocated", {"cpu": 1, GPU: 1}, [(0, 0)])
def test_scores_over_all_nodes_and_for_one_are_those_of_the_formula(
    made: list[tuple[Amounts, list[Amounts]]],
    waiting: Amounts,
    strategy: Strategy,
    weighed: dict[str, int],
    shape: list[tuple[int, int]],
) -> None:
    cluster = cluster_of(made)
    kind, view = cluster.class_of(pod("w", requests=quantities(waiting))), View(cluster)
    plugin = scoring(strategy, weighed, shape)
    expected = [twin(strategy, weighed, shape, room, bound, waiting) for room, bound in made]
    assert plugin.score(kind, view).tolist() == expected
    score_at = plugin.scorer_at(kind, view)
    assert [score_at(row) for row in range(len(made))] == expected
    assert [plugin.score(kind, view.at(row)).tolist() for row in range(len(made))] == [[one] for one in expected]
    emptied = view.without(view.pods_on(0))
    first = twin(strategy, weighed, shape, made[0][0], [], waiting)
    assert plugin.score(kind, emptied).tolist() == [first, *expected[1:]]


@settings(max_examples=60)
@given(nodes, amounts, amounts, strategies, weights)
def test_scores_follow_as_pods_come_and_go(
    made: list[tuple[Amounts, list[Amounts]]],
    waiting: Amounts,
    coming: Amounts,
    strategy: Strategy,
    weighed: dict[str, int],
) -> None:
    shape = [(0, 0), (100, 100)]
    cluster = cluster_of(made)
    kind = cluster.class_of(pod("w", requests=quantities(waiting)))
    plugin = scoring(strategy, weighed, shape)
    plugin.score(kind, View(cluster))
    cluster.add_pod(pod("new", node_name="n0", requests=quantities(coming)))
    room, bound = made[0]
    assert plugin.score(kind, View(cluster))[0] == twin(strategy, weighed, shape, room, [*bound, coming], waiting)
    cluster.remove_pod("default/new")
    assert plugin.score(kind, View(cluster))[0] == twin(strategy, weighed, shape, room, bound, waiting)


# -- by hand -------------------------------------------------------------------------------------------------------


def score_of(plugin: Scoring, room: Amounts, waiting: Amounts) -> int:
    cluster = cluster_of([(room, [])])
    return int(plugin.score(cluster.class_of(pod("w", requests=quantities(waiting))), View(cluster))[0])


BOTH = {"cpu": 1, "memory": 1}

CASES: list[Any] = [
    pytest.param("LeastAllocated", BOTH, {"cpu": 4000, "memory": 1000}, {"cpu": 3000, "memory": 500}, 37, id="least"),
    pytest.param("MostAllocated", BOTH, {"cpu": 4000, "memory": 1000}, {"cpu": 3000, "memory": 500}, 62, id="most"),
    pytest.param("LeastAllocated", BOTH, {"cpu": 1000}, {"cpu": 250}, 75, id="what a node lacks does not count"),
    pytest.param("LeastAllocated", BOTH, {}, {"cpu": 250}, 0, id="a node that lacks all has nothing to offer"),
    pytest.param("LeastAllocated", {}, {"cpu": 1000}, {"cpu": 250}, 0, id="nothing is weighed"),
    pytest.param(
        "LeastAllocated",
        {"cpu": 3, "memory": 1},
        {"cpu": 1000, "memory": 1000},
        {"cpu": 1000, "memory": 1},
        24,
        id="by weight",
    ),
    pytest.param("LeastAllocated", {"cpu": 1}, {"cpu": 1000}, {}, 90, id="who asks for none counts for a little"),
    pytest.param("LeastAllocated", {"cpu": 1}, {"cpu": 1000}, {"cpu": 0}, 100, id="but not who asks for 0"),
    pytest.param("MostAllocated", {GPU: 1}, {GPU: 4}, {}, 0, id="who asks for no gpu is not judged by gpus"),
    pytest.param("MostAllocated", {GPU: 1}, {GPU: 4}, {GPU: 1}, 25, id="who asks for one is"),
    pytest.param(
        "MostAllocated", {"pods": 1, "cpu": 1}, {"cpu": 1000, "pods": 10}, {"cpu": 500}, 50, id="pods cannot be weighed"
    ),
]


@pytest.mark.parametrize("strategy,weighed,room,waiting,expected", CASES)
def test_a_node_is_scored(
    strategy: Strategy, weighed: dict[str, int], room: Amounts, waiting: Amounts, expected: int
) -> None:
    assert score_of(scoring(strategy, weighed, []), room, waiting) == expected


def test_a_shape_rounds_halves_up_and_leaves_out_what_scores_nothing() -> None:
    plugin = scoring("RequestedToCapacityRatio", {"cpu": 1, "memory": 1}, [(0, 0), (100, 100)])
    assert score_of(plugin, {"cpu": 1000, "memory": 1000}, {"cpu": 500, "memory": 250}) == 38
    assert score_of(plugin, {"cpu": 1000, "memory": 1 << 40}, {"cpu": 500, "memory": 1}) == 50


@pytest.mark.parametrize(
    "at,expected",
    [(0, 100), (10, 100), (20, 100), (21, 99), (60, 50), (99, 2), (100, 0)],
)
def test_a_shape_is_straight_between_its_points_and_flat_outside(at: int, expected: int) -> None:
    shape = (ShapePoint(20, 100), ShapePoint(100, 0))
    assert interpolated(shape, at) == line([(20, 100), (100, 0)], at) == expected


def test_a_cluster_without_nodes_has_no_scores() -> None:
    cluster = Cluster()
    kind = cluster.class_of(pod("w", cpu="1"))
    for strategy in ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"):
        assert scoring(strategy, BOTH, [(0, 0), (100, 10)]).score(kind, View(cluster)).tolist() == []
