"""CSI migration of in-tree volumes: driver, handle and topology, as far as scheduling needs them.

Kubernetes moved its built-in volume kinds out into drivers, and still accepts objects of the old form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from situate.core.model.base import Labels
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.storage import CSINode, PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity
from situate.core.model.volumes import AWSElasticBlockStore, AzureDisk, GCEPersistentDisk, Volume

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
"""The CSINode annotation that lists the node's migrated plugins."""

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONE_DELIMITER: Final = "__"

UNSPECIFIED: Final = "UNSPECIFIED"
_EBS_VOLUME: Final = re.compile(r"vol-[^/]*")


class MigrationError(ValueError):
    """The volume cannot be translated; the message is Kubernetes'."""


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """An in-tree volume plugin and its CSI driver. Without a driver, it is not migrated."""

    name: str
    driver: str = ""
    topology_key: str = ""
    """The driver's topology label for zones; empty if it leaves node affinities unchanged."""


GCE_PD: Final = InTreePlugin("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
AWS_EBS: Final = InTreePlugin("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
CINDER: Final = InTreePlugin(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
)
AZURE_DISK: Final = InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com")
PORTWORX: Final = InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com")
AZURE_FILE: Final = InTreePlugin("kubernetes.io/azure-file")
VSPHERE: Final = InTreePlugin("kubernetes.io/vsphere-volume")

IN_TREE: Final = {
    plugin.name: plugin for plugin in (GCE_PD, AWS_EBS, CINDER, AZURE_DISK, PORTWORX, AZURE_FILE, VSPHERE)
}


def in_tree_plugin(source: Volume | PersistentVolumeSpec) -> InTreePlugin | None:
    """The in-tree plugin of an inline or persistent volume; None if it has none."""
    for plugin, held in (
        (GCE_PD, source.gce_persistent_disk),
        (AWS_EBS, source.aws_elastic_block_store),
        (CINDER, source.cinder),
        (AZURE_DISK, source.azure_disk),
        (PORTWORX, source.portworx_volume),
        (AZURE_FILE, source.azure_file),
        (VSPHERE, source.vsphere_volume),
    ):
        if held is not None:
            return plugin
    return None


def is_migrated(plugin: InTreePlugin, node: CSINode | None) -> bool:
    """Whether the plugin is migrated on the node."""
    return node is not None and plugin.name in node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def handle(source: Volume | PersistentVolumeSpec, labels: Labels) -> str:
    """The driver's volume handle; `labels` are the persistent volume's, none for an inline one."""
    if source.gce_persistent_disk is not None:
        return _gce_handle(source.gce_persistent_disk, labels)
    if source.aws_elastic_block_store is not None:
        return _ebs_handle(source.aws_elastic_block_store)
    if source.azure_disk is not None:
        return _azure_handle(source.azure_disk)
    if source.cinder is not None:
        return source.cinder.volume_id
    return source.portworx_volume.volume_id if source.portworx_volume is not None else ""


def _gce_handle(disk: GCEPersistentDisk, labels: Labels) -> str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(ZONE_DELIMITER)
    if len(zones) > 1:
        return f"projects/{UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{disk.pd_name}"
    return f"projects/{UNSPECIFIED}/zones/{zones[0] or UNSPECIFIED}/disks/{disk.pd_name}"


def _gce_region(zones: list[str]) -> str:
    regions: dict[str, None] = {}
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise MigrationError(
                "failed to get region from zones: zone in unexpected format, "
                f"expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions["-".join(parts[:2])] = None
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise MigrationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{listed}]"
        )
    return next(iter(regions))


def _ebs_handle(disk: AWSElasticBlockStore) -> str:
    """`vol-1`, also from `aws://ZONE/vol-1`; a bare name stays as it is."""
    prefix = "aws://"
    if not disk.volume_id.startswith(prefix):
        return disk.volume_id
    _, _, path = disk.volume_id.removeprefix(prefix).partition("/")
    found = re.split(r"[?#]", path, maxsplit=1)[0].strip("/")
    if not _EBS_VOLUME.fullmatch(found):
        raise MigrationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({disk.volume_id})"
        )
    return found


def _azure_handle(disk: AzureDisk) -> str:
    if disk.kind.lower() != "managed":
        raise MigrationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def migrated_affinity(volume: PersistentVolume, plugin: InTreePlugin) -> VolumeNodeAffinity | None:
    """The node affinity with the driver's labels, including zones that only the volume's labels name."""
    affinity, labels = volume.spec.node_affinity, volume.metadata.labels
    if not plugin.topology_key:
        return affinity
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    zone, region = _place_labels(terms, labels)
    if _values(terms, zone):
        moved = _renamed(terms, zone, plugin.topology_key)
    else:
        moved = _with_zones(terms, plugin.topology_key, labels.get(zone, ""))
    if region == BETA_REGION and _values(moved, region):
        moved = _renamed(moved, region, REGION)
    if moved == terms:
        return affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=moved))


def _place_labels(terms: tuple[NodeSelectorTerm, ...], labels: Labels) -> tuple[str, str]:
    """The zone and region labels that this volume uses: the current ones, unless it has only the old ones."""
    keys = [one.key for term in terms for one in term.match_expressions]
    for named in (keys, labels):
        if ZONE in named:
            return ZONE, REGION
        if BETA_ZONE in named:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(terms: tuple[NodeSelectorTerm, ...], key: str) -> bool:
    """Whether any requirement on the label names a value."""
    return any(one.key == key and one.values for term in terms for one in term.match_expressions)


def _renamed(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        msgspec.structs.replace(
            term,
            match_expressions=tuple(
                msgspec.structs.replace(one, key=new) if one.key == old else one for one in term.match_expressions
            ),
        )
        for term in terms
    )


def _with_zones(terms: tuple[NodeSelectorTerm, ...], key: str, label: str) -> tuple[NodeSelectorTerm, ...]:
    zones = sorted({zone.strip() for zone in label.split(ZONE_DELIMITER)} - {""})
    if not zones:
        return terms
    demand = NodeSelectorRequirement(key=key, operator="In", values=tuple(zones))
    return tuple(
        msgspec.structs.replace(term, match_expressions=(*term.match_expressions, demand))
        for term in terms or (NodeSelectorTerm(),)
    )
