"""Storage objects for tests. Each function takes the fields that a case is about and makes up the rest."""

from collections.abc import Mapping
from typing import Any

from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import Pod, ResourceRequirements
from situate.core.model.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
)
from situate.core.model.volumes import CSISource, Ephemeral, PersistentVolumeClaimSource, Volume
from situate.core.state.cluster import Cluster

DRIVER = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def claimed(*claims: str) -> tuple[Volume, ...]:
    """The volumes of a pod that names these claims."""
    return tuple(
        Volume(name=f"v{at}", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=claim))
        for at, claim in enumerate(claims)
    )


def ephemeral(name: str = "scratch") -> Volume:
    return Volume(name=name, ephemeral=Ephemeral())


def claim(
    name: str,
    *,
    namespace: str = "default",
    volume: str = "",
    size: str | None = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    selected_node: str = "",
    owner: str = "",
    phase: str = "",
    **fields: Any,
) -> PersistentVolumeClaim:
    """A claim, bound to a volume if one is named. Other fields are those of its metadata or else spec."""
    meta = {key: fields.pop(key) for key in ObjectMeta.__struct_fields__ if key in fields}
    annotations = dict(meta.pop("annotations", {}))
    if volume:
        annotations.setdefault("pv.kubernetes.io/bind-completed", "yes")
    if selected_node:
        annotations["volume.kubernetes.io/selected-node"] = selected_node
    owners = (OwnerReference(kind="Pod", name="owner", uid=owner, controller=True),) if owner else ()
    requests = {} if size is None else {"storage": size}
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name, namespace=namespace, annotations=annotations, owner_references=owners, **{"uid": name, **meta}
        ),
        spec=PersistentVolumeClaimSpec(
            volume_name=volume, access_modes=modes, resources=ResourceRequirements(requests=requests), **fields
        ),
        status=PersistentVolumeClaimStatus(phase=phase or ("Bound" if volume else "Pending")),
    )


def waiting(name: str, class_name: str = "late", **fields: Any) -> PersistentVolumeClaim:
    """A claim without a volume yet."""
    return claim(name, storage_class_name=class_name, **fields)


def reached_from(label: str, *values: str) -> NodeSelectorTerm:
    """The nodes that have one of these values of a label."""
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=label, operator="In", values=values),))


def volume(
    name: str,
    *,
    class_name: str = "",
    capacity: str = "10Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    phase: str = "Available",
    terms: tuple[NodeSelectorTerm, ...] | None = None,
    claim_ref: tuple[str, ...] = (),
    driver: str = DRIVER,
    **fields: Any,
) -> PersistentVolume:
    """A volume of a CSI driver, its name its handle, unless a source is given. `claim_ref`: namespace, name[, uid]."""
    meta = {key: fields.pop(key) for key in ObjectMeta.__struct_fields__ if key in fields}
    sources = ("csi", "gce_persistent_disk", "aws_elastic_block_store", "azure_disk", "cinder", "portworx_volume")
    if not any(source in fields for source in sources):
        fields["csi"] = CSISource(driver=driver, volume_handle=name)
    if terms is not None:
        fields["node_affinity"] = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
    if claim_ref:
        fields["claim_ref"] = ObjectReference(
            **dict(zip(("namespace", "name", "uid"), claim_ref, strict=False))  # the uid may be left out
        )
    spec = PersistentVolumeSpec(
        capacity={"storage": capacity}, access_modes=modes, storage_class_name=class_name, **fields
    )
    return PersistentVolume(
        metadata=ObjectMeta(name=name, **meta), spec=spec, status=PersistentVolumeStatus(phase=phase)
    )


def storage_class(
    name: str = "late",
    *,
    provisioner: str = DRIVER,
    late: bool = True,
    topologies: tuple[Mapping[str, tuple[str, ...]], ...] = (),
) -> StorageClass:
    """`topologies` are terms, each of label -> allowed values."""
    return StorageClass(
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode="WaitForFirstConsumer" if late else "Immediate",
        allowed_topologies=tuple(
            TopologySelectorTerm(
                match_label_expressions=tuple(
                    TopologySelectorLabelRequirement(key=key, values=values) for key, values in term.items()
                )
            )
            for term in topologies
        ),
    )


def csi_node(name: str, limits: Mapping[str, int | None] | None = None, *, migrated: str = "") -> CSINode:
    """`limits` are by driver, None for a driver that sets itself none; `migrated` lists plugins handed over."""
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    drivers = tuple(
        CSINodeDriver(name=driver, allocatable=None if count is None else VolumeNodeResources(count=count))
        for driver, count in (limits or {}).items()
    )
    return CSINode(metadata=ObjectMeta(name=name, annotations=annotations), spec=CSINodeSpec(drivers=drivers))


def csi_driver(name: str = DRIVER, *, storage_capacity: bool = True) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(storage_capacity=storage_capacity))


def capacity(
    name: str, class_name: str, topology: LabelSelector | None, free: str | None, largest: str | None = None
) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="default"),
        storage_class_name=class_name,
        node_topology=topology,
        capacity=free,
        maximum_volume_size=largest,
    )


def attachment(name: str, node_name: str, volume_name: str | None, attacher: str = DRIVER) -> VolumeAttachment:
    source = VolumeAttachmentSource(persistent_volume_name=volume_name)
    return VolumeAttachment(
        metadata=ObjectMeta(name=name),
        spec=VolumeAttachmentSpec(attacher=attacher, node_name=node_name, source=source),
    )


def cluster_of(*items: Node | Pod | NamedObject) -> Cluster:
    """A cluster with these nodes, bound pods and objects."""
    cluster = Cluster()
    for item in items:
        if isinstance(item, Node):
            cluster.add_node(item)
        elif isinstance(item, Pod):
            cluster.add_pod(item)
        else:
            cluster.put_object(item)
    return cluster
