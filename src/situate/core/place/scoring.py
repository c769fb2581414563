"""How good each feasible node is: the weighted sum of all scorers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.core.contract import Scores
from situate.core.place.profile import Profile
from situate.core.state.classes import PodClass
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class Scored:
    """The weighted scores by plugin, and their sum. Only feasible rows count."""

    by_plugin: dict[str, Scores]
    total: IntColumn


def totals(profile: Profile, pod: PodClass, view: View, feasible: Mask) -> IntColumn:
    scoring = view.scoring(feasible)
    total = np.zeros(view.size, np.int64)
    everywhere = 0
    for weighted in profile.scorers:
        scores = weighted.scorer.score(pod, scoring)
        if scores is None:
            continue
        if scores.size and scores.strides[0] == 0:
            everywhere += int(scores[0]) * weighted.weight  # one number for all rows: see `constant`
        else:
            total += scores if weighted.weight == 1 else scores * weighted.weight
    total += everywhere
    return total


def run_scorers(profile: Profile, pod: PodClass, view: View, feasible: Mask) -> Scored:
    scoring = view.scoring(feasible)
    by_plugin: dict[str, Scores] = {}
    total = np.zeros(view.size, np.int64)
    for weighted in profile.scorers:
        scores = weighted.scorer.score(pod, scoring)
        if scores is not None:
            by_plugin[weighted.scorer.name] = weighed = scores * weighted.weight
            total += weighed
    return Scored(by_plugin, total)
