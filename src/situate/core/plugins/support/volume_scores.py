"""How well the volumes of a node suit a pod's unbound claims: the score of VolumeBinding, over all rows.

Where a claim would get a free volume, the volumes that claims would get count; elsewhere, the capacity that drivers
report. Either way the utilization of each storage class is scored by a shape, and the score is the mean of the classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate.core.contract import Scores
from situate.core.model.claims import claim_class
from situate.core.model.quantity import value
from situate.core.model.storage import PersistentVolumeClaim
from situate.core.model.volume_claims import STORAGE
from situate.core.plugins.support.resource_scoring import MAX_UTILIZATION, ShapePoint, interpolated
from situate.core.plugins.support.volume_matching import NOTHING, UnboundClaims, VolumeMatch
from situate.core.plugins.support.volume_topology import reported_capacity
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.view import View


def volume_scores(unbound: UnboundClaims, shape: Sequence[ShapePoint], view: View) -> Scores:
    """The score of every row; 0 where neither a volume nor a capacity counts."""
    table = np.array([interpolated(shape, percent) for percent in range(MAX_UTILIZATION + 1)], np.int64)
    by_volumes = _Sums(view.size)
    for match in unbound.matches:
        _add_volume(by_volumes, match)
    by_capacity = _Sums(view.size)
    for claim, rows in unbound.provisions:
        _add_capacity(by_capacity, claim, rows, view)
    return np.where(by_volumes.counted(), by_volumes.scores(table), by_capacity.scores(table))


class _Sums:
    """What claims request and what there is, by storage class and row. Kubernetes adds in 64 bits, and so does this."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._classes: dict[str, tuple[Mask, IntColumn, IntColumn]] = {}

    def of(self, storage_class: str) -> tuple[Mask, IntColumn, IntColumn]:
        """For a class: the rows where it counts, what is requested and what there is. To be written to."""
        found = self._classes.get(storage_class)
        if found is None:
            empty = np.zeros(self._size, np.int64)
            found = self._classes[storage_class] = (np.zeros(self._size, np.bool_), empty, empty.copy())
        return found

    def counted(self) -> Mask:
        """The rows where any class counts."""
        found = np.zeros(self._size, np.bool_)
        for rows, _, _ in self._classes.values():
            found |= rows
        return found

    def scores(self, table: IntColumn) -> Scores:
        """The mean over the classes of a row, rounded half up."""
        total, count = np.zeros(self._size, np.int64), np.zeros(self._size, np.int64)
        for rows, requested, capacity in self._classes.values():
            total += np.where(rows, table[_utilization(requested, capacity)], 0)
            count += rows
        return (2 * total + count) // np.maximum(2 * count, 1)


def _utilization(requested: IntColumn, capacity: IntColumn) -> IntColumn:
    """In percent, rounded down; 100 where more is requested than there is."""
    percent = requested * MAX_UTILIZATION // np.where(capacity == 0, 1, capacity)
    return np.where((capacity == 0) | (requested > capacity), MAX_UTILIZATION, percent.clip(0, MAX_UTILIZATION))


def _add_volume(sums: _Sums, match: VolumeMatch) -> None:
    chosen = match.chosen != NOTHING
    if not chosen.any():
        return
    capacities = np.array([value(volume.spec.capacity.get(STORAGE, 0)) for volume in match.volumes], np.int64)
    rows, requested, capacity = sums.of(claim_class(match.claim))
    rows |= chosen
    requested += np.where(chosen, _requested(match.claim), 0)
    capacity += np.where(chosen, capacities[match.chosen], 0)


def _add_capacity(sums: _Sums, claim: PersistentVolumeClaim, wanted: Mask, view: View) -> None:
    """The claims of a class share the capacity that is reported for it, so that is not added up."""
    made = view.storage.classes.get(claim_class(claim))
    found = None if made is None else reported_capacity(claim, made, view)
    if found is None:
        return
    known, amounts = found
    here = wanted & known
    rows, requested, capacity = sums.of(claim_class(claim))
    rows |= here
    requested += np.where(here, _requested(claim), 0)
    capacity[here] = amounts[here]


def _requested(claim: PersistentVolumeClaim) -> int:
    return value(claim.spec.resources.requests.get(STORAGE, 0))
