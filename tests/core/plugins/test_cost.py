"""Cost: the cheapest placement first, and nodes in use before idle ones; beside the formula for one node."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod
from situate.core.plugins.cost import Cost
from situate.core.plugins.support.prices import Price, PriceList
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

LABEL = "example.com/price"
PRICES = PriceList(label=LABEL)


def cluster_of(*nodes: tuple[str | None, bool]) -> Cluster:
    """(price, whether a pod is there) of each."""
    cluster = Cluster()
    for row, (price, used) in enumerate(nodes):
        cluster.add_node(node(f"n{row}", labels={} if price is None else {LABEL: price}, cpu="4"))
        if used:
            cluster.add_pod(pod(f"p{row}", node_name=f"n{row}"))
    return cluster


def scores(cluster: Cluster, plugin: Cost, feasible: list[bool] | None = None) -> list[int] | None:
    mask = np.ones(cluster.nodes.size, np.bool_) if feasible is None else np.array(feasible)
    found = plugin.score(cluster.class_of(pod("waiting")), View(cluster, feasible=mask))
    return None if found is None else found.tolist()


def test_of_idle_nodes_the_cheaper_is_better() -> None:
    cluster = cluster_of(("0.40", False), ("0.10", False), ("0.20", False))
    assert scores(cluster, Cost(PRICES)) == [0, 75, 50]


def test_a_node_in_use_counts_for_a_part_of_its_price() -> None:
    cluster = cluster_of(("0.40", True), ("0.10", False), ("0.20", True))
    assert scores(cluster, Cost(PRICES)) == [60, 0, 80]
    assert scores(cluster, Cost(PRICES, in_use_percent=100)) == [0, 75, 50]
    assert scores(cluster, Cost(PRICES, in_use_percent=0)) == [100, 0, 100]


def test_the_dearest_feasible_node_is_the_measure() -> None:
    cluster = cluster_of(("30", False), ("0.10", False), ("0.20", False))
    found = scores(cluster, Cost(PRICES), feasible=[False, True, True])
    assert found is not None
    assert found[1:] == [50, 0]


def test_a_node_without_a_price_counts_as_the_dearest() -> None:
    assert scores(cluster_of((None, False), ("0.10", False), ("0.40", True)), Cost(PRICES)) == [0, 0, 60]


def test_it_sits_out_where_no_feasible_node_has_a_price() -> None:
    cluster = cluster_of((None, False), ("0.10", False))
    assert scores(cluster, Cost(PRICES), feasible=[True, False]) is None
    assert scores(cluster, Cost()) is None


def test_two_price_lists_on_one_cluster_are_kept_apart() -> None:
    cluster = cluster_of(("1", False), ("2", False))
    other = PriceList(table=(Price(9, node="n0"), Price(3, node="n1")))
    assert scores(cluster, Cost(PRICES)) == [50, 0]
    assert scores(cluster, Cost(other)) == [0, 67]


some = st.lists(st.tuples(st.none() | st.integers(0, 10_000), st.booleans(), st.booleans()), min_size=1, max_size=6)


@settings(max_examples=150)
@given(some, st.integers(0, 100))
def test_scores_over_all_nodes_are_those_of_the_formula(
    made: list[tuple[int | None, bool, bool]], percent: int
) -> None:
    """A thousandth is the unit of the prices here; the rest is (price, in use, feasible)."""
    cluster = cluster_of(*((None if price is None else f"{price / 1000:.3f}", used) for price, used, _ in made))
    feasible = [one[2] for one in made]
    costs = [None if price is None else price * 1_000 * (percent if used else 100) // 100 for price, used, _ in made]
    known = [cost for cost, fits in zip(costs, feasible, strict=True) if fits and cost is not None]
    found = scores(cluster, Cost(PRICES, percent), feasible)
    if not known:
        assert found is None
        return
    assert found is not None
    top = max(known)
    for score, cost, fits in zip(found, costs, feasible, strict=True):
        if fits:
            assert score == (100 if not top else 100 - (top if cost is None else cost) * 100 // top)
