"""Nodes that come and go for ever do not make the vocabularies grow for ever."""

from __future__ import annotations

from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeSpec
from situate.core.model.tolerations import Taint
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.core.state.nodes import SPARE_VALUES
from situate.core.state.view import View

HOST = "kubernetes.io/hostname"


def _node(at: int) -> Node:
    name = f"n{at}"
    return Node(
        metadata=ObjectMeta(name=name, labels={HOST: name}),
        spec=NodeSpec(taints=(Taint(key=f"k{at}", effect="NoSchedule"),)),
    )


def test_host_names_and_taints_of_nodes_that_left_are_forgotten() -> None:
    cluster = Cluster()
    for at in range(1_000):
        cluster.add_node(_node(at))
        View(cluster).label(HOST)
        if at >= 3:
            cluster.remove_node(f"n{at - 3}")
    limit = 2 * len(cluster.nodes.rows) + SPARE_VALUES + 1
    ids, values = View(cluster).label(HOST)
    assert len(values) <= limit
    assert len(cluster.nodes.taint_sets) <= limit
    shown = {name: values.names[ids[row]] for name, row in cluster.nodes.rows.items()}
    assert shown == {name: name for name in cluster.nodes.rows}
    assert audit(cluster) == []
