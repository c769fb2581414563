"""A view: read-only, and it remembers what was read through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import container, node, pod, selector, taint
from situate.core.model.labels import EVERYTHING
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import ContainerImage
from situate.core.model.pod import Affinity, ContainerPort, PodAffinity, PodAffinityTerm
from situate.core.model.policy import Namespace, PodDisruptionBudget
from situate.core.model.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from situate.core.model.volumes import PersistentVolumeClaimSource, Volume
from situate.core.state import cluster as cluster_module
from situate.core.state import view as view_module
from situate.core.state.classes import CPU, MEMORY, PODS, HostPort, PodClass, TermKind
from situate.core.state.cluster import Cluster
from situate.core.state.holders import (
    claim_users,
    overlay_classes,
    port_holders,
    volume_holders,
    volume_problems,
    volume_room,
    volumes_on,
)
from situate.core.state.matching import pods_in
from situate.core.state.topology_counts import carried_terms, count_overlay, count_pods
from situate.core.state.view import FEASIBLE, LOAD, OVERLAY, STORAGE, TERMS, WORKLOADS, View

ALL = pods_in("default", EVERYTHING)
DRIVER = "csi.example.com"
PORT = HostPort("0.0.0.0", "TCP", 80)
APART = Affinity(
    pod_anti_affinity=PodAffinity(
        required_during_scheduling_ignored_during_execution=(
            PodAffinityTerm(label_selector=selector(app="web"), topology_key="zone"),
        )
    )
)
DATA = Volume(name="d", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="data"))


def cluster_of_three() -> Cluster:
    """Nodes a, b (gone) and c; pods on a and c."""
    cluster = Cluster()
    image = ContainerImage(names=("shop",), size_bytes=5)
    cluster.add_node(node("a", cpu="4", memory="4Gi", pods="10", labels={"zone": "x"}, images=(image,)))
    cluster.add_node(node("b"))
    cluster.add_node(
        node("c", cpu="2", memory="2Gi", pods="9", labels={"zone": "y"}, unschedulable=True, taints=(taint(),))
    )
    cluster.remove_node("b")
    limited = CSINodeDriver(name=DRIVER, allocatable=VolumeNodeResources(count=3))
    cluster.put_object(CSINode(metadata=ObjectMeta(name="c"), spec=CSINodeSpec(drivers=(limited,))))
    ported = container(cpu="1", ports=(ContainerPort(host_port=80),))
    cluster.add_pod(pod("p", node_name="a", cpu="1", labels={"app": "web"}, affinity=APART))
    cluster.add_pod(pod("q", node_name="c", containers=(ported,), volumes=(DATA,)))
    return cluster


def web(cluster: Cluster) -> PodClass:
    return cluster.class_of(pod("w", labels={"app": "web"}))


def derived(view: View) -> Any:
    return view.derived("twice", lambda shown: 2 * shown.requested(CPU), lambda row: 0)


ARRAYS: dict[str, Callable[[View], Any]] = {
    "which rows hold a node": lambda view: view.present,
    "which are cordoned": lambda view: view.unschedulable,
    "sets of taints": lambda view: view.taint_set,
    "a label": lambda view: view.label("zone")[0],
    "allocatable": lambda view: view.allocatable(CPU),
    "requested": lambda view: view.requested(CPU),
    "requested as scoring counts": lambda view: view.nonzero_requested(MEMORY),
    "volumes attached": lambda view: volume_room(view, DRIVER)[0],
    "volumes that can be": lambda view: volume_room(view, DRIVER)[1],
    "a tally": lambda view: count_pods(view, ALL, "zone", counts_leaving=True),
    "carriers of a term": lambda view: carried_terms(view, web(view.cluster), *TermKind)[0][1],
    "which rows are feasible": lambda view: view.scoring(np.ones(view.size, np.bool_)).feasible,
    "a derived column": derived,
}


@pytest.mark.parametrize("read", ARRAYS.values(), ids=ARRAYS)
def test_nothing_that_a_view_hands_out_can_be_written(read: Callable[[View], Any]) -> None:
    view = View(cluster_of_three())
    derived(view)
    with pytest.raises(ValueError, match="read-only"):
        read(view)[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        read(view.at(0))[0] = 0


@pytest.mark.parametrize("read", ARRAYS.values(), ids=ARRAYS)
def test_what_an_overlay_hands_out_is_never_the_clusters_own_unless_it_cannot_be_written(
    read: Callable[[View], Any],
) -> None:
    view = View(cluster_of_three())
    overlay = view.without(view.pods_on(0)).plus([(web(view.cluster), 0)])
    before = read(view).tolist()
    column = read(overlay)
    if column.flags.writeable:
        column[:] = 7
    assert read(view).tolist() == before


# -- what is read is noted ------------------------------------------------------------------------------------------

READS: dict[str, tuple[Callable[[View], Any], int]] = {
    "names": (lambda view: view.names, 0),
    "which rows hold a node": (lambda view: view.present, 0),
    "how many nodes there are": (lambda view: view.node_count, 0),
    "cordons": (lambda view: view.unschedulable, 0),
    "taints": (lambda view: (view.taint_set, view.by_taint_set(len)), 0),
    "a node": (lambda view: view.node(0), 0),
    "where a node is": (lambda view: view.find("a"), 0),
    "a label": (lambda view: view.label("zone"), 0),
    "images": (lambda view: view.image_holders("shop"), 0),
    "allocatable": (lambda view: view.allocatable(view.resource("cpu")), 0),
    "a memo": (lambda view: view.memo("key", lambda whole: whole.requested(CPU)), 0),
    "requests": (lambda view: view.requested(CPU), LOAD),
    "requests as scoring counts": (lambda view: view.nonzero_requested(CPU), LOAD),
    "a derived column": (derived, LOAD),
    "pods on a node": (lambda view: view.pods_on(0), LOAD),
    "their rows": (lambda view: view.pod_rows_on(0), LOAD),
    "their classes": (lambda view: view.classes_on(0), LOAD),
    "who has volumes": (volume_holders, LOAD),
    "who uses a claim": (lambda view: claim_users(view, "default", "data"), LOAD),
    "who holds a port": (lambda view: port_holders(view, PORT), LOAD),
    "what an overlay changes": (overlay_classes, LOAD),
    "room for volumes": (lambda view: volume_room(view, DRIVER), LOAD | STORAGE),
    "volumes on a node": (lambda view: volumes_on(view, 0), LOAD | STORAGE),
    "problems with volumes": (volume_problems, LOAD | STORAGE),
    "storage": (lambda view: view.storage, STORAGE),
    "services": (lambda view: view.workloads, WORKLOADS),
    "terms": (lambda view: carried_terms(view, web(view.cluster), TermKind.PREFERRED_AFFINITY), TERMS),
    "what an overlay moves": (lambda view: count_overlay(view, ALL, "zone"), OVERLAY),
    "feasible nodes": (lambda view: view.feasible, FEASIBLE),
}


@pytest.mark.parametrize("read,noted", READS.values(), ids=READS)
def test_it_is_noted_what_was_read(read: Callable[[View], Any], noted: int) -> None:
    cluster = cluster_of_three()
    feasible = np.ones(3, np.bool_)
    for view in (View(cluster, feasible=feasible), View(cluster, row=2, feasible=feasible[2:])):
        assert (view.reads, view.tallies_read) == (0, [])
        read(view)
        assert (view.reads, view.tallies_read) == (noted, [])


def test_the_tallies_and_terms_that_were_read_are_noted_with_their_versions() -> None:
    cluster = cluster_of_three()
    view = View(cluster)
    count_pods(view, ALL, "zone", counts_leaving=True)
    ((term, _),) = carried_terms(view, web(cluster), TermKind.REQUIRED_ANTI_AFFINITY)
    assert view.reads == TERMS
    assert view.tallies_read == [*cluster.tallies.values(), term]
    assert view.versions_read == [one.version for one in view.tallies_read]
    cluster.add_pod(pod("r", node_name="a", labels={"app": "web"}, cpu="1", affinity=APART))
    assert all(one.version != was for one, was in zip(view.tallies_read, view.versions_read, strict=True))


def test_which_nodes_are_feasible_is_known_only_while_scoring() -> None:
    view = View(cluster_of_three())
    with pytest.raises(LookupError, match="only while scoring"):
        _ = view.feasible
    assert view.scoring(np.array([True, False, False])).feasible.tolist() == [True, False, False]


# -- rows ----------------------------------------------------------------------------------------------------------


def test_the_whole_cluster_shows_rows_that_nodes_left() -> None:
    view = View(cluster_of_three())
    assert (view.size, view.node_count, view.names) == (3, 2, ["a", "", "c"])
    assert view.present.tolist() == [True, False, True]
    assert (view.node(1), view.find("b"), view.find("c")) == (None, -1, 2)


def test_the_rows_of_a_domain_are_those_with_its_label() -> None:
    cluster = cluster_of_three()
    for name, zone in (("d", "y"), ("e", "x"), ("f", None)):
        cluster.add_node(node(name, labels={} if zone is None else {"zone": zone}))
    view = View(cluster)
    assert view.names == ["a", "d", "c", "e", "f"]
    found = {zone: view.rows_in("zone", view.label("zone")[1].find(zone)).tolist() for zone in ("x", "y")}
    assert found == {"x": [0, 3], "y": [1, 2]}
    assert view.rows_in("zone", 2).tolist() == view.at(1).rows_in("zone", 2).tolist() == [4], "those without it"
    assert view.rows_in("rack", 0).tolist() == [0, 1, 2, 3, 4]


def test_a_view_of_one_row_is_that_row_of_the_whole() -> None:
    view = View(cluster_of_three())
    for row in range(view.size):
        here = view.at(row)
        assert (here.size, here.node_count, here.names) == (1, 2, view.names[row : row + 1])
        for name, read in ARRAYS.items():
            if name not in ("a tally", "carriers of a term", "which rows are feasible"):
                assert read(here).tolist() == read(view).tolist()[row : row + 1], name
        assert here.node(0) == view.node(row)
        assert here.pods_on(0) == view.pods_on(row)
        assert here.pod_rows_on(0) == view.pod_rows_on(row)
        assert here.classes_on(0) == view.classes_on(row)
        assert volumes_on(here, 0) == volumes_on(view, row)
        assert port_holders(here, PORT) == _only(port_holders(view, PORT), row)
        assert volume_holders(here) == _only(volume_holders(view), row)
        assert volume_problems(here) == _only(volume_problems(view), row)
        assert count_pods(here, ALL, "zone", counts_leaving=True).tolist() == [1, 1, 0], (
            "tallies are those of the whole"
        )
        assert here.whole.size == 3
    assert view.at(2).find("c") == 0
    assert view.at(2).find("a") == -1
    assert view.whole is view


def _only(by_row: Any, row: int) -> Any:
    return {0: by_row[row]} if row in by_row else {}


def test_objects_are_shown_as_they_are() -> None:
    cluster = cluster_of_three()
    budget = PodDisruptionBudget(metadata=ObjectMeta(name="b", namespace="default"))
    cluster.put_object(budget)
    cluster.put_object(Namespace(metadata=ObjectMeta(name="n", labels={"team": "red"})))
    view = View(cluster)
    assert view.budgets == [budget]
    assert view.namespace_labels == {"n": {"team": "red"}}
    assert list(view.storage.csi_nodes) == ["c"]
    assert view.workloads.services == {}


# -- memos ---------------------------------------------------------------------------------------------------------


def test_a_memo_is_computed_once_over_all_rows_until_a_node_changes() -> None:
    cluster = cluster_of_three()
    asked: list[int] = []

    def compute(whole: View) -> int:
        asked.append(whole.size)
        return whole.size

    assert [View(cluster).memo("size", compute), View(cluster).at(2).memo("size", compute)] == [3, 3]
    cluster.add_pod(pod("r", node_name="a"))
    assert View(cluster).memo("size", compute) == 3
    assert asked == [3]
    cluster.add_node(node("d"))
    cluster.add_node(node("e"))
    assert View(cluster).memo("size", compute) == 4
    assert asked == [3, 4]


def test_nothing_is_a_memo_too() -> None:
    cluster = cluster_of_three()
    asked = []
    for _ in range(2):
        assert View(cluster).memo("none", lambda whole: asked.append(1)) is None
    assert asked == [1]


def test_memos_are_all_let_go_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "MEMO_CELLS", 3 * (3 + 1))
    cluster = cluster_of_three()
    for at in range(3):
        View(cluster).memo(at, lambda whole: 0)
    assert list(cluster.memos) == [0, 1, 2]
    View(cluster).memo(3, lambda whole: 0)
    assert list(cluster.memos) == [3]
    View(cluster).memo("outer", lambda whole: whole.memo("inner", lambda again: 1))
    assert list(cluster.memos) == [3, "inner", "outer"]


# -- derived columns ------------------------------------------------------------------------------------------------


def test_only_the_rows_where_a_pod_came_or_went_are_worked_out_again() -> None:
    cluster = cluster_of_three()
    asked: list[Any] = []

    def compute(shown: View) -> Any:
        asked.append("all")
        return shown.requested(CPU) * 2

    def at(row: int) -> int:
        asked.append(row)
        return int(cluster.nodes.requested[CPU, row]) * 2

    def read(view: View) -> list[int]:
        found: list[int] = view.derived("twice", compute, at).tolist()
        return found

    assert read(View(cluster)) == [2000, 0, 2000]
    assert read(View(cluster).at(2)) == [2000]
    cluster.add_pod(pod("r", node_name="c", cpu="1"))
    assert read(View(cluster)) == [2000, 0, 4000]
    assert asked == ["all", 2]
    cluster.add_node(node("d", cpu="1"))
    assert read(View(cluster)) == [2000, 0, 4000]
    assert asked == ["all", 2, "all"]
    overlay = View(cluster).without(View(cluster).pods_on(2))
    assert read(overlay) == [2000, 0, 0]
    assert read(overlay.at(2)) == [0]
    assert read(View(cluster)) == [2000, 0, 4000]
    assert asked == ["all", 2, "all", "all", "all"]


def test_a_derived_column_that_fell_too_far_behind_is_worked_out_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "TOUCHED_LIMIT", 2)
    cluster = cluster_of_three()

    def one(row: int) -> int:
        return int(cluster.nodes.requested[PODS, row])

    def read() -> list[int]:
        found: list[int] = View(cluster).derived("pods", lambda shown: shown.requested(PODS) * 1, one).tolist()
        return found

    assert read() == [1, 0, 1]
    for at in range(9):
        cluster.add_pod(pod(f"r{at}", node_name="c" if at else "a"))
    assert cluster.touched_base > 0
    assert read() == [2, 0, 9]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 5), st.integers(0, 3)),
        st.tuples(st.just("gone"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("node"), st.integers(0, 3), st.integers(1, 4)),
        st.tuples(st.just("node gone"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("read"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=80)
@given(steps)
def test_a_derived_column_equals_a_fresh_one_whatever_happened_since(history: list[tuple[str, int, int]]) -> None:
    cluster = Cluster()

    def compute(shown: View) -> Any:
        return shown.requested(CPU) * 100 + shown.allocatable(PODS)

    def at(row: int) -> int:
        nodes = cluster.nodes
        return int(nodes.requested[CPU, row]) * 100 + int(nodes.allocatable[PODS, row])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_module, "TOUCHED_LIMIT", 4)
        for what, one, other in history:
            match what:
                case "pod":
                    cluster.add_pod(pod(f"p{one}", node_name=f"n{other}", cpu=f"{one + 1}m"))
                case "gone":
                    cluster.remove_pod(f"default/p{one}")
                case "node":
                    cluster.add_node(node(f"n{one}", pods=str(other)))
                case "node gone":
                    cluster.remove_node(f"n{one}")
                case _:
                    view = View(cluster)
                    assert view.derived("key", compute, at).tolist() == compute(view).tolist()
        view = View(cluster)
        assert view.derived("key", compute, at).tolist() == compute(view).tolist()
