"""NodeUnschedulable: refuse cordoned nodes, unless the pod tolerates the cordon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import Codes, Reason, Wake
from situate.core.model.tolerations import NO_SCHEDULE, Taint, any_tolerates
from situate.core.state.classes import PodClass
from situate.core.state.columns import sealed
from situate.core.state.view import View

CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


@dataclass(frozen=True, slots=True)
class NodeUnschedulable:
    """`spec.unschedulable` reads as a NoSchedule taint, whether or not the node has that taint too."""

    name: ClassVar[str] = "NodeUnschedulable"
    reasons: ClassVar[tuple[Reason, ...]] = (Reason("node(s) were unschedulable", eviction_helps=False),)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED, Wake.NODE_TAINT, Wake.POD_TOLERATION})

    def check(self, pod: PodClass, view: View) -> Codes | None:
        codes = view.memo((self.name,), _cordoned)
        if codes is None or any_tolerates(pod.spec.tolerations, CORDON):
            return None
        return codes[view.rows]


def _cordoned(whole: View) -> Codes | None:
    codes: Codes = sealed(whole.unschedulable.astype(np.uint8))
    return codes if codes.any() else None
