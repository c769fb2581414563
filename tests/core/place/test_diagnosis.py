"""Why a pod fits nowhere, in Kubernetes' words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from builders import node, pod
from situate.core.contract import RULED_OUT, Reason, Refusal, Verdict, Wake
from situate.core.place.diagnosis import NO_NODES, Diagnosis, NodeRefusal, diagnose
from situate.core.place.filtering import run_filters
from situate.core.place.profile import Profile
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.node_unschedulable import NodeUnschedulable
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

OUT = RULED_OUT
U, UU = "Unschedulable", "UnschedulableAndUnresolvable"


@dataclass(frozen=True)
class Says:
    """A filter with two reasons, `soft` and `hard`, that gives the same answer whatever it is asked."""

    name: str
    answer: Sequence[int] | Refusal | None
    wakes_on: frozenset[Wake] = frozenset()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        return (Reason(f"{self.name} soft", eviction_helps=True), Reason(f"{self.name} hard", eviction_helps=False))

    def check(self, pod: PodClass, view: View) -> Verdict:
        return self.answer if isinstance(self.answer, Refusal | None) else np.array(self.answer, np.uint8)


def cluster_of(count: int) -> Cluster:
    cluster = Cluster()
    for at in range(count):
        cluster.add_node(node(f"n{at}"))
    return cluster


def diagnosed(*answers: Sequence[int] | Refusal | None, nodes: int = 3) -> Diagnosis:
    cluster = cluster_of(nodes)
    return diagnosis_of(cluster, *(Says("ABC"[at], answer) for at, answer in enumerate(answers)))


def diagnosis_of(cluster: Cluster, *filters: Any, waiting: Any = None) -> Diagnosis:
    profile, kind, view = Profile("s", filters, ()), cluster.class_of(waiting or pod("w")), View(cluster)
    return diagnose(profile, kind, view, run_filters(profile, kind, view))


def test_the_first_refusal_in_profile_order_is_told_of_each_node() -> None:
    found = diagnosed([0, 1, 2], None, [1, 2, 1])
    assert found.refusals == {
        0: NodeRefusal("C", U, ("C soft",)),
        1: NodeRefusal("A", U, ("A soft",)),
        2: NodeRefusal("A", UU, ("A hard",)),
    }
    assert [found.eviction_may_help(row) for row in range(3)] == [True, True, False]
    assert found.plugins == ("A", "C")
    assert found.message() == "0/3 nodes are available: 1 A hard, 1 A soft, 1 C soft."


def test_a_filter_that_is_never_the_first_is_not_among_those_that_refused() -> None:
    assert diagnosed([1, 1, 1], [2, 2, 2]).plugins == ("A",)


def test_counts_are_sorted_as_text() -> None:
    codes = [2] * 2 + [1] * 10
    assert diagnosed(codes, nodes=12).histogram() == "10 A soft, 2 A hard"


def test_the_same_text_of_two_filters_is_counted_as_one() -> None:
    cluster = cluster_of(3)
    found = diagnosis_of(cluster, Says("A", [1, 0, 0]), Says("A", [0, 1, 2]))
    assert found.histogram() == "1 A hard, 2 A soft"


def test_rows_without_a_node_are_not_told_of() -> None:
    cluster = cluster_of(3)
    cluster.remove_node("n1")
    found = diagnosis_of(cluster, Says("A", [1, 1, OUT]))
    assert list(found.refusals) == [0]
    assert found.absent.tolist() == [False, False, True]
    assert found.message() == "0/2 nodes are available: 1 A soft, 1 node(s) didn't satisfy plugin(s) [A]."


def test_nodes_that_were_ruled_out_are_counted_and_not_refused() -> None:
    found = diagnosed([OUT, 0, OUT], [1, 1, 1], [OUT, 0, 0])
    assert found.refusals == {1: NodeRefusal("B", U, ("B soft",))}
    assert found.absent.tolist() == [True, False, True]
    assert found.plugins == ("A", "C", "B")
    expected = "0/3 nodes are available: 1 B soft, 2 node(s) didn't satisfy plugin(s) [A C]."
    assert found.message() == expected
    assert found.message("preemption: no.") == f"{expected} preemption: no."
    assert [found.eviction_may_help(row) for row in range(3)] == [False, True, False]


@pytest.mark.parametrize("helps", [True, False], ids=["for now", "for good"])
def test_a_pod_that_was_turned_away_is_told_so_of_no_node(helps: bool) -> None:
    found = diagnosed([1, 1, 1], Refusal("the claim is not there", eviction_helps=helps))
    assert (found.refusals, found.plugins) == ({}, ("B",))
    assert found.message() == "0/3 nodes are available: the claim is not there."
    assert [found.eviction_may_help(row) for row in range(3)] == [helps] * 3


def test_a_pod_that_several_turned_away_together_names_none_of_them() -> None:
    found = diagnosed([0, OUT, OUT], [OUT, OUT, 0])
    assert found.plugins == ()
    assert found.message() == ("0/3 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously.")
    assert not any(found.eviction_may_help(row) for row in range(3))


def test_without_nodes_there_is_one_thing_to_say() -> None:
    for found in (diagnosed(nodes=0), diagnosed([], nodes=0), diagnosed(Refusal("no"), nodes=0)):
        assert found.message() == found.message("preemption: no") == NO_NODES
        assert found.refusals == {}


def test_every_resource_that_a_node_is_short_of_is_told() -> None:
    cluster = Cluster()
    gpu = "example.com/gpu"
    cluster.add_node(node("small", cpu="1", memory="1Gi", pods="1", allocatable={gpu: "1"}))
    cluster.add_node(node("full", cpu="8", memory="8Gi", pods="1", allocatable={gpu: "2"}))
    cluster.add_node(node("cordoned", unschedulable=True))
    cluster.add_node(node("no gpu", cpu="8", memory="8Gi", pods="9"))
    cluster.add_pod(pod("p", node_name="full", cpu="7", requests={gpu: "1"}))
    waiting = pod("w", cpu="2", memory="2Gi", requests={gpu: "2"})
    found = diagnosis_of(cluster, NodeUnschedulable(), NodeResourcesFit(), waiting=waiting)
    assert found.refusals == {
        0: NodeRefusal("NodeResourcesFit", UU, (f"Insufficient {'cpu'}", f"Insufficient {gpu}", "Insufficient memory")),
        1: NodeRefusal("NodeResourcesFit", U, ("Insufficient cpu", f"Insufficient {gpu}", "Too many pods")),
        2: NodeRefusal("NodeUnschedulable", UU, ("node(s) were unschedulable",)),
        3: NodeRefusal("NodeResourcesFit", UU, (f"Insufficient {gpu}",)),
    }
    assert found.message() == (
        "0/4 nodes are available: 1 Insufficient memory, 1 Too many pods, 1 node(s) were unschedulable, "
        "2 Insufficient cpu, 3 Insufficient example.com/gpu."
    )
