"""Volume sources of pods and persistent volumes, with only the fields that identify the disk."""

from msgspec import field

from situate.core.model.base import EMPTY, Labels, Model


class PersistentVolumeClaimSource(Model, frozen=True, kw_only=True):
    claim_name: str = ""
    read_only: bool = False


class Ephemeral(Model, frozen=True, kw_only=True):
    """An ephemeral volume's claim template; scheduling only needs its presence (the claim is named POD-VOLUME)."""


class GCEPersistentDisk(Model, frozen=True, kw_only=True):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(Model, frozen=True, kw_only=True):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class AzureDisk(Model, frozen=True, kw_only=True):
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str = "Shared"


class AzureFile(Model, frozen=True, kw_only=True):
    secret_name: str = ""
    share_name: str = ""
    secret_namespace: str | None = None


class Cinder(Model, frozen=True, kw_only=True):
    volume_id: str = field(default="", name="volumeID")


class VsphereVolume(Model, frozen=True, kw_only=True):
    volume_path: str = ""


class PortworxVolume(Model, frozen=True, kw_only=True):
    volume_id: str = field(default="", name="volumeID")


class ISCSI(Model, frozen=True, kw_only=True):
    iqn: str = ""
    read_only: bool = False


class RBD(Model, frozen=True, kw_only=True):
    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class CSISource(Model, frozen=True, kw_only=True):
    """Only a persistent volume has a `volume_handle`."""

    driver: str = ""
    volume_handle: str = ""
    volume_attributes: Labels = EMPTY


class ImageSource(Model, frozen=True, kw_only=True):
    reference: str = ""


class VolumeSource(Model, frozen=True, kw_only=True):
    """The kinds of volumes that both a pod and a PersistentVolume can have."""

    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    csi: CSISource | None = None


class Volume(VolumeSource, frozen=True, kw_only=True):
    """A pod's volume. Kinds that scheduling never reads (configMap, secret, emptyDir, ...) leave all sources None."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: Ephemeral | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    image: ImageSource | None = None
