"""The volumes that drivers have attached to nodes: by row, and as columns by driver.

They follow from the pods on a node, their claims and volumes, and the VolumeAttachments. Rows that a change concerns
are computed again when they are next read. Only the Cluster writes this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from situate.core.model.claims import claim_class, claim_not_found, generated_name, ownership_problem
from situate.core.model.csi_migration import IN_TREE, MigrationError, handle, in_tree_plugin
from situate.core.model.named import NamedObject
from situate.core.model.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from situate.core.model.volumes import Volume
from situate.core.state.classes import PodClass
from situate.core.state.columns import IntColumn, grown
from situate.core.state.nodes import NodeTable
from situate.core.state.objects import StorageObjects
from situate.core.state.pods import PodTable
from situate.core.state.volumes import VolumeTable

NO_LIMIT: Final = -1
CLAIM_WITHOUT_NAME: Final = "PersistentVolumeClaim had no name"


@dataclass(frozen=True, slots=True)
class Attachable:
    """The volumes that a pod has attached: unique names with their drivers; or why they cannot be determined."""

    volumes: Mapping[str, str]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NodeVolumes:
    """What is attached to one node, and how much can be. Nodes without limits are not looked into."""

    limits: Mapping[str, int]
    """Driver -> how many volumes it can attach here; drivers without a limit are left out."""
    attached: Mapping[str, str]
    """The unique names of the volumes of the pods here, with their drivers."""
    used: Mapping[str, int]
    """Driver -> number of volumes, of pods and left over."""
    problem: str = ""
    """Why the volumes of some pod here cannot be counted."""
    reads: tuple[str, ...] = ()
    """The persistent volumes that this depends on, existing or not."""


NOTHING_ATTACHED: Final = NodeVolumes({}, {}, {})


class AttachedTable:
    """What is attached where. `touch` marks rows that may have changed; `refresh` computes them."""

    __slots__ = ("_limit", "_nodes", "_pods", "_readers", "_stale", "_storage", "_used", "_volumes", "problems", "rows")

    def __init__(self, nodes: NodeTable, pods: PodTable, volumes: VolumeTable, storage: StorageObjects) -> None:
        self._nodes, self._pods, self._volumes, self._storage = nodes, pods, volumes, storage
        self.rows: dict[int, NodeVolumes] = {}
        self.problems: dict[int, str] = {}
        """Row -> why the volumes of some pod there cannot be counted; no other rows."""
        self._stale: dict[int, None] = {}
        self._used: dict[str, IntColumn] = {}
        self._limit: dict[str, IntColumn] = {}
        self._readers: dict[str, tuple[int, ...]] = {}
        """Volume name -> the rows that read it."""

    def touch(self, *rows: int) -> None:
        self._stale.update(dict.fromkeys(rows))

    def reached(self, item: NamedObject) -> tuple[int, ...]:
        """The rows that an object may concern, as things stand."""
        match item:
            case PersistentVolumeClaim():
                users = self._volumes.by_claim.get((item.metadata.namespace, item.metadata.name), {})
                return tuple(self._pods.node_rows[pod] for pod in users)
            case PersistentVolume():
                return self._readers.get(item.metadata.name, ())
            case StorageClass():
                return tuple(self.rows)
            case CSINode():
                return self._row_of(item.metadata.name)
            case VolumeAttachment():
                kept = self._storage.attachments.get(item.metadata.name)
                return () if kept is None else self._row_of(kept.spec.node_name)
            case _:
                return ()

    def _row_of(self, node_name: str) -> tuple[int, ...]:
        row = self._nodes.rows.get(node_name)
        return () if row is None else (row,)

    def used(self, driver: str) -> IntColumn:
        """How many volumes the driver has attached, by row; not counted where there is no limit."""
        return self._column(self._used, driver, 0)

    def limit(self, driver: str) -> IntColumn:
        """How many volumes the driver can attach, by row; NO_LIMIT where it sets none."""
        return self._column(self._limit, driver, NO_LIMIT)

    def _column(self, columns: dict[str, IntColumn], driver: str, fill: int) -> IntColumn:
        column = columns.get(driver)
        if column is None:
            column = columns[driver] = np.full(self._nodes.capacity, fill, np.int64)
        elif len(column) < self._nodes.capacity:
            column = columns[driver] = grown(column, self._nodes.capacity, fill)
        return column

    def refresh(self) -> None:
        if not self._stale:
            return
        stale = list(self._stale)
        self._stale.clear()
        for row in stale:
            self._write(row)

    def _write(self, row: int) -> None:
        name = self._nodes.names[row]
        before = self.rows.pop(row, NOTHING_ATTACHED)
        self.problems.pop(row, None)
        for driver in before.limits:
            self.limit(driver)[row] = NO_LIMIT
            self.used(driver)[row] = 0
        for volume in before.reads:
            self._unread(volume, row)
        if not name:
            return
        after = node_volumes(name, self._volumes.by_node.get(row, {}).values(), self._storage)
        self.rows[row] = after
        if after.problem:
            self.problems[row] = after.problem
        for driver, limit in after.limits.items():
            self.limit(driver)[row] = limit
            self.used(driver)[row] = after.used.get(driver, 0)
        for volume in after.reads:
            self._readers[volume] = (*self._readers.get(volume, ()), row)

    def _unread(self, volume: str, row: int) -> None:
        left = tuple(each for each in self._readers[volume] if each != row)
        if left:
            self._readers[volume] = left
        else:
            del self._readers[volume]


def node_volumes(node_name: str, kinds: Iterable[PodClass], storage: StorageObjects) -> NodeVolumes:
    limits = _limits(storage.csi_nodes.get(node_name))
    if not limits:
        return NOTHING_ATTACHED
    attached: dict[str, str] = {}
    problem = ""
    reads: dict[str, None] = {}
    for kind in kinds:
        each = attachable(kind, storage, reads=reads)
        problem = problem or each.problem
        attached.update(each.volumes)
    used: dict[str, int] = {}
    for driver in attached.values():
        used[driver] = used.get(driver, 0) + 1
    for volume, driver in _left_over(node_name, storage, reads).items():
        if volume not in attached:
            used[driver] = used.get(driver, 0) + 1
    return NodeVolumes(limits, attached, used, problem, tuple(reads))


def _limits(node: CSINode | None) -> dict[str, int]:
    if node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _left_over(node_name: str, storage: StorageObjects, reads: dict[str, None]) -> dict[str, str]:
    """Unique name -> driver of the volumes that VolumeAttachments say are attached to a node."""
    found: dict[str, str] = {}
    for attachment in storage.attachments_on.get(node_name, {}).values():
        name, attacher = attachment.spec.source.persistent_volume_name, attachment.spec.attacher
        if not attacher or name is None:
            continue
        reads[name] = None
        volume = storage.volumes.get(name)
        if volume is not None and volume.spec.csi is not None:
            found[f"{attacher}/{volume.spec.csi.volume_handle}"] = attacher
    return found


def attachable(
    pod: PodClass,
    storage: StorageObjects,
    *,
    on_csi_node: bool = True,
    must_exist: bool = False,
    reads: dict[str, None] | None = None,
) -> Attachable:
    """The volumes of a pod that drivers attach. In-tree ones count on nodes that have a CSINode.

    A pod that is to be placed must have all its claims; those of a running pod may be gone. `reads` collects the names
    of the persistent volumes that were looked up.
    """
    found: dict[str, str] = {}
    looked_up: dict[str, None] = {} if reads is None else reads
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            name, generated = volume.persistent_volume_claim.claim_name, False
        elif volume.ephemeral is not None:
            name, generated = generated_name(pod.pod.metadata, volume.name), True
        else:
            try:
                driver, unique = _inline(volume, on_csi_node=on_csi_node)
            except MigrationError as error:
                return Attachable({}, f"converting volume({volume.name}) from inline to csi: {error}")
            if driver:
                found[f"{driver}/{unique}"] = driver
            continue
        if not name:
            return Attachable({}, CLAIM_WITHOUT_NAME)
        claim = storage.claims.get((pod.namespace, name))
        if claim is None:
            if must_exist:
                return Attachable({}, f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}")
            continue
        if generated and (problem := ownership_problem(pod.pod.metadata, claim)):
            return Attachable({}, problem)
        if claim.spec.volume_name:
            looked_up[claim.spec.volume_name] = None
        driver, unique = _claimed(claim, storage, on_csi_node=on_csi_node)
        if driver and unique:
            found[f"{driver}/{unique}"] = driver
    return Attachable(found)


def _inline(volume: Volume, *, on_csi_node: bool) -> tuple[str, str]:
    """Driver and handle of an in-tree volume that a pod holds inline; empty if it is not counted."""
    plugin = in_tree_plugin(volume)
    if plugin is None or not plugin.driver or not on_csi_node:
        return "", ""
    return plugin.driver, handle(volume, {})


def _claimed(claim: PersistentVolumeClaim, storage: StorageObjects, *, on_csi_node: bool) -> tuple[str, str]:
    """Driver and handle of a claim's volume, or of the one to be provisioned; empty if it is not counted."""
    volume = storage.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _to_be_made(claim, storage, on_csi_node=on_csi_node)
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or not plugin.driver or not on_csi_node:
        return "", ""
    try:
        return plugin.driver, handle(volume.spec, volume.metadata.labels)
    except MigrationError:
        return "", ""


def _to_be_made(claim: PersistentVolumeClaim, storage: StorageObjects, *, on_csi_node: bool) -> tuple[str, str]:
    found = storage.classes.get(claim_class(claim))
    if found is None:
        return "", ""
    plugin = IN_TREE.get(found.provisioner)
    if plugin is not None and not (plugin.driver and on_csi_node):
        return "", ""
    driver = found.provisioner if plugin is None else plugin.driver
    # No driver's handle starts with a line break, so this is unique to the claim.
    return driver, f"\n{claim.metadata.namespace}/{claim.metadata.name}"
