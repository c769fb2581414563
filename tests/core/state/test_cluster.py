"""The cluster: nodes, pods and objects come, change and go, and each call says whether anything changed."""

from __future__ import annotations

from typing import Any

import pytest

from builders import container, node, pod, selector, taint
from situate.core.model.base import INT64_MAX
from situate.core.model.labels import EVERYTHING, parse_selector
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import ContainerImage
from situate.core.model.pod import (
    Affinity,
    ContainerPort,
    ContainerStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
)
from situate.core.model.policy import Namespace, PodDisruptionBudget
from situate.core.model.storage import StorageClass
from situate.core.model.volumes import PersistentVolumeClaimSource, Volume
from situate.core.model.workloads import Service, ServiceSpec
from situate.core.state import cluster as cluster_module
from situate.core.state.audit import audit
from situate.core.state.classes import CPU, MEMORY, PODS, HostPort, TermKind
from situate.core.state.cluster import Cluster
from situate.core.state.holders import claim_users, port_holders
from situate.core.state.matching import Matcher, PodTerm, pods_in
from situate.core.state.pods import BoundPod
from situate.core.state.topology import TopologyTally
from situate.core.state.topology_counts import carried_terms, count_pods
from situate.core.state.view import View

START = "2026-01-01T00:00:00Z"
DELETED = "2026-01-02T00:00:00Z"


def cluster_of(*names: str) -> Cluster:
    cluster = Cluster()
    for name in names:
        cluster.add_node(node(name, cpu="4", memory="4Gi", pods="10"))
    return cluster


def bound(name: str, node_name: str, **fields: Any) -> Pod:
    return pod(name, node_name=node_name, **fields)


def everything(cluster: Cluster) -> list[Any]:
    """All that a reader with old answers looks at to see whether something moved."""
    objects = cluster.objects
    return [
        cluster.epoch,
        cluster.touched_base + len(cluster.touched),
        cluster.terms.version,
        objects.storage.version,
        objects.workloads.version,
        objects.namespaces_version,
        [tally.version for tally in cluster.tallies.values()],
    ]


def load_of(cluster: Cluster, name: str) -> tuple[int, int]:
    """milli-cpu and pods on a node."""
    row = cluster.nodes.rows[name]
    return int(cluster.nodes.requested[CPU, row]), int(cluster.nodes.requested[PODS, row])


def tally_of(cluster: Cluster, namespace: str = "default", *, counts_leaving: bool = True) -> TopologyTally:
    """All pods of a namespace, counted by node."""
    view = View(cluster)
    count_pods(view, pods_in(namespace, EVERYTHING), None, counts_leaving=counts_leaving)
    tally = view.tallies_read[0]
    assert isinstance(tally, TopologyTally)
    return tally


# -- nodes ---------------------------------------------------------------------------------------------------------


def test_rows_of_nodes_that_left_are_used_again_lowest_first() -> None:
    cluster = cluster_of("a", "b", "c", "d")
    for name in ("c", "a", "d"):
        assert cluster.remove_node(name)
    for name in ("e", "f", "g", "h"):
        assert cluster.add_node(node(name))
    assert cluster.nodes.names == ["e", "b", "f", "g", "h"]
    assert audit(cluster) == []


