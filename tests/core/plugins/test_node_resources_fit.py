"""NodeResourcesFit refuses nodes without the room that a pod asks for, and says everything they lack."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import container, node, pod
from situate.core.contract import Detailed, Filter, RowFilter, RowScorer, Scorer
from situate.core.model.pod import ContainerStatus, ResourceRequirements
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.support.arguments import ResourceSpec
from situate.core.plugins.support.resource_scoring import Scoring
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

GPU, FPGA, HUGE_PAGES = "example.com/gpu", "other.example.com/fpga", "hugepages-2Mi"
NAMES = ("cpu", "memory", "ephemeral-storage", GPU, FPGA, HUGE_PAGES)
OK, U, UU = 0, 1, 2

Amounts = dict[str, int]
"""cpu in thousandths, memory in bytes, others counted."""


def twin(
    room: Amounts, bound: list[Amounts], waiting: Amounts, ignored: frozenset[str], groups: frozenset[str]
) -> tuple[int, list[str]]:
    """The code and the texts for one node, from its room, the pods on it and the pod that waits."""
    texts = ["Too many pods"] if len(bound) + 1 > room.get("pods", 0) else []
    code = U if texts else OK
    for name, amount in waiting.items():
        if name in (GPU, FPGA) and (name in ignored or name.split("/")[0] in groups):
            continue
        capacity = room.get(name, 0)
        if amount > 0 and amount > capacity - sum(one.get(name, 0) for one in bound):
            texts.append(f"Insufficient {name}")
            code = UU if code == UU or amount > capacity else U
    return code, sorted(texts)


small = st.integers(0, 8)
amounts = st.one_of(
    st.dictionaries(st.sampled_from(NAMES), small), st.dictionaries(st.sampled_from(NAMES), st.integers(0, 1 << 58))
)
rooms = st.builds(lambda room, pods: room | {"pods": pods}, amounts, st.integers(0, 4))
nodes = st.lists(st.tuples(rooms, st.lists(amounts, max_size=3)), min_size=1, max_size=4)
ignored_names = st.frozensets(st.sampled_from([GPU, FPGA]))
ignored_groups = st.frozensets(st.sampled_from(["example.com", "other.example.com"]))


def quantities(asked: Amounts) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in asked.items()}


def cluster_of(made: list[tuple[Amounts, list[Amounts]]]) -> Cluster:
    cluster = Cluster()
    for row, (room, bound) in enumerate(made):
        cluster.add_node(node(f"n{row}", allocatable=quantities(room)))
        for at, asked in enumerate(bound):
            cluster.add_pod(pod(f"p{row}-{at}", node_name=f"n{row}", requests=quantities(asked)))
    return cluster


def answers(plugin: NodeResourcesFit, cluster: Cluster, view: View, waiting: Amounts) -> list[tuple[int, list[str]]]:
    """Code and texts by row."""
    kind = cluster.class_of(pod("w", requests=quantities(waiting)))
    codes = plugin.check(kind, view)
    assert codes is not None
    texts: list[list[str]] = [[] for _ in range(view.size)]
    for text, mask in plugin.details(kind, view):
        for row in mask.nonzero()[0]:
            texts[row].append(text)
    return [(code, sorted(found)) for code, found in zip(codes.tolist(), texts, strict=True)]


@settings(max_examples=250)
@given(nodes, amounts, ignored_names, ignored_groups)
@example([({"pods": 1, "cpu": 4}, [{"cpu": 5}])], {"cpu": 0, "memory": 0}, frozenset(), frozenset())
@example([({"pods": 9, "cpu": 4}, [{"cpu": 5}])], {"cpu": 1}, frozenset(), frozenset())
@example([({"pods": 9, "memory": 1 << 58}, [{"memory": 1 << 58}])], {"memory": 1}, frozenset(), frozenset())
@example([({"pods": 9}, []), ({"pods": 9, GPU: 2}, [])], {GPU: 1}, frozenset({GPU}), frozenset())
def test_verdicts_and_texts_over_all_nodes_and_for_one_are_those_of_the_rules(
    made: list[tuple[Amounts, list[Amounts]]], waiting: Amounts, ignored: frozenset[str], groups: frozenset[str]
) -> None:
    cluster = cluster_of(made)
    view, plugin = View(cluster), NodeResourcesFit(ignored, groups)
    expected = [twin(room, bound, waiting, ignored, groups) for room, bound in made]
    assert answers(plugin, cluster, view, waiting) == expected
    check_at = plugin.checker_at(cluster.class_of(pod("w", requests=quantities(waiting))), view)
    assert [check_at(row) for row in range(len(made))] == [code for code, _ in expected]
    for row in range(len(made)):
        assert answers(plugin, cluster, view.at(row), waiting) == [expected[row]]
    emptied = view.without(view.pods_on(0))
    first = twin(made[0][0], [], waiting, ignored, groups)
    assert answers(plugin, cluster, emptied, waiting) == [first, *expected[1:]]


def code_of(room: Amounts, waiting: Amounts, **fields: Any) -> int:
    plugin = NodeResourcesFit(**fields)
    return answers(plugin, *_alone(room), waiting)[0][0]


def _alone(room: Amounts) -> tuple[Cluster, View]:
    cluster = cluster_of([({"pods": 9} | room, [])])
    return cluster, View(cluster)


@pytest.mark.parametrize(
    "fields,waiting,code",
    [
        pytest.param({}, {GPU: 1}, UU, id="nobody ignores it"),
        pytest.param({"ignored_resources": frozenset({GPU})}, {GPU: 1}, OK, id="it is ignored"),
        pytest.param({"ignored_resources": frozenset({GPU})}, {FPGA: 1}, UU, id="another is ignored"),
        pytest.param({"ignored_groups": frozenset({"example.com"})}, {GPU: 1}, OK, id="its group is ignored"),
        pytest.param({"ignored_groups": frozenset({"example.com"})}, {FPGA: 1}, UU, id="a group of another is ignored"),
        pytest.param({"ignored_resources": frozenset({"cpu"})}, {"cpu": 1}, UU, id="only extended ones can be ignored"),
        pytest.param({"ignored_resources": frozenset({HUGE_PAGES})}, {HUGE_PAGES: 1}, UU, id="nor can huge pages"),
    ],
)
def test_a_resource_that_the_node_lacks(fields: dict[str, Any], waiting: Amounts, code: int) -> None:
    assert code_of({}, waiting, **fields) == code


def test_who_asks_for_nothing_fits_even_where_it_is_overfull() -> None:
    cluster = cluster_of([({"pods": 9, "cpu": 1000}, [{"cpu": 5000}])])
    assert answers(NodeResourcesFit(), cluster, View(cluster), {}) == [(OK, [])]
    assert answers(NodeResourcesFit(), cluster, View(cluster), {"memory": 1}) == [(UU, ["Insufficient memory"])]


def test_too_many_pods_can_be_helped_even_on_a_node_that_runs_none() -> None:
    """Kubernetes does not ask whether the node could run a pod if it were empty."""
    assert code_of({"pods": 0}, {}) == U


def test_a_pod_is_measured_by_what_it_asks_for_not_by_what_a_resize_has_reached() -> None:
    """A bound pod counts for the most of both; one that is to be placed, for what its spec says."""
    reached = ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": "4"}))
    resized = pod("w", containers=(container(cpu="1"),), container_statuses=(reached,))
    cluster = cluster_of([({"pods": 9, "cpu": 2000}, [])])
    kind = cluster.class_of(resized)
    codes = NodeResourcesFit().check(kind, View(cluster))
    assert codes is not None
    assert codes.tolist() == [OK]
    cluster.put(resized, kind, 0)
    assert View(cluster).requested(0).tolist() == [4000]


def test_more_is_bound_to_a_node_than_can_be_counted() -> None:
    most = 5 << 60
    cluster = cluster_of([({"pods": 9, "memory": 1 << 40}, [{"memory": most}, {"memory": most}])])
    view = View(cluster)
    expected = [(U, ["Insufficient memory"])]
    assert answers(NodeResourcesFit(), cluster, view, {"memory": 1}) == expected
    assert answers(NodeResourcesFit(), cluster, view, {}) == [(OK, [])]
    kind = cluster.class_of(pod("w", memory="1"))
    assert NodeResourcesFit().checker_at(kind, view)(0) == U
    assert NodeResourcesFit().score(kind, view).tolist() == [NodeResourcesFit().scorer_at(kind, view)(0)] == [0]


def test_it_scores_by_the_strategy_that_it_is_given() -> None:
    cluster = cluster_of([({"cpu": 1000}, []), ({"cpu": 4000}, [])])
    kind, view = cluster.class_of(pod("w", cpu="500m")), View(cluster)
    cpu = (ResourceSpec("cpu", 1),)
    for scoring, expected in ((Scoring("LeastAllocated", cpu), [50, 87]), (Scoring("MostAllocated", cpu), [50, 12])):
        plugin = NodeResourcesFit(scoring=scoring)
        score_at = plugin.scorer_at(kind, view)
        assert plugin.score(kind, view).tolist() == [score_at(0), score_at(1)] == expected


def test_it_is_asked_row_by_row_and_for_every_text() -> None:
    plugin = NodeResourcesFit()
    for kind in (Filter, Scorer, RowFilter, RowScorer, Detailed):
        assert isinstance(plugin, kind)
