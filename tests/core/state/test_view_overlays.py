"""An overlay shows what a cluster would show that was really changed so; and leaves the cluster alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import container, node, pod, selector
from situate.core.model.base import INT64_MAX
from situate.core.model.labels import EVERYTHING, parse_selector
from situate.core.model.meta import ObjectMeta
from situate.core.model.pod import Affinity, ContainerPort, Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from situate.core.model.storage import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    VolumeNodeResources,
)
from situate.core.model.volumes import CSISource, PersistentVolumeClaimSource, Volume
from situate.core.state.audit import audit
from situate.core.state.classes import HostPort, TermKind
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
from situate.core.state.topology import Eligible
from situate.core.state.topology_counts import carried_terms, count_overlay, count_pods
from situate.core.state.view import View

NODES = ("a", "b", "c")
ZONES = {"a": "x", "b": "y", "c": "x"}
DRIVER = "csi.example.com"
GPU = "example.com/gpu"
PORTS = [HostPort("0.0.0.0", "TCP", 80), HostPort("10.0.0.1", "TCP", 80), HostPort("0.0.0.0", "UDP", 80)]
MATCHERS = [pods_in("default", parse_selector(selector(app="web"))), pods_in("default", EVERYTHING)]
KEYS = ["zone", "rack", None]


def near(app: str, key: str) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=selector(app=app), topology_key=key)


def affinity(app: str, key: str, twice: bool) -> Affinity:
    return Affinity(
        pod_anti_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=(near(app, key),) * (1 + twice),
            preferred_during_scheduling_ignored_during_execution=(
                WeightedPodAffinityTerm(weight=3, pod_affinity_term=near(app, "zone")),
            ),
        )
    )


shapes = st.fixed_dictionaries(
    {
        "app": st.sampled_from(["web", "db"]),
        "cpu": st.sampled_from([None, "1", "250m"]),
        "gpu": st.sampled_from([None, None, "1"]),
        "port": st.sampled_from([None, None, *PORTS]),
        "claim": st.sampled_from([None, None, "data", "logs", "lost"]),
        "affinity": st.one_of(
            st.none(),
            st.builds(
                affinity, st.sampled_from(["web", "db"]), st.sampled_from(["zone", "rack", "node"]), st.booleans()
            ),
        ),
        "node": st.sampled_from(NODES),
        "leaving": st.booleans(),
    }
)


def make_pod(name: str, shape: dict[str, Any], *, leaving: bool) -> Pod:
    asked = {"cpu": shape["cpu"], GPU: shape["gpu"]}
    port = shape["port"]
    ports = () if port is None else (ContainerPort(host_port=port.port, host_ip=port.ip, protocol=port.protocol),)
    claim = shape["claim"]
    return pod(
        name,
        labels={"app": shape["app"]},
        node_name=shape["node"],
        containers=(container(requests={key: value for key, value in asked.items() if value}, ports=ports),),
        affinity=shape["affinity"],
        volumes=()
        if claim is None
        else (Volume(name="v", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=claim)),),
        deletion_timestamp="2026-01-01T00:00:00Z" if leaving else None,
    )


def empty_cluster() -> Cluster:
    cluster = Cluster()
    for name in NODES:
        labels = {"zone": ZONES[name], "node": name} | ({"rack": "r"} if name != "c" else {})
        cluster.add_node(node(name, cpu="4", memory="4Gi", pods="10", allocatable={GPU: "2"}, labels=labels))
    limited = CSINodeDriver(name=DRIVER, allocatable=VolumeNodeResources(count=1))
    for name in ("a", "b"):
        cluster.put_object(CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=(limited,))))
    for name in ("data", "logs"):
        claim = ObjectMeta(name=name, namespace="default")
        cluster.put_object(PersistentVolumeClaim(metadata=claim, spec=PersistentVolumeClaimSpec(volume_name=name)))
        source = CSISource(driver=DRIVER, volume_handle=name)
        cluster.put_object(PersistentVolume(metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(csi=source)))
    return cluster


def seen(view: View) -> dict[str, Any]:
    """All that a view shows, in a form that does not depend on which cluster it is of."""
    cluster = view.cluster
    rows = range(view.size)
    waiting = {app: cluster.class_of(pod("w", labels={"app": app})) for app in ("web", "db")}
    found: dict[str, Any] = {
        f"requested {name}": view.requested(view.resource(name)).tolist() for name in ("cpu", "pods", GPU)
    }
    found["nonzero"] = [view.nonzero_requested(column).tolist() for column in (0, 1)]
    found["classes"] = [sorted(kind.signature for kind in view.classes_on(row)) for row in rows]
    found["holders"] = _by_signature(volume_holders(view))
    found["room"] = [column.tolist() for column in volume_room(view, DRIVER)]
    found["attached"] = [volumes_on(view, row).attached for row in rows]
    found["problems"] = volume_problems(view)
    found["derived"] = view.derived(
        "sum", lambda shown: shown.requested(0) + shown.requested(3), lambda row: _sum(cluster, row)
    ).tolist()
    found["tallies"] = [
        count_pods(view, matcher, key, counts_leaving=True).tolist() for matcher in MATCHERS for key in KEYS
    ]
    for app, kind in waiting.items():
        carried = carried_terms(view, kind, *TermKind)
        found[f"terms about {app}"] = {entry.term: counts.tolist() for entry, counts in carried if counts.any()}
    return found


def _sum(cluster: Cluster, row: int) -> int:
    return int(cluster.nodes.requested[0, row] + cluster.nodes.requested[3, row])


def _by_signature(holders: Mapping[int, Any]) -> dict[int, list[bytes]]:
    return {row: sorted(kind.signature for kind in kinds) for row, kinds in holders.items()}


@settings(max_examples=150)
@given(st.lists(shapes, max_size=7), st.lists(shapes, max_size=3), st.data())
def test_an_overlay_equals_a_cluster_that_was_really_changed(
    bound: list[dict[str, Any]], added: list[dict[str, Any]], data: st.DataObject
) -> None:
    leaving = data.draw(st.sets(st.sampled_from(range(len(bound)))) if bound else st.just(set()), label="removed")
    cluster, changed = empty_cluster(), empty_cluster()
    for at, shape in enumerate(bound):
        one = make_pod(f"p{at}", shape, leaving=shape["leaving"])
        cluster.add_pod(one)
        if at not in leaving:
            changed.add_pod(one)
    for at, shape in enumerate(added):
        changed.add_pod(make_pod(f"new{at}", shape, leaving=False))
    view = View(cluster)
    before = seen(view)
    removed = [cluster.pods.bound(cluster.pods.rows[f"default/p{at}"]) for at in sorted(leaving)]
    placements = [
        (cluster.class_of(make_pod("new", shape, leaving=False)), cluster.nodes.rows[shape["node"]]) for shape in added
    ]
    for overlay in (
        view.without(removed).plus(placements),
        view.plus(placements).without(removed),
        view.without(removed[:1]).without(removed[1:]).plus(placements[:1]).plus(placements[1:]),
    ):
        assert seen(overlay) == seen(View(changed))
        _each_row_equals_that_of_the_whole(overlay)
        kept = [f"default/p{at}" for at in range(len(bound)) if at not in leaving]
        assert sorted(one.key for row in range(view.size) for one in overlay.pods_on(row)) == kept
        _claims_are_used(overlay, bound, leaving)
        assert list(overlay.removed) == [one.row for one in removed]
        assert sorted((kind.signature, sign) for kind, sign in overlay_classes(overlay)) == sorted(
            [(one.kind.signature, -1) for one in removed] + [(kind.signature, 1) for kind, _ in placements]
        )
    assert seen(view) == before, "the cluster was left alone"
    assert audit(cluster) == []


def _each_row_equals_that_of_the_whole(overlay: View) -> None:
    whole = seen(overlay)
    for row in range(overlay.size):
        here = seen(overlay.at(row))
        for what, shown in here.items():
            if what.startswith(("requested", "derived", "classes", "attached")):
                assert shown == whole[what][row : row + 1], what
            elif what in ("nonzero", "room"):
                assert shown == [column[row : row + 1] for column in whole[what]], what
            elif what in ("holders", "problems"):
                assert shown == ({0: whole[what][row]} if row in whole[what] else {}), what
            else:
                assert shown == whole[what], f"{what}: domains are those of the whole"
        assert seen(overlay.at(row).whole) == whole


def _claims_are_used(overlay: View, bound: list[dict[str, Any]], leaving: set[int]) -> None:
    for claim in ("data", "logs", "lost"):
        users = [f"default/p{at}" for at, one in enumerate(bound) if one["claim"] == claim and at not in leaving]
        assert [one.key for one in claim_users(overlay, "default", claim)] == users


@settings(max_examples=80)
@given(st.lists(shapes, max_size=6), st.lists(shapes, max_size=2), st.data())
def test_ports_are_held_by_who_is_left_and_who_is_added(
    bound: list[dict[str, Any]], added: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Kubernetes does not count who holds a port: when one of two that hold it goes, it is free."""
    leaving = data.draw(st.sets(st.sampled_from(range(len(bound)))) if bound else st.just(set()), label="removed")
    cluster = empty_cluster()
    for at, shape in enumerate(bound):
        cluster.add_pod(make_pod(f"p{at}", shape, leaving=False))
    view = View(cluster)
    removed = [cluster.pods.bound(cluster.pods.rows[f"default/p{at}"]) for at in sorted(leaving)]
    placements = [
        (cluster.class_of(make_pod("new", shape, leaving=False)), cluster.nodes.rows[shape["node"]]) for shape in added
    ]
    overlay = view.without(removed).plus(placements)
    freed = {(shape["node"], shape["port"]) for at, shape in enumerate(bound) if at in leaving}
    holding = [one for at, one in enumerate(bound) if at not in leaving and (one["node"], one["port"]) not in freed]
    for asked in PORTS:
        expected: dict[int, dict[str, int]] = {}
        for shape in (*holding, *added):
            port = shape["port"]
            if port is not None and (port.protocol, port.port) == (asked.protocol, asked.port):
                addresses = expected.setdefault(NODES.index(shape["node"]), {})
                addresses[port.ip] = addresses.get(port.ip, 0) + 1
        assert port_holders(overlay, asked) == expected
        for row in range(view.size):
            narrowed = {0: expected[row]} if row in expected else {}
            assert port_holders(overlay.at(row), asked) == narrowed


