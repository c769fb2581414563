"""NodeResourcesBalancedAllocation compares how evenly a node is used with the pod and without it."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.contract import RowScorer, Scorer
from situate.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from situate.core.plugins.support.arguments import ResourceSpec
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

GPU, STORAGE = "example.com/gpu", "ephemeral-storage"

Amounts = dict[str, int]
"""cpu in thousandths, memory in bytes, others counted."""


def evenness(room: Amounts, used: Amounts) -> int:
    """100 where all are used alike, less the further they spread; what the node lacks does not count."""
    fractions = [min(float(used[name]) / float(room[name]), 1.0) for name in used if room.get(name, 0)]
    if len(fractions) == 2:
        spread = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = squares = 0.0
        for one in fractions:
            total += one
        for one in fractions:
            squares += (one - total / len(fractions)) * (one - total / len(fractions))
        spread = sqrt(squares / len(fractions))
    else:
        spread = 0.0
    return int((1 - spread) * 100)


def twin(names: list[str], room: Amounts, bound: list[Amounts], waiting: Amounts) -> int:
    counted = [name for name in names if name != GPU or waiting.get(GPU)]
    before = {name: sum(one.get(name, 0) for one in bound) for name in counted}
    after = {name: amount + waiting.get(name, 0) for name, amount in before.items()}
    return 50 + (50 + evenness(room, after) - evenness(room, before)) // 2


few, large = st.integers(0, 64), st.integers(0, 1 << 58)
amounts = st.one_of(
    st.fixed_dictionaries({}, optional={"cpu": few, "memory": few, GPU: few, STORAGE: few}),
    st.fixed_dictionaries({}, optional={"cpu": large, "memory": large, GPU: large, STORAGE: large}),
)
nodes = st.lists(st.tuples(amounts, st.lists(amounts, max_size=3)), min_size=1, max_size=4)
resources = st.lists(st.sampled_from(["cpu", "memory", GPU, STORAGE]), unique=True)


def quantities(asked: Amounts) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in asked.items()}


def cluster_of(made: list[tuple[Amounts, list[Amounts]]]) -> Cluster:
    cluster = Cluster()
    for row, (room, bound) in enumerate(made):
        cluster.add_node(node(f"n{row}", allocatable=quantities(room)))
        for at, asked in enumerate(bound):
            cluster.add_pod(pod(f"p{row}-{at}", node_name=f"n{row}", requests=quantities(asked)))
    return cluster


def plugin_for(names: list[str]) -> NodeResourcesBalancedAllocation:
    return NodeResourcesBalancedAllocation(tuple(ResourceSpec(name) for name in names))


def scores(names: list[str], cluster: Cluster, view: View, waiting: Amounts) -> list[int] | None:
    found = plugin_for(names).score(cluster.class_of(pod("w", requests=quantities(waiting))), view)
    return None if found is None else found.tolist()


THREE = ["cpu", "memory", GPU]
# Beyond 2**53 Kubernetes rounds both numbers to floats before it divides; dividing integers gives another quotient.
LARGE = ({"cpu": 1000, "memory": 576460752303425602}, [{"cpu": 805}]), {"memory": 244995819728955821}


@settings(max_examples=300)
@given(nodes, amounts, resources)
@example([({"cpu": 10, "memory": 10}, [])], {"cpu": 5}, ["cpu", "memory"])
@example([({"cpu": 10}, [{"cpu": 3}])], {"cpu": 5}, ["cpu", "memory"])
@example([({"cpu": 10, "memory": 10, GPU: 4}, [{"memory": 3}])], {"cpu": 5, GPU: 1}, THREE)
@example([({"cpu": 10, "memory": 10}, []), ({"cpu": 10, "memory": 10, GPU: 4}, [])], {"cpu": 5, GPU: 1}, THREE)
@example([({"cpu": 10, "memory": 10}, [{"cpu": 50}])], {"memory": 90}, ["cpu", "memory"])
@example([LARGE[0]], LARGE[1], ["cpu", "memory"])
def test_scores_over_all_nodes_and_for_one_are_those_of_the_formula(
    made: list[tuple[Amounts, list[Amounts]]], waiting: Amounts, names: list[str]
) -> None:
    cluster = cluster_of(made)
    view = View(cluster)
    if not any(waiting.get(name) for name in names):
        assert scores(names, cluster, view, waiting) is None
        return
    expected = [twin(names, room, bound, waiting) for room, bound in made]
    assert scores(names, cluster, view, waiting) == expected
    score_at = plugin_for(names).scorer_at(cluster.class_of(pod("w", requests=quantities(waiting))), view)
    assert [score_at(row) for row in range(len(made))] == expected
    assert [scores(names, cluster, view.at(row), waiting) for row in range(len(made))] == [[one] for one in expected]
    first = twin(names, made[0][0], [], waiting)
    assert scores(names, cluster, view.without(view.pods_on(0)), waiting) == [first, *expected[1:]]


@settings(max_examples=60)
@given(nodes, amounts, amounts, resources)
def test_scores_follow_as_pods_come_and_go(
    made: list[tuple[Amounts, list[Amounts]]], waiting: Amounts, coming: Amounts, names: list[str]
) -> None:
    cluster = cluster_of(made)
    before = scores(names, cluster, View(cluster), waiting)
    cluster.add_pod(pod("new", node_name="n0", requests=quantities(coming)))
    crowded = scores(names, cluster, View(cluster), waiting)
    if before is None or crowded is None:
        assert before is crowded is None
    else:
        assert crowded == [twin(names, made[0][0], [*made[0][1], coming], waiting), *before[1:]]
    cluster.remove_pod("default/new")
    assert scores(names, cluster, View(cluster), waiting) == before


CASES: list[Any] = [
    pytest.param({"cpu": 10, "memory": 10}, {"cpu": 5, "memory": 5}, 75, id="as even as before is in the middle"),
    pytest.param({"cpu": 10, "memory": 10}, {"cpu": 10}, 50, id="as uneven as can be"),
    pytest.param({"cpu": 10, "memory": 10}, {"cpu": 5}, 62, id="less even"),
    pytest.param({"cpu": 10}, {"cpu": 5}, 75, id="one resource is always even"),
    pytest.param({}, {"cpu": 5}, 75, id="none is too"),
    pytest.param({"cpu": 10, "memory": 10}, {"cpu": 0, "memory": 0, GPU: 3}, None, id="who asks for none is let be"),
]


@pytest.mark.parametrize("room,waiting,expected", CASES)
def test_an_empty_node_is_scored(room: Amounts, waiting: Amounts, expected: int | None) -> None:
    cluster = cluster_of([(room, [])])
    found = scores(["cpu", "memory"], cluster, View(cluster), waiting)
    assert found == (None if expected is None else [expected])


def test_a_pod_that_evens_a_node_out_is_welcome() -> None:
    cluster = cluster_of([({"cpu": 10, "memory": 10}, [{"cpu": 10}])])
    assert scores(["cpu", "memory"], cluster, View(cluster), {"memory": 10}) == [100]


def test_where_it_may_not_sit_out_a_pod_that_asks_for_none_scores_nothing() -> None:
    cluster = cluster_of([({"cpu": 10}, []), ({"cpu": 10}, [])])
    plugin = NodeResourcesBalancedAllocation(may_skip=False)
    found = plugin.score(cluster.class_of(pod("w")), View(cluster))
    assert found is not None
    assert found.tolist() == [0, 0]


def test_it_can_answer_for_one_row() -> None:
    assert isinstance(NodeResourcesBalancedAllocation(), Scorer)
    assert isinstance(NodeResourcesBalancedAllocation(), RowScorer)
