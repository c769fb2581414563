"""In-tree volumes as the CSI drivers that took them over know them."""

import pytest

from builders import term
from situate.core.model.csi_migration import (
    AWS_EBS,
    AZURE_DISK,
    CINDER,
    GCE_PD,
    PORTWORX,
    VSPHERE,
    InTreePlugin,
    MigrationError,
    handle,
    in_tree_plugin,
    is_migrated,
    migrated_affinity,
)
from situate.core.model.nodeselector import NodeSelectorTerm
from situate.core.model.storage import VolumeNodeAffinity
from situate.core.model.volumes import (
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    CSISource,
    GCEPersistentDisk,
    PortworxVolume,
    Volume,
    VsphereVolume,
)
from storage_builders import ZONE, csi_node, volume

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION, OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
GCE_ZONE = "topology.gke.io/zone"
GCE = GCEPersistentDisk(pd_name="d")


def ebs(name: str) -> Volume:
    return Volume(aws_elastic_block_store=AWSElasticBlockStore(volume_id=name))


@pytest.mark.parametrize(
    "source,plugin",
    [
        pytest.param(Volume(gce_persistent_disk=GCE), GCE_PD, id="GCE"),
        pytest.param(ebs("v"), AWS_EBS, id="EBS"),
        pytest.param(Volume(cinder=Cinder(volume_id="c")), CINDER, id="Cinder"),
        pytest.param(Volume(azure_disk=AzureDisk()), AZURE_DISK, id="Azure disk"),
        pytest.param(Volume(portworx_volume=PortworxVolume()), PORTWORX, id="Portworx"),
        pytest.param(Volume(vsphere_volume=VsphereVolume()), VSPHERE, id="vSphere"),
        pytest.param(Volume(csi=CSISource(driver="d")), None, id="one that is a driver's already"),
        pytest.param(Volume(), None, id="one that is none of these"),
    ],
)
def test_the_plugin_of_a_volume(source: Volume, plugin: InTreePlugin | None) -> None:
    assert in_tree_plugin(source) is plugin


@pytest.mark.parametrize(
    "source,labels,expected",
    [
        pytest.param(
            Volume(gce_persistent_disk=GCE), {}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", id="GCE, no zone"
        ),
        pytest.param(
            Volume(gce_persistent_disk=GCE),
            {ZONE: "us-a-1"},
            "projects/UNSPECIFIED/zones/us-a-1/disks/d",
            id="GCE, one",
        ),
        pytest.param(
            Volume(gce_persistent_disk=GCE),
            {ZONE: "us-a-1", OLD_ZONE: "us-a-2"},
            "projects/UNSPECIFIED/zones/us-a-2/disks/d",
            id="GCE, the old label goes first",
        ),
        pytest.param(
            Volume(gce_persistent_disk=GCE),
            {ZONE: "us-a-1__us-a-2"},
            "projects/UNSPECIFIED/regions/us-a/disks/d",
            id="GCE, two zones of a region",
        ),
        pytest.param(ebs("vol-1"), {}, "vol-1", id="EBS, bare"),
        pytest.param(ebs("anything"), {}, "anything", id="EBS, bare and strange"),
        pytest.param(ebs("aws://us-a/vol-1"), {}, "vol-1", id="EBS, with its zone"),
        pytest.param(ebs("aws:///vol-1"), {}, "vol-1", id="EBS, without its zone"),
        pytest.param(Volume(cinder=Cinder(volume_id="c")), {}, "c", id="Cinder"),
        pytest.param(Volume(azure_disk=AzureDisk(disk_uri="u", kind="managed")), {}, "u", id="Azure, managed"),
        pytest.param(Volume(portworx_volume=PortworxVolume(volume_id="p")), {}, "p", id="Portworx"),
    ],
)
def test_what_the_driver_calls_it(source: Volume, labels: dict[str, str], expected: str) -> None:
    assert handle(source, labels) == expected


@pytest.mark.parametrize(
    "source,labels,problem",
    [
        pytest.param(ebs("aws://us-a/disk"), {}, "Invalid format for AWS volume (aws://us-a/disk)", id="EBS, strange"),
        pytest.param(ebs("aws://us-a/vol-1/x"), {}, "Invalid format for AWS volume", id="EBS, a path too long"),
        pytest.param(Volume(azure_disk=AzureDisk()), {}, "kind(Shared) is not supported", id="Azure, not managed"),
        pytest.param(
            Volume(gce_persistent_disk=GCE),
            {ZONE: "us-a-1__us-b-1"},
            "got: map[us-a:{} us-b:{}]",
            id="GCE, two regions",
        ),
        pytest.param(Volume(gce_persistent_disk=GCE), {ZONE: "a__b"}, "unexpected format", id="GCE, strange zones"),
    ],
)
def test_a_volume_that_the_driver_does_not_know(source: Volume, labels: dict[str, str], problem: str) -> None:
    with pytest.raises(MigrationError) as raised:
        handle(source, labels)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    "labels,before,after",
    [
        pytest.param({}, None, None, id="nothing is said"),
        pytest.param({}, (term((ZONE, "In", ("a",))),), (term((GCE_ZONE, "In", ("a",))),), id="the zone is renamed"),
        pytest.param(
            {},
            (term((OLD_ZONE, "In", ("a",)), (OLD_REGION, "In", ("r",))),),
            (term((GCE_ZONE, "In", ("a",)), (REGION, "In", ("r",))),),
            id="an old zone is renamed, and an old region gets its new name",
        ),
        pytest.param(
            {ZONE: "b__a"}, None, (term((GCE_ZONE, "In", ("a", "b"))),), id="zones of the labels are demanded"
        ),
        pytest.param(
            {ZONE: "a"},
            (term(("disk", "Exists", ())),),
            (term(("disk", "Exists", ()), (GCE_ZONE, "In", ("a",))),),
            id="zones of the labels are demanded beside what is there",
        ),
        pytest.param(
            {ZONE: "b"},
            (term((ZONE, "In", ("a",))),),
            (term((GCE_ZONE, "In", ("a",))),),
            id="labels are not read where the affinity names zones",
        ),
        pytest.param({ZONE: "__"}, None, None, id="a label without zones demands nothing"),
    ],
)
def test_the_node_affinity_in_the_drivers_words(
    labels: dict[str, str], before: tuple[NodeSelectorTerm, ...] | None, after: tuple[NodeSelectorTerm, ...] | None
) -> None:
    moved = migrated_affinity(volume("pv", gce_persistent_disk=GCE, labels=labels, terms=before), GCE_PD)
    found = moved.required if isinstance(moved, VolumeNodeAffinity) else None
    assert (None if found is None else found.node_selector_terms) == after


def test_a_driver_without_zones_of_its_own_leaves_the_affinity_alone() -> None:
    disk = volume("pv", azure_disk=AzureDisk(), terms=(term((ZONE, "In", ("a",))),), labels={ZONE: "b"})
    assert migrated_affinity(disk, AZURE_DISK) is disk.spec.node_affinity


@pytest.mark.parametrize(
    "listed,expected",
    [
        pytest.param("", False, id="nothing is listed"),
        pytest.param("kubernetes.io/aws-ebs,kubernetes.io/gce-pd", True, id="it is listed"),
        pytest.param("kubernetes.io/aws-ebs", False, id="another is listed"),
    ],
)
def test_a_node_lists_what_it_handed_over(listed: str, expected: bool) -> None:
    assert is_migrated(GCE_PD, csi_node("n", migrated=listed)) is expected
    assert not is_migrated(GCE_PD, None)
