"""NodeName: where a pod names its node, refuse all others.

A pod that names its node counts as bound there, and pods of a class are the same wherever they are bound: so this
plugin refuses nodes only if a caller asks about such a pod explicitly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from situate.core.contract import FITS, RULED_OUT, Codes, Reason, Wake
from situate.core.state.classes import PodClass
from situate.core.state.view import View
from situate.core.versions import KubernetesRules


@dataclass(frozen=True, slots=True)
class NodeName:
    """`spec.nodeName`, compared with the node's name."""

    narrows: bool = False
    """Rule the other nodes out before filtering instead of refusing them."""

    name: ClassVar[str] = "NodeName"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node(s) didn't match the requested node name", eviction_helps=False),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED})

    def with_rules(self, rules: KubernetesRules) -> NodeName:
        return NodeName(rules.node_name_narrows)

    def check(self, pod: PodClass, view: View) -> Codes | None:
        wanted = pod.spec.node_name
        if not wanted:
            return None
        codes = np.full(view.size, RULED_OUT if self.narrows else 1, np.uint8)
        row = view.find(wanted)
        if row >= 0:
            codes[row] = FITS
        return codes
