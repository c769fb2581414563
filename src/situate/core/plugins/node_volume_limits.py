"""NodeVolumeLimits: refuse nodes where the pod's volumes would exceed a driver's attach limit, or lack a driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Codes, Reason, Unjudged, Wake, WakeEvent
from situate.core.model.claims import is_not_found
from situate.core.plugins.support.volume_limit_hints import brings_driver, is_attached, is_required, volume_limit_hint
from situate.core.state.attached import Attachable, NodeVolumes, attachable
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.holders import volume_problems, volume_room, volumes_on
from situate.core.state.view import View
from situate.core.versions import KubernetesRules

UNCOUNTABLE: Final = 2
MISSING: Final = 3
DRIVER_CHANGES: Final = (Wake.CSI_DRIVER_UPDATED, Wake.CSI_DRIVER_DELETED)

TOO_MANY_VOLUMES: Final = "node(s) exceed max volume count"


@dataclass(frozen=True, slots=True)
class NodeVolumeLimits:
    """Counts distinct volumes by driver: those of the pods on the node, and other attached ones.

    Refuses a node where the volumes of some pod cannot be counted (a claim is missing, or belongs to another pod), with
    the reason; Kubernetes fails the whole pod on some of these.
    """

    refuses_missing_drivers: bool = False
    """Whether a node must have the drivers whose CSIDriver has preventPodSchedulingIfMissing."""

    name: ClassVar[str] = "NodeVolumeLimits"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason(TOO_MANY_VOLUMES, eviction_helps=True),
        Reason("node(s) had volumes that could not be counted", eviction_helps=False),
        Reason("CSI driver is not installed on the node", eviction_helps=True),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {
            Wake.NODE_ADDED,
            Wake.CSI_NODE_ADDED,
            Wake.CSI_NODE_UPDATED,
            Wake.CSI_NODE_DELETED,
            Wake.POD_ADDED,
            Wake.POD_DELETED,
            Wake.CLAIM_ADDED,
            Wake.CLAIM_UPDATED,
            Wake.CLAIM_DELETED,
            Wake.VOLUME_ADDED,
            Wake.VOLUME_UPDATED,
            Wake.VOLUME_DELETED,
            Wake.STORAGE_CLASS_UPDATED,
            Wake.STORAGE_CLASS_DELETED,
            Wake.VOLUME_ATTACHMENT_DELETED,
            Wake.CSI_DRIVER_UPDATED,
            Wake.CSI_DRIVER_DELETED,
        }
    )

    def with_rules(self, rules: KubernetesRules) -> NodeVolumeLimits:
        return NodeVolumeLimits(rules.refuses_missing_csi_drivers)

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        if self.refuses_missing_drivers and brings_driver(event):
            return True
        return event.kind not in DRIVER_CHANGES and volume_limit_hint(pod, event)

    def check(self, pod: PodClass, view: View) -> Codes | None:
        if not pod.spec.volumes or not any(map(is_attached, pod.spec.volumes)):
            return None
        found = self._refused(pod, view)
        codes = found.exceeded.astype(np.uint8)
        for _, mask in found.uncountable:
            codes[mask] = UNCOUNTABLE
        for _, mask in found.missing:
            codes[mask] = MISSING
        return codes

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, Mask]]:
        """The rows with too many volumes; then the rows where a driver is missing, and those where volumes cannot be
        counted, each with its reason."""
        found = self._refused(pod, view)
        return [(TOO_MANY_VOLUMES, found.exceeded), *found.missing, *found.uncountable]

    def _refused(self, pod: PodClass, view: View) -> _Refused:
        wanted = attachable(pod, view.storage, must_exist=True)
        missing = _missing(pod, wanted, view) if self.refuses_missing_drivers else {}
        exceeded = np.zeros(view.size, np.bool_)
        if wanted.problem:
            return _Refused(
                exceeded, _by_text(missing, view), _uncountable(_own_problems(pod, wanted.problem, view), view)
            )
        for driver, count in _by_driver(wanted.volumes).items():
            used, limit = volume_room(view, driver)
            exceeded |= (limit >= 0) & (used + count > limit)
        problems = volume_problems(view) if wanted.volumes else {}
        if missing:
            problems = {row: text for row, text in problems.items() if row not in missing}
            exceeded[list(missing)] = False
        for row in np.flatnonzero(exceeded).tolist():
            exceeded[row] = row not in problems and _exceeds(wanted.volumes, volumes_on(view, row))
        return _Refused(exceeded, _by_text(missing, view), _uncountable(problems, view))


@dataclass(frozen=True, slots=True)
class _Refused:
    """The rows that are refused, by reason."""

    exceeded: Mask
    missing: list[tuple[str, Mask]]
    uncountable: list[tuple[str, Mask]]


def _missing(pod: PodClass, wanted: Attachable, view: View) -> dict[int, str]:
    """Row -> the text for the first driver that the node should have and has not.

    Kubernetes tries the drivers of a pod in any order; situate in the order of its volumes.
    """
    storage = view.storage
    elsewhere = attachable(pod, storage, on_csi_node=False, must_exist=True)
    on_csi_nodes, on_others = (
        [driver for driver in _by_driver(each.volumes) if is_required(storage.csi_drivers.get(driver))]
        for each in (wanted, elsewhere)
    )
    if not on_csi_nodes and not on_others:
        return {}
    found: dict[int, str] = {}
    for row, name in enumerate(view.names):
        node = storage.csi_nodes.get(name)
        there = () if node is None else tuple(driver.name for driver in node.spec.drivers)
        for driver in on_others if node is None else on_csi_nodes:
            if driver not in there:
                found[row] = f"{driver} CSI driver is not installed on the node"
                break
    return found


def _by_driver(volumes: Mapping[str, str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for driver in volumes.values():
        counts[driver] = counts.get(driver, 0) + 1
    return counts


def _exceeds(wanted: Mapping[str, str], here: NodeVolumes) -> bool:
    """Whether volumes that would exceed the limit if all were new still do: some may be attached already."""
    if here.attached.keys().isdisjoint(wanted):
        return True
    new = {volume: driver for volume, driver in wanted.items() if volume not in here.attached}
    return any(
        here.used.get(driver, 0) + count > here.limits[driver]
        for driver, count in _by_driver(new).items()
        if driver in here.limits
    )


def _own_problems(pod: PodClass, problem: str, view: View) -> dict[int, str]:
    """Row -> why the pod's own volumes cannot be counted there: in-tree volumes need a CSINode."""
    elsewhere = attachable(pod, view.storage, on_csi_node=False, must_exist=True).problem
    nodes = view.storage.csi_nodes
    texts = {row: problem if name in nodes else elsewhere for row, name in enumerate(view.names)}
    return {row: text for row, text in texts.items() if text}


def _uncountable(problems: Mapping[int, str], view: View) -> list[tuple[str, Mask]]:
    return [
        (text if is_not_found(text) else Unjudged(text, NodeVolumeLimits.name), mask)
        for text, mask in _by_text(problems, view)
    ]


def _by_text(texts: Mapping[int, str], view: View) -> list[tuple[str, Mask]]:
    masks: dict[str, Mask] = {}
    for row, text in texts.items():
        masks.setdefault(text, np.zeros(view.size, np.bool_))[row] = True
    return list(masks.items())
