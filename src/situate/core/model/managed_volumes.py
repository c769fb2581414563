"""Volumes, claims and storage classes, as controllers read and write them. Scheduling reads `storage`."""

from situate.core.model.base import EMPTY, Model
from situate.core.model.storage import PersistentVolumeClaimSpec, PersistentVolumeSpec
from situate.core.model.stored import Raw, StoredMeta


class ManagedVolumeSpec(PersistentVolumeSpec, frozen=True, kw_only=True):
    persistent_volume_reclaim_policy: str = "Retain"


class ManagedVolumeStatus(Model, frozen=True, kw_only=True):
    phase: str = "Pending"


class ManagedVolume(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: ManagedVolumeSpec = ManagedVolumeSpec()
    status: ManagedVolumeStatus = ManagedVolumeStatus()


class ManagedClaimStatus(Model, frozen=True, kw_only=True):
    phase: str = "Pending"
    access_modes: tuple[str, ...] = ()
    capacity: Raw = EMPTY
    current_volume_attributes_class_name: str | None = None


class ManagedClaim(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: ManagedClaimStatus = ManagedClaimStatus()


class ManagedStorageClass(Model, frozen=True, kw_only=True):
    metadata: StoredMeta = StoredMeta()
    provisioner: str = ""
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"
    mount_options: tuple[str, ...] = ()
