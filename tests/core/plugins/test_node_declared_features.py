"""NodeDeclaredFeatures refuses nodes that do not declare a feature the pod needs."""

import pytest

from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeStatus
from situate.core.model.pod import Container, Pod, PodSpec, RestartRule
from situate.core.plugins.node_declared_features import NodeDeclaredFeatures
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_NETWORK = "UserNamespacesHostNetworkSupport"
RESTARTING = Container(name="c", restart_policy_rules=(RestartRule(action="RestartAllContainers"),))


def cluster_of(*declared: tuple[str, ...]) -> Cluster:
    cluster = Cluster()
    for at, features in enumerate(declared):
        cluster.add_node(Node(metadata=ObjectMeta(name=f"n{at}"), status=NodeStatus(declared_features=features)))
    return cluster


def check(spec: PodSpec, cluster: Cluster, row: int | None = None) -> list[int] | None:
    view = View(cluster)
    kind = cluster.class_of(Pod(metadata=ObjectMeta(name="p"), spec=spec))
    codes = NodeDeclaredFeatures().check(kind, view if row is None else view.at(row))
    return None if codes is None else codes.tolist()


@pytest.mark.parametrize(
    "spec,expected",
    [
        pytest.param(PodSpec(containers=(RESTARTING,)), [1, 0, 1, 0], id="a container that restarts all"),
        pytest.param(PodSpec(init_containers=(RESTARTING,)), [1, 0, 1, 0], id="an init container that restarts all"),
        pytest.param(
            PodSpec(host_network=True, host_users=False), [1, 1, 0, 0], id="user namespaces on the host network"
        ),
        pytest.param(
            PodSpec(containers=(RESTARTING,), host_network=True, host_users=False), [1, 1, 1, 0], id="both at once"
        ),
    ],
)
def test_a_feature_is_needed_by(spec: PodSpec, expected: list[int]) -> None:
    cluster = cluster_of((), (RESTART_ALL,), ("Another", HOST_NETWORK), (RESTART_ALL, HOST_NETWORK))
    assert check(spec, cluster) == expected
    assert [check(spec, cluster, row) for row in range(4)] == [[code] for code in expected]
    reason = NodeDeclaredFeatures.reasons[0]
    assert (reason.text, reason.code) == (
        "node(s) didn't match Pod's required features",
        "UnschedulableAndUnresolvable",
    )


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(PodSpec(), id="a plain pod"),
        pytest.param(PodSpec(host_network=True), id="the host network with the host's users"),
        pytest.param(PodSpec(host_users=False), id="user namespaces off the host network"),
        pytest.param(
            PodSpec(containers=(Container(name="c", restart_policy_rules=(RestartRule(action="Restart"),)),)),
            id="a rule that restarts one container",
        ),
    ],
)
def test_no_feature_is_needed_by(spec: PodSpec) -> None:
    assert check(spec, cluster_of(())) is None


def test_declared_features_are_read_as_sorted_as_the_api_server_demands() -> None:
    cluster = cluster_of((HOST_NETWORK, RESTART_ALL), ("Another", RESTART_ALL, "Zonal"), ("Another", "Zonal"))
    assert check(PodSpec(containers=(RESTARTING,)), cluster) == [1, 0, 1]
    assert check(PodSpec(host_network=True, host_users=False), cluster) == [0, 1, 1]
