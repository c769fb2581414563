"""Storage objects: volumes, claims, classes and the CSI objects."""

from msgspec import field

from situate.core.model.base import EMPTY, Int32, Model
from situate.core.model.labels import LabelSelector
from situate.core.model.meta import ObjectMeta
from situate.core.model.nodeselector import NodeSelector
from situate.core.model.pod import ResourceList, ResourceRequirements
from situate.core.model.quantity import RawQuantity
from situate.core.model.volumes import VolumeSource


class ObjectReference(Model, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Model, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(VolumeSource, frozen=True, kw_only=True):
    capacity: ResourceList = EMPTY
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeStatus(Model, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolume(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimSpec(Model, frozen=True, kw_only=True):
    """`storage_class_name` None means the default class; "" means no class."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Model, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolumeClaim(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(Model, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Model, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Model, frozen=True, kw_only=True):
    count: Int32 | None = None


class CSINodeDriver(Model, frozen=True, kw_only=True):
    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Model, frozen=True, kw_only=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Model, frozen=True, kw_only=True):
    attach_required: bool = True
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: RawQuantity | None = None
    maximum_volume_size: RawQuantity | None = None


class VolumeAttachmentSource(Model, frozen=True, kw_only=True):
    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Model, frozen=True, kw_only=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Model, frozen=True, kw_only=True):
    attached: bool = False


class VolumeAttachment(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
