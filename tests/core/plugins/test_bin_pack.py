"""BinPack: the node with the least room left wins, counted in amounts; beside the formula in whole numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.plugins.bin_pack import BinPack
from situate.core.plugins.support.arguments import ResourceSpec
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

GPU = "example.com/gpu"
Amounts = dict[str, int]
"""cpu in thousandths, memory in bytes, others counted."""


def quantities(amounts: Amounts) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


def cluster_of(made: list[tuple[Amounts, list[Amounts]]]) -> Cluster:
    cluster = Cluster()
    for row, (room, bound) in enumerate(made):
        cluster.add_node(node(f"n{row}", allocatable=quantities(room)))
        for at, asked in enumerate(bound):
            cluster.add_pod(pod(f"p{row}-{at}", node_name=f"n{row}", requests=quantities(asked)))
    return cluster


def scores(cluster: Cluster, asked: Amounts, *resources: ResourceSpec, feasible: list[bool] | None = None) -> list[int]:
    kind = cluster.class_of(pod("waiting", requests=quantities(asked)))
    size = cluster.nodes.size
    mask = np.ones(size, np.bool_) if feasible is None else np.array(feasible)
    found = BinPack(resources).score(kind, View(cluster, feasible=mask)) if resources else None
    assert found is not None
    answer: list[int] = found.tolist()
    return answer


CPU, MEMORY, GPUS = ResourceSpec("cpu", 1), ResourceSpec("memory", 1), ResourceSpec(GPU)


def test_of_two_empty_nodes_the_smaller_fits_better() -> None:
    cluster = cluster_of([({"cpu": 8_000}, []), ({"cpu": 2_000}, [])])
    assert scores(cluster, {"cpu": 1_000}, CPU) == [0, 100 - 125 * 100 // 875]


def test_of_two_equal_nodes_the_fuller_fits_better() -> None:
    cluster = cluster_of([({"cpu": 4_000}, []), ({"cpu": 4_000}, [{"cpu": 3_000}])])
    assert scores(cluster, {"cpu": 1_000}, CPU) == [0, 100]


def test_a_pod_without_gpus_leaves_nodes_with_gpus_alone() -> None:
    cluster = cluster_of([({"cpu": 4_000, GPU: 8}, []), ({"cpu": 4_000}, [])])
    assert scores(cluster, {"cpu": 1_000}, CPU, ResourceSpec(GPU, 10)) == [0, 100 - 750 * 100 // 10_750]


def test_weights_decide_between_resources() -> None:
    cluster = cluster_of([({"cpu": 4_000, "memory": 1_000}, []), ({"cpu": 1_000, "memory": 4_000}, [])])
    first, second = scores(cluster, {"cpu": 500, "memory": 500}, ResourceSpec("cpu", 3), MEMORY)
    assert first < second
    first, second = scores(cluster, {"cpu": 500, "memory": 500}, CPU, ResourceSpec("memory", 3))
    assert first > second


def test_scores_are_in_proportion_to_the_feasible_node_with_most_left() -> None:
    cluster = cluster_of([({"cpu": 8_000}, []), ({"cpu": 4_000}, []), ({"cpu": 2_000}, [])])
    _, second, third = scores(cluster, {}, CPU, feasible=[False, True, True])
    assert (second, third) == (0, 50)


def test_a_resource_that_no_node_has_does_not_count() -> None:
    cluster = cluster_of([({"cpu": 2_000}, []), ({"cpu": 1_000}, [])])
    kind = cluster.class_of(pod("waiting"))
    view = View(cluster, feasible=np.ones(2, np.bool_))
    assert BinPack((ResourceSpec("example.com/none", 1),)).score(kind, view) is None
    assert scores(cluster, {}, CPU, ResourceSpec("example.com/none", 1)) == scores(cluster, {}, CPU)


# -- the twin ------------------------------------------------------------------------------------------------------


def twin(made: list[tuple[Amounts, list[Amounts]]], asked: Amounts, weights: dict[str, int]) -> list[int]:
    """Thousandths of the largest node, rounded down, weighed and added; then in proportion to the highest."""
    sums = [0] * len(made)
    for name, weight in weights.items():
        most = max(room.get(name, 0) for room, _ in made)
        unit = 1
        while most // unit * 1_000 >= 1 << 53:
            unit *= 2
        for row, (room, bound) in enumerate(made):
            left = max(room.get(name, 0) - sum(one.get(name, 0) for one in bound) - asked.get(name, 0), 0)
            sums[row] += left // unit * 1_000 // max(most // unit, 1) * weight
    top = max(sums)
    return [100 - one * 100 // top if top else 100 for one in sums]


amounts = st.fixed_dictionaries(
    {}, optional={"cpu": st.integers(0, 64_000), "memory": st.integers(0, 4 << 40), GPU: st.integers(0, 16)}
)
nodes = st.lists(st.tuples(amounts, st.lists(amounts, max_size=3)), min_size=1, max_size=5)


@settings(max_examples=200)
@given(nodes, amounts, st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), st.integers(1, 100), min_size=1))
@example([({"memory": 1 << 58}, []), ({"memory": 1 << 57}, [])], {"memory": 1 << 50}, {"memory": 1})
def test_scores_over_all_nodes_are_those_of_the_formula(
    made: list[tuple[Amounts, list[Amounts]]], asked: Amounts, weights: dict[str, int]
) -> None:
    cluster = cluster_of(made)
    kind = cluster.class_of(pod("waiting", requests=quantities(asked)))
    plugin = BinPack(tuple(ResourceSpec(name, weight) for name, weight in weights.items()))
    found = plugin.score(kind, View(cluster, feasible=np.ones(len(made), np.bool_)))
    if not any(room.get(name) for room, _ in made for name in weights):
        assert found is None
    else:
        assert found is not None
        assert found.tolist() == twin(made, asked, weights)