def test_a_node_that_changes_keeps_its_row_and_its_pods() -> None:
    cluster = cluster_of("a", "b")
    cluster.add_pod(bound("p", "a", cpu="1"))
    changed = node("a", cpu="8", taints=(taint(),), unschedulable=True, labels={"zone": "z"})
    assert cluster.add_node(changed)
    view = View(cluster)
    assert (view.allocatable(CPU)[0], view.unschedulable[0]) == (8000, True)
    assert view.allocatable(PODS)[0] == 0, "what the node no longer lists is gone"
    assert view.by_taint_set(len)[view.taint_set[0]] == 1
    assert load_of(cluster, "a") == (1000, 1)
    assert audit(cluster) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: c.add_node(node("a", cpu="4", memory="4Gi", pods="10")), id="a node as it is"),
        pytest.param(lambda c: c.remove_node("elsewhere"), id="a node that is not there leaves"),
        pytest.param(lambda c: c.add_pod(bound("p", "a", cpu="1", uid="u", start_time=START)), id="a pod as it is"),
        pytest.param(lambda c: c.add_pod(bound("h", "gone", cpu="2")), id="a pod as it is, of a node that is not here"),
        pytest.param(lambda c: c.remove_pod("default/other"), id="a pod that is not there leaves"),
        pytest.param(lambda c: c.add_pod(pod("new")), id="a pod that is not bound"),
        pytest.param(lambda c: c.add_pod(bound("new", "a", phase="Succeeded")), id="a pod that finished unseen"),
        pytest.param(lambda c: c.put_object(StorageClass(metadata=ObjectMeta(name="fast"))), id="a class as it is"),
        pytest.param(lambda c: c.put_object(Namespace(metadata=ObjectMeta(name="n"))), id="a namespace as it is"),
        pytest.param(lambda c: c.forget_object(Service(metadata=ObjectMeta(name="no"))), id="an unknown one goes"),
        pytest.param(lambda c: c.forget_object(Namespace(metadata=ObjectMeta(name="x"))), id="an unknown one leaves"),
    ],
)
def test_nothing_moves_and_nothing_is_said_to_have_changed_by(change: Any) -> None:
    cluster = cluster_of("a")
    cluster.put_object(StorageClass(metadata=ObjectMeta(name="fast")))
    cluster.put_object(Namespace(metadata=ObjectMeta(name="n")))
    cluster.add_pod(bound("p", "a", cpu="1", uid="u", start_time=START))
    cluster.add_pod(bound("h", "gone", cpu="2"))
    tally_of(cluster)
    before = everything(cluster)
    assert change(cluster) is False
    assert everything(cluster) == before
    assert audit(cluster) == []


def test_room_is_made_for_any_number_of_nodes() -> None:
    cluster = Cluster()
    view = View(cluster)
    assert view.label("zone")[0].tolist() == []
    for at in range(40):
        cluster.add_node(node(f"n{at}", cpu=at, labels={"zone": f"z{at % 3}"}))
        cluster.add_pod(bound(f"p{at}", f"n{at}", cpu="1m"))
    view = View(cluster)
    assert view.allocatable(CPU).tolist() == [1000 * at for at in range(40)]
    assert view.requested(CPU).tolist() == [1] * 40
    ids, values = view.label("zone")
    assert [values.names[at] for at in ids] == [f"z{at % 3}" for at in range(40)]
    assert audit(cluster) == []


def test_a_resource_that_nobody_had_gets_a_column() -> None:
    cluster = cluster_of("a")
    epoch = cluster.epoch
    gpu, fpga = "example.com/gpu", "example.com/fpga"
    assert View(cluster).resource(gpu) == -1
    kind = cluster.class_of(pod("p", requests={gpu: "2"}))
    assert cluster.epoch != epoch, "columns moved in memory"
    assert View(cluster).allocatable(View(cluster).resource(gpu)).tolist() == [0]
    cluster.add_node(node("b", allocatable={gpu: "4", fpga: "1"}))
    cluster.put(pod("p"), kind, 1)
    view = View(cluster)
    assert view.allocatable(view.resource(gpu)).tolist() == [0, 4]
    assert view.requested(view.resource(gpu)).tolist() == [0, 2]
    assert view.allocatable(view.resource(fpga)).tolist() == [0, 1]
    assert audit(cluster) == []


def test_a_node_that_lists_a_resource_no_more_has_none_of_it() -> None:
    cluster = Cluster()
    cluster.add_node(node("a", cpu="4", allocatable={"example.com/gpu": "2"}))
    cluster.add_node(node("b", cpu="4", allocatable={"example.com/gpu": "2"}))
    cluster.add_node(node("a", cpu="4"))
    view = View(cluster)
    assert view.allocatable(view.resource("example.com/gpu")).tolist() == [0, 2]
    assert audit(cluster) == []


def test_images_go_with_their_node_and_change_with_it() -> None:
    cluster = Cluster()
    shop, tool = ContainerImage(names=("shop:v1", "shop"), size_bytes=5), ContainerImage(names=("tool",), size_bytes=7)
    cluster.add_node(node("a", images=(shop,)))
    cluster.add_node(node("b", images=(shop, tool)))
    assert View(cluster).image_holders("shop") == {0: 5, 1: 5}
    cluster.add_node(node("b", images=(tool,)))
    assert View(cluster).image_holders("shop") == {0: 5}
    cluster.remove_node("a")
    assert View(cluster).image_holders("shop") == {}
    assert audit(cluster) == []


