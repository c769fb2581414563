"""A filter that a profile enables at only one of preFilter and filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from situate.core.contract import (
    RULED_OUT,
    Detailed,
    Discerning,
    Failure,
    Filter,
    NodeFailures,
    Reason,
    Refusal,
    Verdict,
    Wake,
    WakeEvent,
)
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View

REFUSED: Final = Reason("node(s) were refused before they were looked at", eviction_helps=False)


@dataclass(frozen=True, slots=True)
class _SingleStage:
    plugin: Filter
    name: str
    reasons: tuple[Reason, ...]
    wakes_on: frozenset[Wake]

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return not isinstance(self.plugin, Discerning) or self.plugin.wakes(pod, event)


@dataclass(frozen=True, slots=True)
class FilterOnly(_SingleStage):
    """Without preFilter, the plugin cannot turn the pod away: it refuses every node for that reason instead."""

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
        codes = verdict.codes if isinstance(verdict, NodeFailures) else verdict
        return [(reason.text, codes == code) for code, reason in enumerate(self.plugin.reasons, 1)]


@dataclass(frozen=True, slots=True)
class PreFilterOnly(_SingleStage):
    """Without filter, the plugin refuses no node. It may still turn the pod away or rule nodes out."""

    def check(self, pod: PodClass, view: View) -> Verdict:
        verdict = self.plugin.check(pod, view)
        if isinstance(verdict, NodeFailures):
            verdict = verdict.codes
        if not isinstance(verdict, np.ndarray):
            return verdict
        ruled_out = verdict == RULED_OUT
        return np.multiply(ruled_out, RULED_OUT, dtype=np.uint8) if ruled_out.any() else None


def filter_only(plugin: Filter) -> Filter:
    return FilterOnly(plugin, plugin.name, (*plugin.reasons, REFUSED), plugin.wakes_on)  # type: ignore[return-value]


def pre_filter_only(plugin: Filter) -> Filter:
    return PreFilterOnly(plugin, plugin.name, plugin.reasons, plugin.wakes_on)  # type: ignore[return-value]
