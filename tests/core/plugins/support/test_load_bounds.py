"""Bounds of scores by load: never below the score, hardly ever above it, and exact where asked."""

from __future__ import annotations

import random

import numpy as np
import pytest

from builders import node, pod
from situate.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

NODES, PODS = 40, 60
PLUGINS = (NodeResourcesFit(), NodeResourcesBalancedAllocation())


def cluster(dice: random.Random, *, uniform: bool, round_numbers: bool) -> Cluster:
    made = Cluster()
    for at in range(NODES):
        size = 1 if uniform else dice.choice([1, 2, 3, 7])
        odd = 0 if round_numbers else 12_345
        made.add_node(node(f"n{at}", cpu=f"{4_000 * size + odd % 97}m", memory=f"{(size << 34) + odd}", pods="110"))
    return made


@pytest.mark.parametrize("uniform", [True, False], ids=["nodes of one size", "nodes of several sizes"])
@pytest.mark.parametrize("round_numbers", [True, False], ids=["round numbers", "odd numbers"])
def test_bounds_are_the_scores_or_one_more_and_exact_where_asked(uniform: bool, round_numbers: bool) -> None:
    dice = random.Random(5)
    here = cluster(dice, uniform=uniform, round_numbers=round_numbers)
    asked = above = 0
    for number in range(PODS):
        unit = 40 if round_numbers else 1
        requests = {
            "cpu": f"{dice.randint(1, 1_000 // unit) * unit}m",
            "memory": f"{dice.randint(1, 4_000 // unit) * unit * (1 << 20) + (0 if round_numbers else 1)}",
        }
        made = pod(f"p{number}", **requests)
        kind = here.class_of(made)
        for plugin in PLUGINS:
            view = View(here, feasible=np.ones(NODES, np.bool_))
            scores, bounds = plugin.score(kind, view), plugin.bounds(kind, view)
            if bounds is None:
                continue
            assert scores is not None
            asked += 1
            more = bounds.upper - scores
            assert more.min() >= 0
            assert more.max() <= 1
            above += int(more.sum())
            assert [bounds.exact_at(row) for row in range(NODES)] == scores.tolist()
        here.put(made, kind, dice.randrange(NODES))
    assert asked > PODS, "there were hardly any bounds to compare"
    assert above < asked * NODES // 20, "bounds that are so often too high are of no use"


def test_a_pod_that_may_be_too_much_for_a_node_has_no_bounds_of_balance() -> None:
    here = cluster(random.Random(5), uniform=True, round_numbers=True)
    kind = here.class_of(pod("large", cpu="4", memory="1Gi"))
    view = View(here, feasible=np.ones(NODES, np.bool_))
    assert NodeResourcesBalancedAllocation().bounds(kind, view) is None


def test_free_percentages_below_nothing_count_as_nothing() -> None:
    here = cluster(random.Random(5), uniform=True, round_numbers=True)
    for number in range(3):
        made = pod(f"p{number}", cpu="3", memory="12Gi")
        here.put(made, here.class_of(made), 0)
    kind = here.class_of(pod("more", cpu="1", memory="1Gi"))
    view = View(here, feasible=np.ones(NODES, np.bool_))
    bounds = NodeResourcesFit().bounds(kind, view)
    assert bounds is not None
    assert bounds.upper[0] == bounds.exact_at(0) == 0


def test_a_node_without_cpu_leaves_no_bounds() -> None:
    here = cluster(random.Random(5), uniform=True, round_numbers=True)
    here.add_node(node("none", cpu="0"))
    kind = here.class_of(pod("p", cpu="1", memory="1Gi"))
    view = View(here, feasible=np.ones(NODES + 1, np.bool_))
    assert [plugin.bounds(kind, view) for plugin in PLUGINS] == [None, None]
