"""NodeName: where a pod names its node, refuse all others.

A pod that names its node counts as bound there, and pods of a class are the same wherever they are bound: so this
plugin refuses nodes only if a caller asks about such a pod explicitly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situate.core.contract import FITS, Codes, Reason, Wake
from situate.core.state.classes import PodClass
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class NodeName:
    """`spec.nodeName`, compared with the node's name."""

    name: ClassVar[str] = "NodeName"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node(s) didn't match the requested node name", eviction_helps=False),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED})

    def check(self, pod: PodClass, view: View) -> Codes | None:
        wanted = pod.spec.node_name
        if not wanted:
            return None
        codes = np.ones(view.size, np.uint8)
        row = view.find(wanted)
        if row >= 0:
            codes[row] = FITS
        return codes
