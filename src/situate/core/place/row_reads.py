"""What a cached verdict depends on: how far it has followed the cluster, and what changed since."""

from __future__ import annotations

from typing import Final

from situate.core.state.cluster import Cluster
from situate.core.state.view import CLAIMS, DEVICES, LOAD, ROW_DEVICES, STORAGE, TERMS, WORKLOADS, View

BESIDE_ROWS: Final = DEVICES | CLAIMS
"""What plugins that judge single rows may read beside them. When it changes, everything is computed again."""

ANYTHING: Final = LOAD | STORAGE | WORKLOADS | TERMS | DEVICES | CLAIMS | ROW_DEVICES
"""A filter that failed on a node is asked again whatever changes: another may refuse that node now, or no more."""


def reads_its_row_only(view: View) -> bool:
    """Whether what was read of a row changes only when the row is touched; apart from BESIDE_ROWS, which is watched."""
    reads = view.reads & ~BESIDE_ROWS
    return reads != 0 and not reads & ~(LOAD | ROW_DEVICES) and not view.tallies_read


class Position:
    """How far a reader has followed the cluster."""

    __slots__ = ("_claims", "_devices", "_storage", "_terms", "_workloads", "touched")

    def __init__(self, cluster: Cluster) -> None:
        self.note(cluster)

    def note(self, cluster: Cluster) -> None:
        """The reader is up to date."""
        self.touched = cluster.touched_base + len(cluster.touched)
        objects = cluster.objects
        self._terms = cluster.terms.version
        self._storage = objects.storage.version
        self._workloads = objects.workloads.version
        self._devices = objects.devices.version
        self._claims = objects.devices.claims_version

    def moved(self, cluster: Cluster, load: bool) -> int:
        """What changed since, as the bits of `View.reads`. `load`: rows were touched."""
        objects = cluster.objects
        moved = LOAD | ROW_DEVICES if load else 0
        if self._terms != cluster.terms.version:
            moved |= TERMS
        if self._storage != objects.storage.version:
            moved |= STORAGE
        if self._workloads != objects.workloads.version:
            moved |= WORKLOADS
        if self._devices != objects.devices.version:
            moved |= DEVICES
        if self._claims != objects.devices.claims_version:
            moved |= CLAIMS
        return moved
