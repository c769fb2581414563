"""NodeVolumeLimits: refuse nodes to which a driver could not attach the pod's volumes on top of those it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import FITS, Codes, Reason, Wake
from situate.core.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from situate.core.model.volumes import Volume
from situate.core.plugins.claims import claim_class, claim_not_found, generated_name, ownership_problem
from situate.core.plugins.csi_migration import IN_TREE, MigrationError, handle, in_tree_plugin
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.objects import StorageObjects
from situate.core.state.view import View

TOO_MANY: Final = 1
UNCOUNTABLE: Final = 2

TOO_MANY_VOLUMES: Final = "node(s) exceed max volume count"
CLAIM_WITHOUT_NAME: Final = "PersistentVolumeClaim had no name"


@dataclass(frozen=True, slots=True)
class Attachable:
    """What a pod has attached: the volumes' unique names with their drivers; or why that cannot be said."""

    volumes: Mapping[str, str]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class NodeVolumeLimits:
    """Counts distinct volumes by driver: those of the pods on the node, and those that are attached all the same.

    A node where the volumes of some pod cannot be counted (a claim that is not there, or is another pod's) is refused,
    with the reason; Kubernetes gives up on the whole pod at some of these.
    """

    name: ClassVar[str] = "NodeVolumeLimits"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason(TOO_MANY_VOLUMES, eviction_helps=True),
        Reason("node(s) had volumes that could not be counted", eviction_helps=False),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {
            Wake.CSI_NODE_ADDED,
            Wake.CSI_NODE_UPDATED,
            Wake.POD_DELETED,
            Wake.CLAIM_ADDED,
            Wake.VOLUME_ATTACHMENT_DELETED,
        }
    )

    def check(self, pod: PodClass, view: View) -> Codes | None:
        found = _texts(pod, view)
        if not found:
            return None
        codes = np.zeros(view.size, np.uint8)
        for row, text in found.items():
            codes[row] = TOO_MANY if text == TOO_MANY_VOLUMES else UNCOUNTABLE
        return codes

    def checker_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        def check_at(row: int) -> int:
            codes = self.check(pod, view.at(row))
            return FITS if codes is None else int(codes[0])

        return check_at

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, Mask]]:
        """The reason of each refused node in its own words."""
        masks: dict[str, Mask] = {}
        for row, text in _texts(pod, view).items():
            masks.setdefault(text, np.zeros(view.size, np.bool_))[row] = True
        return list(masks.items())


def _texts(pod: PodClass, view: View) -> dict[int, str]:
    """Row -> why the node there is refused; no other rows."""
    if not any(map(_is_attached, pod.spec.volumes)):
        return {}
    storage = view.storage
    wanted = _attachable(pod, storage, on_csi_node=True, must_exist=True)
    if not wanted.volumes and not wanted.problem:
        return {}
    without_csi_node = _attachable(pod, storage, on_csi_node=False, must_exist=True).problem
    holders = view.volume_holders()
    attachments = _attachments(storage)
    seen: dict[int, Attachable] = {}

    def attached(kind: PodClass) -> Attachable:
        if kind.id not in seen:
            seen[kind.id] = _attachable(kind, storage, on_csi_node=True, must_exist=False)
        return seen[kind.id]

    found: dict[int, str] = {}
    for row, name in enumerate(view.names):
        node = storage.csi_nodes.get(name)
        if node is None or wanted.problem:
            text = without_csi_node if node is None else wanted.problem
        else:
            limits = _limits(node)
            here = [attached(kind) for kind in holders.get(row, ())] if limits else []
            text = _refusal(wanted.volumes, here, attachments.get(name, {}), limits)
        if text:
            found[row] = text
    return found


def _refusal(
    wanted: Mapping[str, str], here: Sequence[Attachable], attachments: Mapping[str, str], limits: Mapping[str, int]
) -> str:
    """Why a node with these limits, pods and attachments is refused; empty if it is not."""
    if not limits:
        return ""
    attached: dict[str, str] = {}
    for each in here:
        if each.problem:
            return each.problem
        attached.update(each.volumes)
    new = [driver for volume, driver in wanted.items() if volume not in attached]
    left_over = [driver for volume, driver in attachments.items() if volume not in attached]
    present = [*attached.values(), *left_over]
    for driver in dict.fromkeys(new):
        if driver in limits and present.count(driver) + new.count(driver) > limits[driver]:
            return TOO_MANY_VOLUMES
    return ""


def _limits(node: CSINode) -> dict[str, int]:
    """Driver -> how many volumes it can attach here; drivers without a limit are not there."""
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _attachments(storage: StorageObjects) -> dict[str, dict[str, str]]:
    """Node name -> unique name -> driver, of what the attach controller says is attached there."""
    found: dict[str, dict[str, str]] = {}
    for attachment in storage.attachments.values():
        spec = attachment.spec
        volume = storage.volumes.get(spec.source.persistent_volume_name or "")
        if spec.attacher and volume is not None and volume.spec.csi is not None:
            here = found.setdefault(spec.node_name, {})
            here[f"{spec.attacher}/{volume.spec.csi.volume_handle}"] = spec.attacher
    return found


def _is_attached(volume: Volume) -> bool:
    """Whether the volume may be one that a CSI driver attaches."""
    return (
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or in_tree_plugin(volume) is not None
    )


def _attachable(pod: PodClass, storage: StorageObjects, *, on_csi_node: bool, must_exist: bool) -> Attachable:
    """The volumes of a pod that drivers attach. In-tree ones count on nodes that have a CSINode.

    A pod that is to be placed must have all its claims; the claims of others may have gone.
    """
    found: dict[str, str] = {}
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = generated_name(pod, volume.name)
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
        if volume.ephemeral is not None and (problem := ownership_problem(pod, claim)):
            return Attachable({}, problem)
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
    """Driver and handle of a claim's volume, or of the one that is going to be made; empty if it is not counted."""
    volume = storage.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _to_be_made(claim, storage, on_csi_node=on_csi_node)
    if volume.spec.csi is not None:
        return volume.spec.csi.driver, volume.spec.csi.volume_handle
    return _migrated(volume, on_csi_node=on_csi_node)


def _migrated(volume: PersistentVolume, *, on_csi_node: bool) -> tuple[str, str]:
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
    # No driver's handle starts with a line break, so this one is the claim's alone.
    return driver, f"\n{claim.metadata.namespace}/{claim.metadata.name}"
