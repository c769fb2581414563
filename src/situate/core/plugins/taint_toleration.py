"""TaintToleration: refuse nodes with a taint the pod does not tolerate, and prefer those with few it dislikes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import FITS, Codes, Reason, Scores, Wake, WakeEvent
from situate.core.model.node import Node
from situate.core.model.tolerations import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    any_tolerates,
)
from situate.core.plugins.support.normalize import Ranking, cached_scores, ranked
from situate.core.state.classes import PodClass
from situate.core.state.columns import sealed
from situate.core.state.view import View

UNTOLERATED: Final = 1
FORBIDDING: Final = (NO_SCHEDULE, NO_EXECUTE)


@dataclass(frozen=True, slots=True)
class TaintToleration:
    """NoSchedule and NoExecute taints refuse; each PreferNoSchedule taint that is not tolerated costs score."""

    name: ClassVar[str] = "TaintToleration"
    reasons: ClassVar[tuple[Reason, ...]] = (Reason("node(s) had untolerated taint(s)", eviction_helps=False),)
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED, Wake.NODE_TAINT, Wake.POD_TOLERATION})

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        """A node helps if the pod tolerates it and did not before."""
        if event.own or event.node is None:
            return True
        tolerations = pod.spec.tolerations
        before = event.node_before
        return tolerated(tolerations, event.node) and (before is None or not tolerated(tolerations, before))

    def check(self, pod: PodClass, view: View) -> Codes | None:
        tolerations = pod.spec.tolerations
        key = (self.name, "codes", pod.tolerations_key)
        codes = view.memo(key, lambda whole: _refused(tolerations, whole))
        return None if codes is None else codes[view.rows]

    def score(self, pod: PodClass, view: View) -> Scores:
        tolerations = pod.spec.tolerations
        key = (self.name, "disliked", pod.tolerations_key)
        return cached_scores(key, lambda whole: _disliked(tolerations, whole), view, reverse=True)


def tolerated(tolerations: tuple[Toleration, ...], node: Node) -> bool:
    """Whether every taint of a node that forbids is tolerated."""
    return _stands(tolerations, node.spec.taints)


def _stands(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> bool:
    return all(any_tolerates(tolerations, taint) for taint in taints if taint.effect in FORBIDDING)


def _refused(tolerations: tuple[Toleration, ...], whole: View) -> Codes | None:
    def verdict(taints: tuple[Taint, ...]) -> int:
        return FITS if _stands(tolerations, taints) else UNTOLERATED

    by_set = np.array(whole.by_taint_set(verdict), np.uint8)
    if not by_set.any():
        return None
    codes: Codes = sealed(by_set.take(whole.taint_set))
    # Sets of taints outlive the last node that had them, so it may be that no node is refused.
    return codes if codes.any() else None


def _disliked(tolerations: tuple[Toleration, ...], whole: View) -> Ranking:
    """The number of PreferNoSchedule taints of each node that the pod does not tolerate."""

    def count(taints: tuple[Taint, ...]) -> int:
        return sum(taint.effect == PREFER_NO_SCHEDULE and not any_tolerates(tolerations, taint) for taint in taints)

    by_set = np.array(whole.by_taint_set(count), np.int64)
    return ranked(by_set.take(whole.taint_set), whole, reverse=True)