# -- pods ----------------------------------------------------------------------------------------------------------


def test_pods_of_a_node_that_left_wait_uncounted_and_are_counted_when_it_comes_back() -> None:
    cluster = cluster_of("a", "b")
    cluster.add_pod(bound("p", "a", cpu="1", uid="u", start_time=START, deletion_timestamp=DELETED))
    cluster.add_pod(bound("q", "a", cpu="1"))
    before = View(cluster).pods_on(0)
    cluster.remove_node("a")
    assert len(cluster.pods) == 0
    assert [list(pods) for pods in cluster.orphans.values()] == [["default/p", "default/q"]]
    assert audit(cluster) == []
    cluster.add_node(node("c"))
    assert load_of(cluster, "c") == (0, 0), "another node took the row"
    cluster.add_node(node("a"))
    assert load_of(cluster, "a") == (2000, 2)
    after = View(cluster).pods_on(cluster.nodes.rows["a"])
    assert [_kept(one) for one in after] == [_kept(one) for one in before]
    assert cluster.orphans == {}
    assert audit(cluster) == []


def test_what_is_kept_of_a_pod_outlives_its_node() -> None:
    """The pods of a class differ in name, uid and times: each must come back as itself."""
    cluster = cluster_of("a")
    evicted = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    cluster.add_pod(bound("first", "a", uid="1", creation_timestamp=START))
    cluster.add_pod(
        bound(
            "second",
            "a",
            uid="2",
            start_time="2026-01-01T00:00:00.250Z",
            deletion_timestamp=DELETED,
            conditions=(evicted,),
        )
    )
    assert len(cluster.classes) == 1
    before = [_kept(one) for one in View(cluster).pods_on(0)]
    assert before[1] == ("default/second", "2", None, 1767225600250, True, True)
    cluster.remove_node("a")
    cluster.add_node(node("a"))
    assert before == [_kept(one) for one in View(cluster).pods_on(0)]


def _kept(one: BoundPod) -> tuple[object, ...]:
    return (one.key, one.uid, one.created_ms, one.start_ms, one.leaving, one.preempted)


def test_a_pod_that_waits_for_its_node_may_change_node_change_or_leave() -> None:
    cluster = cluster_of("a")
    for name in ("p", "q", "r", "s"):
        assert cluster.add_pod(bound(name, "gone"))
    assert cluster.add_pod(bound("p", "a")), "it is bound to a node that is here"
    assert cluster.add_pod(bound("q", "lost")), "it is bound to another that is not"
    assert cluster.remove_pod("default/r")
    assert cluster.add_pod(bound("s", "gone", phase="Failed"))
    assert {name: list(pods) for name, pods in cluster.orphans.items()} == {"lost": ["default/q"]}
    assert load_of(cluster, "a") == (0, 1)
    cluster.add_node(node("gone"))
    assert load_of(cluster, "gone") == (0, 0)
    cluster.add_node(node("lost"))
    assert load_of(cluster, "lost") == (0, 1)
    assert audit(cluster) == []


def test_a_counted_pod_may_be_bound_anew_to_a_node_that_is_not_here() -> None:
    cluster = cluster_of("a")
    cluster.add_pod(bound("p", "a", cpu="1"))
    assert cluster.add_pod(bound("p", "gone", cpu="1"))
    assert load_of(cluster, "a") == (0, 0)
    assert list(cluster.orphans) == ["gone"]
    assert audit(cluster) == []


