"""A filter that a profile enables at preFilter and not at filter: it refuses no node, but may still say no earlier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.core.contract import RULED_OUT, Discerning, Filter, Reason, Verdict, Wake, WakeEvent
from situate.core.state.classes import PodClass
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class BeforeNodes:
    """Lets through what is said before any node is looked at: that the pod is turned away, or nodes ruled out."""

    plugin: Filter
    name: str
    reasons: tuple[Reason, ...]
    wakes_on: frozenset[Wake]

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return not isinstance(self.plugin, Discerning) or self.plugin.wakes(pod, event)

    def check(self, pod: PodClass, view: View) -> Verdict:
        verdict = self.plugin.check(pod, view)
        if not isinstance(verdict, np.ndarray):
            return verdict
        ruled_out = verdict == RULED_OUT
        return np.multiply(ruled_out, RULED_OUT, dtype=np.uint8) if ruled_out.any() else None


def before_nodes(plugin: Filter) -> Filter:
    return BeforeNodes(plugin, plugin.name, plugin.reasons, plugin.wakes_on)  # type: ignore[return-value]
