"""TaintToleration: refuse nodes with a taint the pod does not tolerate, and prefer those with few it dislikes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import FITS, Codes, Reason, Scores, Wake
from situate.core.model.tolerations import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
    any_tolerates,
)
from situate.core.plugins.normalise import Ranking, ranked, settled
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

    def check(self, pod: PodClass, view: View) -> Codes | None:
        tolerations = pod.spec.tolerations
        key = (self.name, "codes", pod.tolerations_key)
        codes = view.memo(key, lambda whole: _refused(tolerations, whole))
        return None if codes is None else codes[view.rows]

    def score(self, pod: PodClass, view: View) -> Scores:
        tolerations = pod.spec.tolerations
        key = (self.name, "disliked", pod.tolerations_key)
        return settled(key, lambda whole: _disliked(tolerations, whole), view, reverse=True)


def _refused(tolerations: tuple[Toleration, ...], whole: View) -> Codes | None:
    def verdict(taints: tuple[Taint, ...]) -> int:
        forbidding = (taint for taint in taints if taint.effect in FORBIDDING)
        return FITS if all(any_tolerates(tolerations, taint) for taint in forbidding) else UNTOLERATED

    by_set = np.array(whole.by_taint_set(verdict), np.uint8)
    if not by_set.any():
        return None
    codes: Codes = sealed(by_set.take(whole.taint_set))
    # Sets of taints are remembered after the last node that had them: nobody may be refused after all.
    return codes if codes.any() else None


def _disliked(tolerations: tuple[Toleration, ...], whole: View) -> Ranking:
    """How many PreferNoSchedule taints of each node the pod does not tolerate."""

    def count(taints: tuple[Taint, ...]) -> int:
        return sum(taint.effect == PREFER_NO_SCHEDULE and not any_tolerates(tolerations, taint) for taint in taints)

    by_set = np.array(whole.by_taint_set(count), np.int64)
    return ranked(by_set.take(whole.taint_set), whole, reverse=True)