@settings(max_examples=60)
@given(st.lists(shapes, min_size=1, max_size=6), st.data())
def test_a_tally_without_leaving_pods_loses_whoever_is_taken_away(
    bound: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Kubernetes takes a pod off the count even if it was leaving, and so was not counted."""
    going = data.draw(st.sets(st.sampled_from(range(len(bound)))), label="removed")
    cluster = empty_cluster()
    for at, shape in enumerate(bound):
        cluster.add_pod(make_pod(f"p{at}", shape, leaving=shape["leaving"]))
    view = View(cluster)
    removed = [cluster.pods.bound(cluster.pods.rows[f"default/p{at}"]) for at in sorted(going)]
    counts = count_pods(view.without(removed), MATCHERS[0], "zone", counts_leaving=False)
    expected = [0, 0, 0]
    for at, shape in enumerate(bound):
        if shape["app"] == "web":
            expected["xy".index(ZONES[shape["node"]])] += (not shape["leaving"]) - (at in going)
    assert counts.tolist() == expected


def test_what_an_overlay_adds_stops_at_what_can_be_counted() -> None:
    cluster = empty_cluster()
    cluster.add_pod(pod("p", node_name="a", memory="5Ei"))
    overlay = View(cluster).plus([(cluster.class_of(pod("p", memory="5Ei")), 0)])
    assert overlay.requested(1).tolist() == overlay.nonzero_requested(1).tolist() == [INT64_MAX, 0, 0]


def test_an_overlay_counts_on_eligible_nodes_alone() -> None:
    cluster = empty_cluster()
    cluster.add_pod(pod("p", labels={"app": "web"}, node_name="a"))
    cluster.add_pod(pod("q", labels={"app": "web"}, node_name="c"))
    view = View(cluster)
    eligible = Eligible(("not c",), view.label("node")[0] != 2)
    web = cluster.class_of(pod("w", labels={"app": "web"}))
    overlay = view.without([*view.pods_on(0), *view.pods_on(2)]).plus([(web, 1), (web, 2), (web, 2)])
    assert count_pods(overlay, MATCHERS[0], "zone", eligible, counts_leaving=True).tolist() == [0, 1, 0]
    assert count_overlay(overlay, MATCHERS[0], "zone", eligible).tolist() == [-1, 1, 0]
    assert count_overlay(overlay, MATCHERS[0], "zone").tolist() == [0, 1, 0]
    assert count_overlay(view, MATCHERS[0], "zone", eligible).tolist() == [0, 0, 0]
