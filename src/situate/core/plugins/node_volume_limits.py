"""NodeVolumeLimits: refuse nodes where the pod's volumes would exceed a driver's attach limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Codes, Reason, Unjudged, Wake, WakeEvent
from situate.core.model.claims import is_not_found
from situate.core.plugins.support.volume_limit_hints import is_attached, volume_limit_hint
from situate.core.state.attached import NodeVolumes, attachable
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.holders import volume_problems, volume_room, volumes_on
from situate.core.state.view import View

UNCOUNTABLE: Final = 2

TOO_MANY_VOLUMES: Final = "node(s) exceed max volume count"


@dataclass(frozen=True, slots=True)
class NodeVolumeLimits:
    """Counts distinct volumes by driver: those of the pods on the node, and other attached ones.

    Refuses a node where the volumes of some pod cannot be counted (a claim is missing, or belongs to another pod), with
    the reason; Kubernetes fails the whole pod on some of these.
    """

    name: ClassVar[str] = "NodeVolumeLimits"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason(TOO_MANY_VOLUMES, eviction_helps=True),
        Reason("node(s) had volumes that could not be counted", eviction_helps=False),
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
        }
    )

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return volume_limit_hint(pod, event)

    def check(self, pod: PodClass, view: View) -> Codes | None:
        if not any(map(is_attached, pod.spec.volumes)):
            return None
        exceeded, *uncountable = self.details(pod, view)
        codes = exceeded[1].astype(np.uint8)
        for _, mask in uncountable:
            codes[mask] = UNCOUNTABLE
        return codes

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, Mask]]:
        """The rows with too many volumes; then the rows where volumes cannot be counted, each with its reason."""
        wanted = attachable(pod, view.storage, must_exist=True)
        exceeded = np.zeros(view.size, np.bool_)
        if wanted.problem:
            return [(TOO_MANY_VOLUMES, exceeded), *_uncountable(_own_problems(pod, wanted.problem, view), view)]
        for driver, count in _by_driver(wanted.volumes).items():
            used, limit = volume_room(view, driver)
            exceeded |= (limit >= 0) & (used + count > limit)
        problems = volume_problems(view) if wanted.volumes else {}
        for row in np.flatnonzero(exceeded).tolist():
            exceeded[row] = row not in problems and _exceeds(wanted.volumes, volumes_on(view, row))
        return [(TOO_MANY_VOLUMES, exceeded), *_uncountable(problems, view)]


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
    masks: dict[str, Mask] = {}
    for row, text in problems.items():
        masks.setdefault(text, np.zeros(view.size, np.bool_))[row] = True
    return [
        (text if is_not_found(text) else Unjudged(text, NodeVolumeLimits.name), mask) for text, mask in masks.items()
    ]
