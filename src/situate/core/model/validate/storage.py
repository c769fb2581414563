"""Volumes, claims, classes, capacities."""

from situate.core.model.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from situate.core.model.validate.problem import Problems, unsupported
from situate.core.model.validate.resources import list_problems, quantity_problems
from situate.core.model.validate.selectors import label_selector_problems, node_selector_problems

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")


def volume_problems(volume: PersistentVolume) -> Problems:
    spec = volume.spec
    yield from list_problems("spec.capacity", spec.capacity)
    yield from _mode_problems(spec.access_modes, spec.volume_mode)
    if spec.node_affinity is not None:
        yield from node_selector_problems("spec.nodeAffinity.required", spec.node_affinity.required)


def claim_problems(claim: PersistentVolumeClaim) -> Problems:
    spec = claim.spec
    yield from _mode_problems(spec.access_modes, spec.volume_mode)
    yield from label_selector_problems("spec.selector", spec.selector)
    yield from list_problems("spec.resources.requests", spec.resources.requests)


def _mode_problems(access_modes: tuple[str, ...], volume_mode: str) -> Problems:
    for mode in access_modes:
        if mode not in ACCESS_MODES:
            yield unsupported("spec.accessModes", mode, ACCESS_MODES)
    if volume_mode not in VOLUME_MODES:
        yield unsupported("spec.volumeMode", volume_mode, VOLUME_MODES)


def class_problems(storage_class: StorageClass) -> Problems:
    if storage_class.volume_binding_mode not in BINDING_MODES:
        yield unsupported("volumeBindingMode", storage_class.volume_binding_mode, BINDING_MODES)


def capacity_problems(capacity: CSIStorageCapacity) -> Problems:
    yield from label_selector_problems("nodeTopology", capacity.node_topology)
    if capacity.capacity is not None:
        yield from quantity_problems("capacity", capacity.capacity)
    if capacity.maximum_volume_size is not None:
        yield from quantity_problems("maximumVolumeSize", capacity.maximum_volume_size)