@pytest.mark.parametrize(
    "changed,load_a,load_b",
    [
        pytest.param(bound("p", "a", cpu="2"), (2000, 1), (0, 0), id="its requests, so its class"),
        pytest.param(bound("p", "b", cpu="1"), (0, 0), (1000, 1), id="its node"),
        pytest.param(bound("p", "a", cpu="1", labels={"app": "db"}), (1000, 1), (0, 0), id="its labels"),
        pytest.param(bound("p", "a", cpu="1", uid="new"), (1000, 1), (0, 0), id="its uid: it is another of its name"),
        pytest.param(bound("p", "a", cpu="1", start_time=START), (1000, 1), (0, 0), id="its start"),
        pytest.param(bound("p", "a", cpu="1", creation_timestamp=START), (1000, 1), (0, 0), id="its creation"),
        pytest.param(bound("p", "a", cpu="1", deletion_timestamp=DELETED), (1000, 1), (0, 0), id="it is being deleted"),
        pytest.param(bound("p", "a", cpu="1", phase="Succeeded"), (0, 0), (0, 0), id="it succeeded"),
        pytest.param(bound("p", "a", cpu="1", phase="Failed"), (0, 0), (0, 0), id="it failed"),
        pytest.param(pod("p", cpu="1"), (0, 0), (0, 0), id="it is bound no more"),
    ],
)
def test_a_pod_changes(changed: Pod, load_a: tuple[int, int], load_b: tuple[int, int]) -> None:
    cluster = cluster_of("a", "b")
    cluster.add_pod(bound("p", "a", cpu="1"))
    tally_of(cluster)
    assert cluster.add_pod(changed)
    assert (load_of(cluster, "a"), load_of(cluster, "b")) == (load_a, load_b)
    assert cluster.touched[-1] == (1 if load_b[1] else 0)
    assert audit(cluster) == []
    assert cluster.add_pod(changed) is False


def test_a_pod_that_starts_is_the_last_on_its_node_and_changes_no_count() -> None:
    cluster = cluster_of("a")
    cluster.add_pod(bound("p", "a"))
    cluster.add_pod(bound("q", "a"))
    tally = tally_of(cluster)
    version = tally.version
    running = (ContainerStatus(name="c"),)
    assert cluster.add_pod(bound("p", "a", phase="Running", start_time=START, container_statuses=running))
    assert tally.version == version
    on_node = View(cluster).pods_on(0)
    assert [(one.name, one.start_ms is not None) for one in on_node] == [("q", False), ("p", True)]
    assert audit(cluster) == []


def test_a_pod_that_is_being_deleted_counts_but_where_those_are_left_out() -> None:
    cluster = cluster_of("a")
    cluster.add_pod(bound("p", "a"))
    cluster.add_pod(bound("q", "a"))
    all_pods, staying = tally_of(cluster), tally_of(cluster, counts_leaving=False)
    assert (all_pods.counts.tolist(), staying.counts.tolist()) == ([2, 0], [2, 0])
    version = all_pods.version, staying.version
    cluster.add_pod(bound("q", "a", deletion_timestamp=DELETED))
    assert (all_pods.counts.tolist(), staying.counts.tolist()) == ([2, 0], [1, 0])
    assert version[1] != staying.version
    cluster.remove_pod("default/q")
    assert (all_pods.counts.tolist(), staying.counts.tolist()) == ([1, 0], [1, 0])
    assert audit(cluster) == []


def test_pods_on_a_node_are_in_order_of_arrival() -> None:
    cluster = cluster_of("a")
    for name in ("one", "two", "three"):
        cluster.add_pod(bound(name, "a"))
    cluster.remove_pod("default/one")
    cluster.add_pod(bound("four", "a"))
    assert [one.name for one in View(cluster).pods_on(0)] == ["two", "three", "four"]


def test_a_pod_takes_its_ports_and_claims_and_gives_them_back() -> None:
    cluster = cluster_of("a")
    web = container(ports=(ContainerPort(host_port=80),))
    data = Volume(name="v", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="data"))
    for name in ("p", "q"):
        cluster.add_pod(bound(name, "a", containers=(web,), volumes=(data,)))
    port = HostPort("0.0.0.0", "TCP", 80)
    assert port_holders(View(cluster), port) == {0: {"0.0.0.0": 2}}
    assert [one.name for one in claim_users(View(cluster), "default", "data")] == ["p", "q"]
    cluster.remove_pod("default/p")
    assert port_holders(View(cluster), port) == {0: {"0.0.0.0": 1}}
    assert [one.name for one in claim_users(View(cluster), "default", "data")] == ["q"]
    cluster.remove_pod("default/q")
    assert (cluster.ports.taken, cluster.volumes.by_node, cluster.volumes.by_claim) == ({}, {}, {})
    assert audit(cluster) == []


