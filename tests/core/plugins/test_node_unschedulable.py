"""NodeUnschedulable refuses cordoned nodes, unless the pod tolerates the cordon."""

import pytest

from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeSpec
from situate.core.model.pod import Pod, PodSpec
from situate.core.model.tolerations import Toleration
from situate.core.plugins.node_unschedulable import NodeUnschedulable
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

CORDON = "node.kubernetes.io/unschedulable"


def cluster_of(**cordoned: bool) -> Cluster:
    cluster = Cluster()
    for name, is_cordoned in cordoned.items():
        cluster.add_node(Node(metadata=ObjectMeta(name=name), spec=NodeSpec(unschedulable=is_cordoned)))
    return cluster


def check(cluster: Cluster, *tolerations: Toleration, row: int | None = None) -> list[int] | None:
    kind = cluster.class_of(Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(tolerations=tolerations)))
    view = View(cluster)
    codes = NodeUnschedulable().check(kind, view if row is None else view.at(row))
    return None if codes is None else codes.tolist()


def test_a_cordoned_node_is_refused() -> None:
    cluster = cluster_of(a=False, b=True)
    assert check(cluster) == [0, 1]
    assert [check(cluster, row=row) for row in (0, 1)] == [[0], [1]]
    reason = NodeUnschedulable.reasons[0]
    assert (reason.text, reason.code) == ("node(s) were unschedulable", "UnschedulableAndUnresolvable")


@pytest.mark.parametrize(
    "toleration",
    [
        pytest.param(Toleration(key=CORDON, operator="Exists", effect="NoSchedule"), id="by key and effect"),
        pytest.param(Toleration(operator="Exists"), id="by tolerating everything"),
        pytest.param(Toleration(key=CORDON), id="by an empty value, which is the cordon's"),
    ],
)
def test_a_pod_may_tolerate_the_cordon(toleration: Toleration) -> None:
    assert check(cluster_of(a=False, b=True), toleration) is None


@pytest.mark.parametrize(
    "toleration",
    [
        pytest.param(Toleration(key=CORDON, operator="Exists", effect="NoExecute"), id="of another effect"),
        pytest.param(Toleration(key="other", operator="Exists"), id="of another key"),
        pytest.param(Toleration(key=CORDON, value="true"), id="of another value"),
    ],
)
def test_a_toleration_does_not_help(toleration: Toleration) -> None:
    assert check(cluster_of(a=True, b=False), toleration) == [1, 0]


def test_without_a_cordoned_node_there_is_nothing_to_say() -> None:
    cluster = cluster_of(a=False, b=True)
    cluster.remove_node("b")
    assert check(cluster) is None
