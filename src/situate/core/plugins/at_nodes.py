"""A filter that a profile enables at filter and not at preFilter: what it would say earlier, it says of each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from situate.core.contract import Detailed, Discerning, Failure, Filter, Reason, Refusal, Verdict, Wake, WakeEvent
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View

TURNED_AWAY: Final = Reason("node(s) were refused before they were looked at", eviction_helps=False)


@dataclass(frozen=True, slots=True)
class AtNodes:
    """Turns nobody away: it refuses every node for the same reason instead."""

    plugin: Filter
    name: str
    reasons: tuple[Reason, ...]
    wakes_on: frozenset[Wake]

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return not isinstance(self.plugin, Discerning) or self.plugin.wakes(pod, event)

    def check(self, pod: PodClass, view: View) -> Verdict:
        verdict = self.plugin.check(pod, view)
        return np.full(view.size, len(self.reasons), np.uint8) if isinstance(verdict, Refusal) else verdict

    def details(self, pod: PodClass, view: View) -> Sequence[tuple[str, Mask]]:
        verdict = self.plugin.check(pod, view)
        if isinstance(verdict, Refusal):
            return [(verdict.text, np.ones(view.size, np.bool_))]
        if verdict is None or isinstance(verdict, Failure):
            return []
        if isinstance(self.plugin, Detailed):
            return self.plugin.details(pod, view)
        return [(reason.text, verdict == code) for code, reason in enumerate(self.plugin.reasons, 1)]


def at_nodes(plugin: Filter) -> Filter:
    return AtNodes(plugin, plugin.name, (*plugin.reasons, TURNED_AWAY), plugin.wakes_on)  # type: ignore[return-value]
