"""NodeName refuses every node but the one that the pod names."""

import msgspec

from situate.core.contract import FITS, RULED_OUT
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import Pod, PodSpec
from situate.core.plugins.node_name import NodeName
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.core.versions import V1_37


def cluster_of(*names: str) -> Cluster:
    cluster = Cluster()
    for name in names:
        cluster.add_node(Node(metadata=ObjectMeta(name=name)))
    return cluster


def naming(kind: PodClass, node_name: str) -> PodClass:
    return msgspec.structs.replace(kind, spec=msgspec.structs.replace(kind.spec, node_name=node_name))


def test_a_pod_that_names_no_node_is_let_through() -> None:
    cluster = cluster_of("a", "b")
    assert NodeName().check(cluster.class_of(Pod()), View(cluster)) is None


def test_all_nodes_but_the_named_one_are_refused() -> None:
    cluster = cluster_of("a", "b", "c")
    kind = naming(cluster.class_of(Pod()), "b")
    codes = NodeName().check(kind, View(cluster))
    assert codes is not None
    assert codes.tolist() == [1, 0, 1]
    narrowed = [NodeName().check(kind, View(cluster).at(row)) for row in range(3)]
    assert [None if one is None else one.tolist() for one in narrowed] == [[1], [0], [1]]
    reason = NodeName.reasons[0]
    assert (reason.text, reason.code) == (
        "node(s) didn't match the requested node name",
        "UnschedulableAndUnresolvable",
    )


def test_a_name_that_no_node_has_refuses_all() -> None:
    cluster = cluster_of("a")
    codes = NodeName().check(naming(cluster.class_of(Pod()), "gone"), View(cluster))
    assert codes is not None
    assert codes.tolist() == [1]


def test_where_a_pod_of_the_class_is_bound_does_not_bind_the_others() -> None:
    cluster = cluster_of("a", "b")
    bound = Pod(metadata=ObjectMeta(name="first", namespace="default"), spec=PodSpec(node_name="a"))
    cluster.add_pod(bound)
    waiting = Pod(metadata=ObjectMeta(name="second", namespace="default"))
    assert NodeName().check(cluster.class_of(waiting), View(cluster)) is None


def test_by_the_rules_of_1_37_the_other_nodes_are_ruled_out() -> None:
    cluster = cluster_of("a", "b")
    codes = NodeName().with_rules(V1_37).check(naming(cluster.class_of(Pod()), "b"), View(cluster))
    assert codes is not None
    assert codes.tolist() == [RULED_OUT, FITS]