def test_requests_that_add_up_beyond_what_can_be_counted_fill_the_node_and_are_given_back_whole() -> None:
    cluster = cluster_of("a")
    for name in ("p", "q", "r"):
        cluster.add_pod(bound(name, "a", memory="5Ei"))
    assert cluster.nodes.requested[MEMORY, 0] == INT64_MAX
    assert cluster.nodes.nonzero[1, 0] == INT64_MAX
    assert audit(cluster) == []
    cluster.remove_pod("default/q")
    assert cluster.nodes.requested[MEMORY, 0] == INT64_MAX
    assert audit(cluster) == []
    cluster.remove_pod("default/p")
    assert cluster.nodes.requested[MEMORY, 0] == 5 << 60
    assert cluster.nodes.nonzero[1, 0] == 5 << 60
    assert audit(cluster) == []


def test_a_whole_cluster_is_loaded_at_once() -> None:
    cluster = Cluster()
    team = Namespace(metadata=ObjectMeta(name="default", labels={"team": "red"}))
    cluster.load([node("a"), node("b")], [team], [bound("p", "a", cpu="1"), pod("waiting"), bound("q", "nowhere")])
    assert (load_of(cluster, "a"), load_of(cluster, "b")) == ((1000, 1), (0, 0))
    assert cluster.objects.namespace_labels == {"default": {"team": "red"}}
    assert list(cluster.orphans) == ["nowhere"]
    assert audit(cluster) == []


def test_a_bound_pod_is_found_by_its_key() -> None:
    cluster = cluster_of("a")
    cluster.add_pod(bound("p", "a", uid="u"))
    cluster.add_pod(bound("q", "gone", uid="v"))
    kind = cluster.class_of(pod("any"))
    found = [(cluster.node_of(key), cluster.uid_of(key)) for key in KEYS]
    assert found == [("a", "u"), ("", "v"), ("", None)]
    assert [cluster.counted(key) for key in KEYS] == [(kind, "a", False), None, None]
    cluster.remove_node("a")
    assert (cluster.counted(KEYS[0]), cluster.node_of(KEYS[0]), cluster.uid_of(KEYS[0])) == (None, "", "u")


KEYS = ("default/p", "default/q", "default/r")


# -- other objects -------------------------------------------------------------------------------------------------


def test_a_namespace_that_is_labelled_anew_is_counted_anew() -> None:
    cluster = cluster_of("a")
    cluster.add_pod(bound("p", "a", namespace="other"))
    red = Matcher((PodTerm((), parse_selector(selector(team="red")), EVERYTHING),))

    def counted() -> list[int]:
        counts: list[int] = count_pods(View(cluster), red, None, counts_leaving=True).tolist()
        return counts

    def labelled(**labels: str) -> Namespace:
        return Namespace(metadata=ObjectMeta(name="other", labels=labels))

    assert counted() == [0, 0]
    epoch = cluster.epoch
    assert cluster.put_object(labelled(team="red"))
    assert cluster.epoch != epoch
    assert counted() == [1, 0]
    assert cluster.put_object(labelled(team="blue"))
    assert counted() == [0, 0]
    assert cluster.put_object(labelled(team="red"))
    assert cluster.forget_object(labelled())
    assert counted() == [0, 0]
    assert audit(cluster) == []


def test_each_family_of_objects_has_a_version_of_its_own() -> None:
    cluster = cluster_of("a")
    service = Service(metadata=ObjectMeta(name="s", namespace="default"), spec=ServiceSpec(selector={"app": "web"}))
    fast = StorageClass(metadata=ObjectMeta(name="fast"))
    budget = PodDisruptionBudget(metadata=ObjectMeta(name="b", namespace="default"))
    for item, moves in ((service, 4), (fast, 3), (budget, None)):
        for change in (cluster.put_object, cluster.forget_object):
            before = everything(cluster)
            assert change(item)
            moved = [at for at, (was, now) in enumerate(zip(before, everything(cluster), strict=True)) if was != now]
            assert moved == ([] if moves is None else [moves])


# -- limits --------------------------------------------------------------------------------------------------------


