"""NodeUnschedulable: refuse cordoned nodes, unless the pod tolerates the taint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Codes, Reason, Wake, WakeEvent
from situate.core.model.tolerations import NO_SCHEDULE, Taint, any_tolerates
from situate.core.state.classes import PodClass
from situate.core.state.columns import sealed
from situate.core.state.view import View

CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


@dataclass(frozen=True, slots=True)
class NodeUnschedulable:
    """`spec.unschedulable` counts as a NoSchedule taint, whether or not the node has that taint too."""

    name: ClassVar[str] = "NodeUnschedulable"
    reasons: ClassVar[tuple[Reason, ...]] = (Reason("node(s) were unschedulable", eviction_helps=False),)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED, Wake.NODE_TAINT, Wake.POD_TOLERATION})

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        """A node helps if it is not cordoned, and is new or was; a toleration helps if it is for the cordon."""
        if event.own:
            return any_tolerates(pod.spec.tolerations, CORDON)
        if event.node is None:
            return True
        before = event.node_before
        return not event.node.spec.unschedulable and (before is None or before.spec.unschedulable)

    def check(self, pod: PodClass, view: View) -> Codes | None:
        codes = view.memo((self.name,), _cordoned)
        if codes is None or any_tolerates(pod.spec.tolerations, CORDON):
            return None
        return codes[view.rows]


def _cordoned(whole: View) -> Codes | None:
    codes: Codes = sealed(whole.unschedulable.astype(np.uint8))
    return codes if codes.any() else None
