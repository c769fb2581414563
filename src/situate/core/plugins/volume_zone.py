"""VolumeZone: refuse nodes outside the zone or region in a bound volume's labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Codes, Reason, Refusal, Wake, WakeEvent
from situate.core.model.base import Model
from situate.core.model.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_not_found,
    class_not_found,
    volume_not_found,
)
from situate.core.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from situate.core.plugins.support.claims import named_claims, names_claim
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.objects import StorageObjects
from situate.core.state.view import View

GA_LABEL: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The labels that count, and their current names."""

ZONE_DELIMITER: Final = "__"
"""The separator of several zones in one label."""

CLAIM_WITHOUT_NAME: Final = "PersistentVolumeClaim had no name"
CLAIM_WITHOUT_CLASS: Final = "PersistentVolumeClaim had no pv name and storageClass name"
CLAIM_WITHOUT_VOLUME: Final = "PersistentVolume had no name"


@dataclass(frozen=True, slots=True)
class VolumeZone:
    """Accepts nodes without any zone or region label: a cluster in one zone need not have them."""

    name: ClassVar[str] = "VolumeZone"
    reasons: ClassVar[tuple[Reason, ...]] = (Reason("node(s) had no available volume zone", eviction_helps=False),)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {
            Wake.STORAGE_CLASS_ADDED,
            Wake.STORAGE_CLASS_UPDATED,
            Wake.NODE_ADDED,
            Wake.NODE_LABEL,
            Wake.CLAIM_ADDED,
            Wake.CLAIM_UPDATED,
            Wake.VOLUME_ADDED,
            Wake.VOLUME_UPDATED,
        }
    )

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        """A new or relabelled node helps, a claim of the pod, a class that waits for consumers, a relabelled volume."""
        before, after = event.item_before, event.item
        match event.kind:
            case Wake.CLAIM_ADDED | Wake.CLAIM_UPDATED:
                return names_claim(pod, after)
            case Wake.STORAGE_CLASS_ADDED | Wake.STORAGE_CLASS_UPDATED:
                return _binds_late(after) and not _binds_late(before)
            case Wake.VOLUME_UPDATED if isinstance(after, PersistentVolume) and isinstance(before, PersistentVolume):
                return _demands(after) != _demands(before)
            case _:
                return True

    def check(self, pod: PodClass, view: View) -> Codes | Refusal | None:
        if not pod.spec.volumes:
            return None
        demands: list[tuple[str, list[str]]] = []
        for name in named_claims(pod):
            volume = _bound_volume(name, pod.namespace, view.storage)
            if isinstance(volume, Refusal):
                return volume
            if volume is not None:
                demands += _demands(volume)
        if not demands:
            return None
        elsewhere = np.zeros(view.size, np.bool_)
        for key, values in demands:
            elsewhere |= ~_in_one_of(key, values, view)
        elsewhere &= _has_place(view)
        return elsewhere.view(np.uint8)


def _binds_late(item: Model | None) -> bool:
    return isinstance(item, StorageClass) and item.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _bound_volume(name: str, namespace: str, storage: StorageObjects) -> PersistentVolume | Refusal | None:
    """The volume of a claim; None if it waits for its first consumer."""
    if not name:
        return Refusal(CLAIM_WITHOUT_NAME)
    claim = storage.claims.get((namespace, name))
    if claim is None:
        return Refusal(claim_not_found(name))
    if not claim.spec.volume_name:
        return _unbound(claim, storage)
    volume = storage.volumes.get(claim.spec.volume_name)
    return Refusal(volume_not_found(claim.spec.volume_name)) if volume is None else volume


def _unbound(claim: PersistentVolumeClaim, storage: StorageObjects) -> Refusal | None:
    class_name = claim_class(claim)
    if not class_name:
        return Refusal(CLAIM_WITHOUT_CLASS)
    found = storage.classes.get(class_name)
    if found is None:
        return Refusal(class_not_found(class_name))
    return None if found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else Refusal(CLAIM_WITHOUT_VOLUME)


def _demands(volume: PersistentVolume) -> list[tuple[str, list[str]]]:
    """(label, values) that the volume's labels require of its node. A label with an empty zone is ignored."""
    found = []
    for key in GA_LABEL:
        label = volume.metadata.labels.get(key)
        if label is not None:
            values = [value.strip() for value in label.split(ZONE_DELIMITER)]
            if all(values):
                found.append((key, values))
    return found


def _in_one_of(key: str, values: list[str], view: View) -> Mask:
    """The rows whose label has one of the values; if a node lacks the old label, the new one counts."""
    ids, vocab = view.label(key)
    mask = _one_of(ids, [vocab.find(value) for value in values])
    today = GA_LABEL[key]
    if today != key:
        today_ids, today_vocab = view.label(today)
        mask |= (ids < 0) & _one_of(today_ids, [today_vocab.find(value) for value in values])
    return mask


def _one_of(ids: np.ndarray[tuple[int], np.dtype[np.intp]], wanted: list[int]) -> Mask:
    mask = np.zeros(len(ids), np.bool_)
    for value in wanted:
        if value >= 0:
            mask |= ids == value
    return mask


def _has_place(view: View) -> Mask:
    """The rows whose node has any of the labels."""
    mask = np.zeros(view.size, np.bool_)
    for key in GA_LABEL:
        mask |= view.label(key)[0] >= 0
    return mask
