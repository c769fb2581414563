"""TaintToleration refuses by NoSchedule and NoExecute taints, and scores by PreferNoSchedule ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeSpec
from situate.core.model.pod import Pod, PodSpec
from situate.core.model.tolerations import Taint, Toleration, tolerates
from situate.core.plugins.taint_toleration import TaintToleration
from situate.core.state.cluster import Cluster
from situate.core.state.view import FEASIBLE, View

GPU = Taint(key="dedicated", value="gpu", effect="NoSchedule")
FLAKY = Taint(key="flaky", effect="PreferNoSchedule")
OLD = Taint(key="old", effect="PreferNoSchedule")
OUT = Taint(key="node.kubernetes.io/not-ready", effect="NoExecute")


def cluster_of(*taints: tuple[Taint, ...]) -> Cluster:
    cluster = Cluster()
    for at, own in enumerate(taints):
        cluster.add_node(Node(metadata=ObjectMeta(name=f"n{at}"), spec=NodeSpec(taints=own)))
    return cluster


def pod(*tolerations: Toleration) -> Pod:
    return Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(tolerations=tolerations))


def check(cluster: Cluster, *tolerations: Toleration, row: int | None = None) -> list[int] | None:
    view = View(cluster)
    codes = TaintToleration().check(cluster.class_of(pod(*tolerations)), view if row is None else view.at(row))
    return None if codes is None else codes.tolist()


def score(cluster: Cluster, feasible: list[bool], *tolerations: Toleration) -> list[int]:
    view = View(cluster).scoring(np.array(feasible))
    return list(map(int, TaintToleration().score(cluster.class_of(pod(*tolerations)), view)))


def test_a_node_with_an_untolerated_taint_is_refused() -> None:
    cluster = cluster_of((), (GPU,), (OUT,), (FLAKY,))
    assert check(cluster) == [0, 1, 1, 0]
    assert [check(cluster, row=row) for row in range(4)] == [[0], [1], [1], [0]]
    reason = TaintToleration.reasons[0]
    assert (reason.text, reason.code) == ("node(s) had untolerated taint(s)", "UnschedulableAndUnresolvable")


def test_every_taint_must_be_tolerated() -> None:
    cluster = cluster_of((GPU, OUT), (GPU,))
    assert check(cluster, Toleration(key="dedicated", value="gpu")) == [1, 0]


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_comparing_tolerations_tolerate_nothing_by_default(operator: str) -> None:
    cluster = cluster_of((Taint(key="level", value="5", effect="NoSchedule"),))
    for bound in ("4", "6"):
        assert check(cluster, Toleration(key="level", operator=operator, value=bound)) == [1]


def test_where_nobody_is_refused_there_is_nothing_to_say() -> None:
    assert check(cluster_of((), (FLAKY,))) is None
    assert check(cluster_of((), (GPU,)), Toleration(operator="Exists")) is None


def test_a_taint_that_left_with_its_node_refuses_nobody() -> None:
    cluster = cluster_of((), (GPU,))
    assert check(cluster) == [0, 1]
    cluster.remove_node("n1")
    assert check(cluster) is None


def test_fewer_disliked_taints_score_higher() -> None:
    cluster = cluster_of((), (FLAKY,), (FLAKY, OLD), (GPU,))
    assert score(cluster, [True, True, True, False])[:3] == [100, 50, 0]
    assert score(cluster, [True, True, False, False])[:2] == [100, 0]


def test_tolerated_taints_do_not_count() -> None:
    cluster = cluster_of((), (FLAKY,), (FLAKY, OLD))
    everywhere = [True] * 3
    assert score(cluster, everywhere, Toleration(key="flaky", operator="Exists")) == [100, 100, 0]
    assert score(cluster, everywhere, Toleration(key="flaky", operator="Exists", effect="NoSchedule")) == [100, 50, 0]


def test_without_disliked_taints_all_score_100_and_feasibility_is_not_asked() -> None:
    cluster = cluster_of((), (GPU,))
    view = View(cluster).scoring(np.array([True, False]))
    assert TaintToleration().score(cluster.class_of(pod()), view).tolist() == [100, 100]
    assert not view.reads & FEASIBLE


EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
TAINTS = st.builds(
    lambda key, value, effect: Taint(key=key, value=value, effect=effect),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "x"]),
    st.sampled_from(EFFECTS),
)
TOLERATIONS = st.builds(
    lambda key, operator, value, effect: Toleration(key=key, operator=operator, value=value, effect=effect),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["", "Equal", "Exists"]),
    st.sampled_from(["", "x"]),
    st.sampled_from(["", *EFFECTS]),
)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.lists(TAINTS, max_size=3), st.booleans()), min_size=1, max_size=6),
    st.lists(TOLERATIONS, max_size=2),
)
def test_verdicts_and_scores_are_those_of_each_node_alone(
    nodes: list[tuple[list[Taint], bool]], tolerations: list[Toleration]
) -> None:
    cluster = cluster_of(*(tuple(taints) for taints, _ in nodes))
    left = [[one for one in taints if not any(tolerates(by, one) for by in tolerations)] for taints, _ in nodes]
    refused = [int(any(one.effect != "PreferNoSchedule" for one in taints)) for taints in left]
    assert (check(cluster, *tolerations) or [0] * len(nodes)) == refused
    feasible = [asked and not no for (_, asked), no in zip(nodes, refused, strict=True)]
    disliked = [sum(one.effect == "PreferNoSchedule" for one in taints) for taints in left]
    most = max((count for count, fits in zip(disliked, feasible, strict=True) if fits), default=0)
    got = score(cluster, feasible, *tolerations)
    for at, fits in enumerate(feasible):
        if fits:
            assert got[at] == (100 - 100 * disliked[at] // most if most else 100)
