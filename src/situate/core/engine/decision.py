"""A whole decision about one pod, from scratch and with its reasons: for users, and to compare with others'."""

from __future__ import annotations

from dataclasses import dataclass

from situate.core.engine.framework import Framework
from situate.core.place.diagnosis import Diagnosis, diagnose
from situate.core.place.filtering import Filtered, run_filters
from situate.core.place.scoring import Scored, run_scorers
from situate.core.place.selecting import NO_ROWS, best_rows
from situate.core.preempt import PostFilterResult, post_filter
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class Decision:
    """The result. If nothing is feasible, there is a `post_filter`, and `best` is empty."""

    filtered: Filtered
    diagnosis: Diagnosis
    scored: Scored | None
    best: IdColumn
    post_filter: PostFilterResult | None

    @property
    def chosen(self) -> int | None:
        return int(self.best[0]) if len(self.best) else None

    @property
    def message(self) -> str:
        """The text of the FailedScheduling event; empty if a node was found."""
        if self.scored is not None:
            return ""
        if self.filtered.failed is not None and self.diagnosis.node_count:
            return self.filtered.failure
        return self.diagnosis.message(self.post_filter.message if self.post_filter is not None else "")


def decide(framework: Framework, pod: PodClass, view: View, *, nominated_node: str = "") -> Decision:
    """Filter, score and select; if nothing is feasible, run PostFilter."""
    profile = framework.profile
    filtered = run_filters(profile, pod, view)
    diagnosis = diagnose(profile, pod, view, filtered)
    if filtered.feasible.any():
        scored = run_scorers(profile, pod, view, filtered.feasible)
        return Decision(filtered, diagnosis, scored, best_rows(scored.total, filtered.feasible), None)
    result = None
    if filtered.failed is None and view.node_count:
        result = post_filter(profile, pod, view, diagnosis, framework.preemption, nominated_node=nominated_node)
    return Decision(filtered, diagnosis, None, NO_ROWS, result)