def test_classes_without_pods_are_forgotten_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "IDLE_CLASSES", 3)
    cluster = cluster_of("a")
    tally = tally_of(cluster)
    cluster.add_pod(bound("stays", "a", cpu="1"))
    kept = cluster.class_of(bound("stays", "a", cpu="1"))
    waiting = [cluster.class_of(pod("w", cpu="2", labels={"at": str(at)})) for at in range(5)]
    assert len(cluster.classes) == 3 + 1
    assert cluster.classes.values() == [kept, *waiting[2:]]
    assert len(cluster.classes.groups()) == 3 + 1
    assert len(tally.groups) == 3 + 1
    assert cluster.class_of(pod("w", cpu="2", labels={"at": "0"})) is not waiting[0], "it is compiled again"
    assert tally.counts.tolist() == [1, 0]
    assert audit(cluster) == []


def test_a_class_that_lost_its_last_pod_is_kept_for_the_next_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "IDLE_CLASSES", 2)
    cluster = cluster_of("a")
    tally = tally_of(cluster)
    for at in range(4):
        cluster.add_pod(bound(f"p{at}", "a", labels={"at": str(at)}))
    first = cluster.class_of(bound("p0", "a", labels={"at": "0"}))
    cluster.remove_pod("default/p0")
    assert cluster.class_of(pod("p0", labels={"at": "0"})) is first
    cluster.remove_pod("default/p1")
    cluster.remove_pod("default/p2")
    assert len(cluster.classes) == 3
    assert cluster.class_of(pod("p0", labels={"at": "0"})) is not first
    cluster.add_pod(bound("p0", "a", labels={"at": "0"}))
    assert tally.counts.tolist() == [2, 0]
    assert audit(cluster) == []


def test_a_class_in_use_is_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "IDLE_CLASSES", 1)
    cluster = cluster_of("a")
    for at in range(5):
        cluster.add_pod(bound(f"p{at}", "a", labels={"at": str(at)}))
    assert len(cluster.classes) == 5
    assert audit(cluster) == []


def test_a_pod_whose_class_was_forgotten_while_it_waited_is_counted_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_module, "IDLE_CLASSES", 1)
    cluster = cluster_of("a")
    tally = tally_of(cluster)
    waiting = [pod(f"w{at}", cpu="1", labels={"at": str(at)}) for at in range(3)]
    kinds = [cluster.class_of(one) for one in waiting]
    assert len(cluster.classes) == 1, "two were forgotten"
    for one, kind in zip(waiting, kinds, strict=True):
        cluster.put(one, kind, 0)
        assert audit(cluster) == []
    assert (tally.counts.tolist(), load_of(cluster, "a")) == ([3, 0], (3000, 3))
    cluster.put(pod("again", cpu="1", labels={"at": "0"}), kinds[0], 0)
    assert len(cluster.classes) == 3
    assert audit(cluster) == []
    for name in ("w0", "w1", "w2", "again"):
        cluster.remove_pod(f"default/{name}")
    assert (tally.counts.tolist(), load_of(cluster, "a")) == ([0, 0], (0, 0))
    assert audit(cluster) == []


def test_touched_rows_are_forgotten_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "TOUCHED_LIMIT", 4)
    cluster = cluster_of("a", "b")
    for at in range(20):
        cluster.add_pod(bound(f"p{at}", "ab"[at % 2]))
        assert len(cluster.touched) <= 8
        assert cluster.touched_base + len(cluster.touched) == at + 1, "positions count on"
        assert cluster.touched == [row % 2 for row in range(cluster.touched_base, at + 1)]
    assert cluster.touched_base > 0


# -- what bound pods carry ----------------------------------------------------------------------------------------


def test_terms_are_carried_from_the_first_pod_of_a_class_to_the_last() -> None:
    cluster = cluster_of("a", "b")
    apart = PodAffinityTerm(label_selector=selector(app="web"), topology_key="host")
    affinity = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(apart,)))
    web = cluster.class_of(pod("w", labels={"app": "web"}))
    version = cluster.terms.version
    cluster.add_pod(bound("p", "a", affinity=affinity))
    assert cluster.terms.version > version
    version = cluster.terms.version
    cluster.add_pod(bound("q", "b", affinity=affinity))
    cluster.remove_pod("default/p")
    assert cluster.terms.version == version
    assert len(carried_terms(View(cluster), web, TermKind.REQUIRED_ANTI_AFFINITY)) == 1
    cluster.remove_pod("default/q")
    assert cluster.terms.version > version
    assert carried_terms(View(cluster), web, TermKind.REQUIRED_ANTI_AFFINITY) == []
    assert audit(cluster) == []
