"""The audit finds every kind of error in what is kept: each is planted here, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from builders import container, node, pod, selector, taint
from situate.core.model.labels import parse_selector
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import ContainerImage
from situate.core.model.pod import Affinity, ContainerPort, PodAffinity, PodAffinityTerm
from situate.core.model.storage import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeResources,
)
from situate.core.model.volumes import CSISource, Ephemeral, PersistentVolumeClaimSource, Volume
from situate.core.state.audit import audit
from situate.core.state.classes import TermKind
from situate.core.state.cluster import Cluster
from situate.core.state.holders import volume_problems, volume_room, volumes_on
from situate.core.state.matching import pods_in
from situate.core.state.topology_counts import carried_terms, count_pods
from situate.core.state.view import View

DRIVER = "csi.example.com"


def a_bit_of_everything() -> Cluster:
    """Three pods on node a, one on b; everything that is kept holds something."""
    cluster = Cluster()
    image = ContainerImage(names=("shop:v1",), size_bytes=5)
    cluster.add_node(node("a", cpu="4", labels={"zone": "z"}, taints=(taint(),), images=(image,)))
    cluster.add_node(node("b", cpu="4", labels={"zone": "z"}, unschedulable=True))
    for item in (
        CSINode(metadata=ObjectMeta(name="a"), spec=CSINodeSpec(drivers=(driver(3),))),
        PersistentVolume(
            metadata=ObjectMeta(name="v"), spec=PersistentVolumeSpec(csi=CSISource(driver=DRIVER, volume_handle="h"))
        ),
        PersistentVolumeClaim(
            metadata=ObjectMeta(name="data", namespace="default"), spec=PersistentVolumeClaimSpec(volume_name="v")
        ),
        PersistentVolumeClaim(metadata=ObjectMeta(name="web1-scratch", namespace="default")),
        VolumeAttachment(
            metadata=ObjectMeta(name="att"),
            spec=VolumeAttachmentSpec(
                attacher=DRIVER, node_name="a", source=VolumeAttachmentSource(persistent_volume_name="v")
            ),
        ),
    ):
        cluster.put_object(item)
    term = PodAffinityTerm(label_selector=selector(app="web"), topology_key="zone")
    apart = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))
    data = Volume(name="d", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="data"))
    web: dict[str, Any] = {"labels": {"app": "web"}, "affinity": apart}
    ported = container(cpu="1", ports=(ContainerPort(host_port=80),))
    cluster.add_pod(pod("web1", node_name="a", volumes=(Volume(name="scratch", ephemeral=Ephemeral()),)))
    cluster.add_pod(pod("web2", node_name="a", containers=(ported,), volumes=(data,), **web))
    cluster.add_pod(pod("web3", node_name="b", cpu="1", deletion_timestamp="2026-01-01T00:00:00Z", **web))
    cluster.add_pod(pod("lost", node_name="gone"))
    view = View(cluster)
    count_pods(view, pods_in("default", parse_selector(selector(app="web"))), "zone", counts_leaving=True)
    carried_terms(view, cluster.class_of(pod("new", labels={"app": "web"})), TermKind.REQUIRED_ANTI_AFFINITY)
    volume_room(view, DRIVER)
    return cluster


def driver(count: int) -> CSINodeDriver:
    return CSINodeDriver(name=DRIVER, allocatable=VolumeNodeResources(count=count))


def test_nothing_is_wrong_with_a_cluster_that_nobody_tampered_with() -> None:
    cluster = a_bit_of_everything()
    assert audit(cluster) == []
    web1 = View(cluster).pods_on(0)[0]
    assert volume_problems(View(cluster)) == {0: volumes_on(View(cluster), 0).problem}
    assert (web1.name, len(cluster.pods)) == ("web1", 3)


def _set(cells: Callable[[Cluster], object], at: object, value: object) -> Callable[[Cluster], None]:
    def tamper(cluster: Cluster) -> None:
        cells(cluster)[at] = value  # type: ignore[index]

    return tamper


def _lose(cells: Callable[[Cluster], object], at: object) -> Callable[[Cluster], None]:
    def tamper(cluster: Cluster) -> None:
        del cells(cluster)[at]  # type: ignore[attr-defined]

    return tamper


def _class_of(cluster: Cluster, key: str) -> object:
    return cluster.pods.kind(cluster.pods.rows[key])


def _change(thing: Callable[[Cluster], object], name: str, value: object) -> Callable[[Cluster], None]:
    return lambda cluster: setattr(thing(cluster), name, value)


PLANTED = [
    pytest.param(_set(lambda c: c.nodes.rows, "a", 1), "node rows", id="a node's row"),
    pytest.param(_lose(lambda c: c.nodes.rows, "b"), "node rows", id="a node's row is lost"),
    pytest.param(_set(lambda c: c.nodes.present, 1, False), "present rows", id="whether a node is there"),
    pytest.param(_set(lambda c: c.nodes.present, 2, True), "present rows", id="a node where there is none"),
    pytest.param(_set(lambda c: c.pods.rows, "default/web1", 1), "pod rows", id="a pod's row"),
    pytest.param(_set(lambda c: c.pods.keys, 0, "default/x"), "pod rows", id="a pod's name"),
    pytest.param(_set(lambda c: c.pods.node_rows, 0, 1), "pods by node", id="a pod's node"),
    pytest.param(_lose(lambda c: c.nodes.pods[0], 0), "pods by node", id="a pod on a node is lost"),
    pytest.param(_set(lambda c: c.nodes.pods[0], 7, None), "pods by node", id="a pod that is not there"),
    pytest.param(_set(lambda c: c.nodes.pods[1], 0, None), "pods by node", id="a pod on two nodes"),
    pytest.param(
        lambda c: c.orphans["gone"].update({"default/web1": pod("web1")}), "wait for a node", id="counted, and waiting"
    ),
    pytest.param(_set(lambda c: c.orphans, "a", {}), "waited for", id="a node that is here is waited for"),
    pytest.param(_set(lambda c: c.nodes.allocatable, (0, 0), 1), "allocatable", id="what a node can give"),
    pytest.param(_set(lambda c: c.nodes.taint_set, 0, 0), "taints", id="a node's taints"),
    pytest.param(_set(lambda c: c.nodes.unschedulable, 1, False), "unschedulable", id="whether a node is cordoned"),
    pytest.param(_set(lambda c: c.nodes.labels["zone"].ids, 0, -1), "label zone", id="a node's label"),
    pytest.param(_set(lambda c: c.nodes.requested, (0, 0), 5), "requested[0, 0]: kept 5, counted 1000", id="requests"),
    pytest.param(_set(lambda c: c.nodes.requested, (3, 5), 1), "requested[3, 5]", id="requests on an unused row"),
    pytest.param(_set(lambda c: c.nodes.nonzero, (1, 0), 5), "nonzero[1, 0]", id="requests as scoring counts them"),
    pytest.param(_set(lambda c: _class_of(c, "default/web1").placed, 0, 2), "placed", id="pods of a class"),  # type: ignore[attr-defined]
    pytest.param(_set(lambda c: _class_of(c, "default/web1").placed, 1, 0), "placed", id="a zero is no count"),  # type: ignore[attr-defined]
    pytest.param(_lose(lambda c: _class_of(c, "default/web3").leaving, 1), "leaving", id="pods that are leaving"),  # type: ignore[attr-defined]
    pytest.param(_change(lambda c: _class_of(c, "default/web1"), "total", 2), "total", id="how many pods a class has"),
    pytest.param(
        lambda c: c.classes._by_signature.pop(_class_of(c, "default/web1").signature),  # type: ignore[attr-defined]
        "classes of bound pods",
        id="a class is lost",
    ),
    pytest.param(lambda c: c.classes.groups()[0].classes.clear(), "groups", id="the classes of a group"),
    pytest.param(_lose(lambda c: c.classes.groups_by_label, ("app", "web")), "groups by label", id="groups by label"),
    pytest.param(_set(lambda c: c.ports.taken[("TCP", 80)][0], "0.0.0.0", 2), "host ports", id="a host port"),
    pytest.param(_lose(lambda c: c.volumes.by_node, 0), "volumes by node", id="pods with volumes"),
    pytest.param(_lose(lambda c: c.volumes.by_claim, ("default", "data")), "volumes by claim", id="users of a claim"),
    pytest.param(_set(lambda c: c.images.sizes["shop:v1"], 0, 4), "images", id="the size of an image"),
    pytest.param(_set(lambda c: c.images.sizes, "other", {1: 4}), "images", id="an image that is nowhere"),
    pytest.param(_lose(lambda c: c.objects.storage.volumes_of_class, ""), "volumes by class", id="volumes by class"),
    pytest.param(_lose(lambda c: c.objects.storage.attachments_on, "a"), "attachments by node", id="attachments"),
    pytest.param(_lose(lambda c: c.attached.rows, 0), "attached volumes", id="what is attached to a node"),
    pytest.param(_lose(lambda c: c.attached.problems, 0), "problems with volumes", id="why volumes cannot be counted"),
    pytest.param(_set(lambda c: c.attached.used(DRIVER), 0, 5), "limit and use", id="what a driver has attached"),
    pytest.param(_set(lambda c: c.attached.limit(DRIVER), 1, 5), "limit and use", id="what a driver can attach"),
    pytest.param(lambda c: c.attached._readers.clear(), "rows that read volume v", id="who reads a volume"),
    pytest.param(_set(lambda c: c.tallies.values()[0].counts, 0, 9), "tally of", id="a tally's counts"),
    pytest.param(lambda c: c.tallies.values()[0].groups.clear(), "groups known to", id="whom a tally counts"),
    pytest.param(
        lambda c: [one.tallies.clear() for one in c.classes.groups()], "groups that feed", id="what a group feeds"
    ),
    pytest.param(
        lambda c: c.tallies._kept.clear(), "groups that feed a tally that is not kept", id="a tally is dropped by half"
    ),
    pytest.param(lambda c: c.terms.values()[0].classes.popitem(), "carriers of", id="who carries a term"),
    pytest.param(_set(lambda c: c.terms.values()[0].counts, 0, 9), "domains of", id="where a term is carried"),
    pytest.param(lambda c: c.terms._by_term.clear(), "carried and not kept", id="a term is lost"),
    pytest.param(
        _change(lambda c: _class_of(c, "default/web2"), "carried", ()),
        "carried terms",
        id="which terms a class carries",
    ),
]


@pytest.mark.parametrize("tamper,told", PLANTED)
def test_an_error_is_found(tamper: Callable[[Cluster], object], told: str) -> None:
    cluster = a_bit_of_everything()
    tamper(cluster)
    found = audit(cluster)
    assert any(told in line for line in found), found
