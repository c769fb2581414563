"""Volumes attached to nodes: whatever they follow from may change, and what is kept follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from builders import node, pod
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.pod import Pod
from situate.core.model.storage import (
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeResources,
)
from situate.core.model.volumes import CSISource, Ephemeral, GCEPersistentDisk, PersistentVolumeClaimSource, Volume
from situate.core.state.attached import NO_LIMIT
from situate.core.state.audit import audit
from situate.core.state.cluster import Cluster
from situate.core.state.holders import volume_problems, volume_room
from situate.core.state.view import View

DRIVER, GCE = "csi.example.com", "pd.csi.storage.gke.io"


def csi_node(name: str, *limits: tuple[str, int | None]) -> CSINode:
    drivers = tuple(
        CSINodeDriver(name=driver, allocatable=VolumeNodeResources(count=count)) for driver, count in limits
    )
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))


def claim(name: str, volume: str = "", storage_class: str | None = None, owner: str = "") -> PersistentVolumeClaim:
    owners = (OwnerReference(uid=owner, controller=True),) if owner else ()
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace="default", owner_references=owners),
        spec=PersistentVolumeClaimSpec(volume_name=volume, storage_class_name=storage_class),
    )


def volume(name: str, handle: str = "", driver: str = DRIVER) -> PersistentVolume:
    source = CSISource(driver=driver, volume_handle=handle or name)
    return PersistentVolume(metadata=ObjectMeta(name=name), spec=PersistentVolumeSpec(csi=source))


def attachment(name: str, to: str, volume_name: str) -> VolumeAttachment:
    source = VolumeAttachmentSource(persistent_volume_name=volume_name)
    return VolumeAttachment(
        metadata=ObjectMeta(name=name), spec=VolumeAttachmentSpec(attacher=DRIVER, node_name=to, source=source)
    )


def using(name: str, to: str, *claims: str) -> Pod:
    volumes = tuple(
        Volume(name=f"v{at}", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=one))
        for at, one in enumerate(claims)
    )
    return pod(name, node_name=to, volumes=volumes)


def cluster_with(*items: Any) -> Cluster:
    cluster = Cluster()
    cluster.add_node(node("a"))
    cluster.add_node(node("b"))
    cluster.put_object(csi_node("a", (DRIVER, 2)))
    for item in items:
        if isinstance(item, Pod):
            cluster.add_pod(item)
        else:
            cluster.put_object(item)
    return cluster


def room(cluster: Cluster, driver: str = DRIVER) -> list[tuple[int, int]]:
    """(used, limit) by row."""
    used, limit = volume_room(View(cluster), driver)
    assert audit(cluster) == []
    return list(zip(used.tolist(), limit.tolist(), strict=True))


UNLIMITED = (0, NO_LIMIT)
ONE_CLAIM = (volume("v"), claim("data", "v"), using("p", "a", "data"))

CASES: list[Any] = [
    pytest.param((), 0, id="nobody has volumes"),
    pytest.param(ONE_CLAIM, 1, id="a claim that is bound"),
    pytest.param((*ONE_CLAIM, using("q", "a", "data")), 1, id="one volume of two pods counts once"),
    pytest.param((*ONE_CLAIM, claim("logs", "v"), using("q", "a", "logs")), 1, id="one volume of two claims too"),
    pytest.param((*ONE_CLAIM, volume("w"), claim("logs", "w"), using("q", "a", "logs", "data")), 2, id="two volumes"),
    pytest.param((claim("data", "v"), using("p", "a", "data")), 0, id="a volume that is not there"),
    pytest.param((volume("v"), using("p", "a", "data")), 0, id="a claim that is not there"),
    pytest.param((volume("v", driver="x"), claim("data", "v"), using("p", "a", "data")), 0, id="another driver"),
    pytest.param(
        (
            StorageClass(metadata=ObjectMeta(name="fast"), provisioner=DRIVER),
            claim("data", storage_class="fast"),
            using("p", "a", "data"),
        ),
        1,
        id="a volume that is going to be made",
    ),
    pytest.param((volume("v"), attachment("x", "a", "v")), 1, id="a volume that is still attached"),
    pytest.param((*ONE_CLAIM, attachment("x", "a", "v")), 1, id="and of a pod counts once"),
    pytest.param((attachment("x", "a", "v"),), 0, id="attached, and nobody knows what it is"),
    pytest.param((volume("v"), attachment("x", "b", "v")), 0, id="attached to another node"),
]


@pytest.mark.parametrize("items,used", CASES)
def test_volumes_are_counted(items: tuple[Any, ...], used: int) -> None:
    assert room(cluster_with(*items)) == [(used, 2), UNLIMITED]
    backwards = cluster_with(*reversed(items))
    assert room(backwards) == [(used, 2), UNLIMITED], "in whatever order they come"


CHANGES: list[Any] = [
    pytest.param(lambda c: c.remove_pod("default/p"), (0, 2), id="its pod leaves"),
    pytest.param(lambda c: c.add_pod(using("p", "b", "data")), (0, 2), id="its pod moves"),
    pytest.param(lambda c: c.put_object(claim("data", "other")), (0, 2), id="its claim gets another volume"),
    pytest.param(lambda c: c.forget_object(claim("data")), (0, 2), id="its claim is deleted"),
    pytest.param(lambda c: c.forget_object(volume("v")), (0, 2), id="it is deleted"),
    pytest.param(lambda c: c.put_object(volume("v", driver="x")), (0, 2), id="it changes driver"),
    pytest.param(lambda c: c.put_object(csi_node("a", (DRIVER, 5))), (1, 5), id="the limit changes"),
    pytest.param(lambda c: c.put_object(csi_node("a", (DRIVER, None))), UNLIMITED, id="the limit is lifted"),
    pytest.param(lambda c: c.put_object(csi_node("a", ("x", 5))), UNLIMITED, id="the driver leaves"),
    pytest.param(lambda c: c.forget_object(csi_node("a")), UNLIMITED, id="the drivers leave"),
    pytest.param(lambda c: c.add_node(node("a", cpu="1")), (1, 2), id="the node changes in something else"),
    pytest.param(lambda c: c.put_object(attachment("x", "a", "w")), (1, 2), id="something unknown is attached"),
]


@pytest.mark.parametrize("change,expected", CHANGES)
def test_a_volume_that_is_counted(change: Callable[[Cluster], object], expected: tuple[int, int]) -> None:
    cluster = cluster_with(*ONE_CLAIM)
    assert room(cluster) == [(1, 2), UNLIMITED]
    assert change(cluster)
    assert room(cluster) == [expected, UNLIMITED]


def test_an_attachment_moves_to_another_node_and_goes() -> None:
    cluster = cluster_with(volume("v"), attachment("x", "a", "v"), csi_node("b", (DRIVER, 3)))
    assert room(cluster) == [(1, 2), (0, 3)]
    cluster.put_object(attachment("x", "b", "v"))
    assert room(cluster) == [(0, 2), (1, 3)]
    cluster.forget_object(attachment("x", "", ""))
    assert room(cluster) == [(0, 2), (0, 3)]


def test_a_row_that_another_node_takes_starts_afresh() -> None:
    cluster = cluster_with(*ONE_CLAIM)
    assert room(cluster) == [(1, 2), UNLIMITED]
    cluster.remove_node("a")
    assert room(cluster) == [UNLIMITED, UNLIMITED]
    cluster.add_node(node("c"))
    assert room(cluster) == [UNLIMITED, UNLIMITED]
    for at in range(20):
        cluster.add_node(node(f"n{at}"))
    cluster.add_node(node("a"))
    assert room(cluster)[-1] == (1, 2)
    assert set(room(cluster)[:-1]) == {UNLIMITED}


def test_the_claim_of_an_ephemeral_volume_must_be_the_pods_own() -> None:
    scratch = pod("p", node_name="a", uid="u", volumes=(Volume(name="scratch", ephemeral=Ephemeral()),))
    cluster = cluster_with(volume("v"), claim("p-scratch", "v", owner="u"), scratch)
    assert (room(cluster), volume_problems(View(cluster))) == ([(1, 2), UNLIMITED], {})
    cluster.put_object(claim("p-scratch", "v", owner="somebody else"))
    text = "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    assert (room(cluster), volume_problems(View(cluster))) == ([(0, 2), UNLIMITED], {0: text})
    assert volume_problems(View(cluster).at(0)) == {0: text}
    assert volume_problems(View(cluster).at(1)) == {}
    view = View(cluster)
    assert volume_problems(view.without(view.pods_on(0))) == {}
    cluster.remove_pod("default/p")
    assert volume_problems(View(cluster)) == {}


def test_a_disk_that_a_pod_names_counts_with_the_driver_that_took_over() -> None:
    disk = Volume(name="d", gce_persistent_disk=GCEPersistentDisk(pd_name="disk"))
    cluster = cluster_with(csi_node("a", (GCE, 4)), pod("p", node_name="a", volumes=(disk,)))
    assert room(cluster, GCE) == [(1, 4), UNLIMITED]
