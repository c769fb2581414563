"""Node rows: labels become columns when somebody asks, and equal sets of taints are one."""

from __future__ import annotations

from builders import node, taint
from situate.core.state.cluster import Cluster
from situate.core.state.view import View


def values_of(cluster: Cluster, key: str) -> list[str | None]:
    ids, vocab = View(cluster).label(key)
    return [None if at < 0 else vocab.names[at] for at in ids]


def test_a_label_that_somebody_asked_for_is_kept_up_as_nodes_come_change_and_go() -> None:
    cluster = Cluster()
    cluster.add_node(node("a", labels={"zone": "x"}))
    cluster.add_node(node("b"))
    assert cluster.nodes.labels == {}
    assert values_of(cluster, "zone") == ["x", None]
    cluster.add_node(node("c", labels={"zone": "y"}))
    assert values_of(cluster, "zone") == ["x", None, "y"]
    cluster.add_node(node("b", labels={"zone": "x"}))
    cluster.add_node(node("a", labels={}))
    assert values_of(cluster, "zone") == [None, "x", "y"]
    cluster.remove_node("b")
    assert values_of(cluster, "zone") == [None, None, "y"]
    cluster.add_node(node("d", labels={"zone": ""}))
    assert values_of(cluster, "zone") == [None, "", "y"], "an empty value is one"


def test_nodes_with_the_same_taints_are_asked_about_once() -> None:
    cluster = Cluster()
    cluster.add_node(node("a", taints=(taint("k"), taint("m"))))
    cluster.add_node(node("b"))
    cluster.add_node(node("c", taints=(taint("k"), taint("m"))))
    cluster.add_node(node("d", taints=(taint("m"), taint("k"))))
    answers = View(cluster).by_taint_set(len)
    sets = View(cluster).taint_set
    assert [answers[at] for at in sets] == [2, 0, 2, 2]
    assert sets[0] == sets[2] != sets[3], "order is part of the set: the first that is not tolerated is told"
    assert len(answers) == 3
    cluster.remove_node("a")
    assert [answers[at] for at in View(cluster).taint_set] == [0, 0, 2, 2]
