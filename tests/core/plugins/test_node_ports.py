"""NodePorts refuses nodes where a wanted host port is taken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import Container, ContainerPort, Pod, PodSpec
from situate.core.plugins.node_ports import NodePorts
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

Port = tuple[str, str, int]


def pod(name: str, *ports: Port, node: str = "") -> Pod:
    wanted = tuple(ContainerPort(host_ip=ip, protocol=protocol, host_port=port) for ip, protocol, port in ports)
    spec = PodSpec(containers=(Container(name="c", ports=wanted),), node_name=node)
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


def cluster_of(*taken: tuple[Port, ...]) -> Cluster:
    cluster = Cluster()
    for at, ports in enumerate(taken):
        cluster.add_node(Node(metadata=ObjectMeta(name=f"n{at}")))
        cluster.add_pod(pod(f"bound{at}", *ports, node=f"n{at}"))
    return cluster


def check(cluster: Cluster, *wanted: Port) -> list[int] | None:
    codes = NodePorts().check(cluster.class_of(pod("p", *wanted)), View(cluster))
    return None if codes is None else codes.tolist()


CASES = [
    pytest.param(("", "TCP", 80), ("", "TCP", 80), 1, id="the same port is taken"),
    pytest.param(("", "TCP", 80), ("", "TCP", 81), 0, id="another port is free"),
    pytest.param(("", "UDP", 80), ("", "TCP", 80), 0, id="another protocol is free"),
    pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), 0, id="another address is free"),
    pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), 1, id="the same address is taken"),
    pytest.param(("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), 1, id="every address takes each address"),
    pytest.param(("10.0.0.1", "TCP", 80), ("", "TCP", 80), 1, id="no address means every address"),
    pytest.param(("::", "TCP", 80), ("10.0.0.1", "TCP", 80), 0, id="only 0.0.0.0 stands for every address"),
]


@pytest.mark.parametrize("taken,wanted,code", CASES)
def test_a_port(taken: Port, wanted: Port, code: int) -> None:
    cluster = cluster_of((taken,), ())
    assert check(cluster, wanted) == [code, 0]
    assert check(cluster_of((wanted,), ()), taken) == [code, 0], "a clash goes both ways"


def test_a_port_that_is_taken_may_come_free_by_eviction() -> None:
    reason = NodePorts.reasons[0]
    assert (reason.text, reason.code) == ("node(s) didn't have free ports for the requested pod ports", "Unschedulable")


def test_a_pod_without_host_ports_is_let_through() -> None:
    cluster = cluster_of((("", "TCP", 80),))
    assert check(cluster) is None
    assert check(cluster, ("", "TCP", 0)) is None


def test_ports_of_sidecars_count_and_those_of_other_init_containers_do_not() -> None:
    port = ContainerPort(host_port=80, protocol="TCP")
    cluster = cluster_of((("", "TCP", 80),))

    def starting(restart_policy: str | None) -> Pod:
        init = Container(name="i", ports=(port,), restart_policy=restart_policy)
        return Pod(
            metadata=ObjectMeta(name="p"), spec=PodSpec(init_containers=(init,), containers=(Container(name="c"),))
        )

    assert NodePorts().check(cluster.class_of(starting(None)), View(cluster)) is None
    codes = NodePorts().check(cluster.class_of(starting("Always")), View(cluster))
    assert codes is not None
    assert codes.tolist() == [1]


def test_a_port_comes_free_when_its_pod_leaves() -> None:
    cluster = cluster_of((("", "TCP", 80),))
    assert check(cluster, ("", "TCP", 80)) == [1]
    cluster.remove_pod("default/bound0")
    assert check(cluster, ("", "TCP", 80)) == [0]


def test_an_overlay_frees_the_ports_of_its_victims_and_takes_those_it_adds() -> None:
    cluster = cluster_of((("", "TCP", 80),), ())
    kind = cluster.class_of(pod("p", ("", "TCP", 80)))
    view = View(cluster)
    freed = NodePorts().check(kind, view.without(view.pods_on(0)))
    crowded = NodePorts().check(kind, view.plus([(kind, 1)]))
    assert freed is not None
    assert crowded is not None
    assert (freed.tolist(), crowded.tolist()) == ([0, 0], [1, 1])


PORTS = st.tuples(
    st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]), st.sampled_from(["TCP", "UDP"]), st.sampled_from([80, 81])
)


def clash(one: Port, other: Port) -> bool:
    everywhere = ("", "0.0.0.0")
    shared = one[0] in everywhere or other[0] in everywhere or one[0] == other[0]
    return shared and one[1:] == other[1:]


@settings(max_examples=100)
@given(st.lists(st.lists(PORTS, max_size=3), min_size=1, max_size=4), st.lists(PORTS, min_size=1, max_size=2))
def test_verdicts_are_those_of_each_pair_of_ports(taken: list[list[Port]], wanted: list[Port]) -> None:
    cluster = cluster_of(*(tuple(ports) for ports in taken))
    expected = [int(any(clash(one, other) for one in wanted for other in ports)) for ports in taken]
    assert check(cluster, *wanted) == expected
    kind = cluster.class_of(pod("p", *wanted))
    view = View(cluster)
    assert [NodePorts().check_at(kind, view, row) for row in range(len(taken))] == expected
    narrowed = [NodePorts().check(kind, view.at(row)) for row in range(len(taken))]
    assert [None if one is None else one.tolist() for one in narrowed] == [[code] for code in expected]
