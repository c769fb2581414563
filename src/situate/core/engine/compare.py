"""Another scheduler's choice for a pod, compared with ours on the same cluster. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from situate.core.engine.cycle import Cycle
from situate.core.engine.framework import Framework
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import Filtered, run_filters
from situate.core.place.scoring import totals
from situate.core.place.selecting import NOWHERE, first_best
from situate.core.place.verdict_cache import VerdictCache
from situate.core.plugins.support.errors import PluginError
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.classes import PodClass
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

KEPT: Final = 64
"""For how many classes of pods verdicts are cached. The least recently used is dropped first."""

Agreement: TypeAlias = Literal["same", "equal", "worse", "infeasible", "unknown"]
"""Of their node: it is ours too; it scores as ours; it scores less; the pod does not fit there; we cannot tell, because
the node is unknown, an extender filters or scores the pod, or a plugin failed."""

NO_SUCH_NODE: Final = "the node is not known"
EXTENDERS: Final = "an extender filters or scores the pod, and is not called here"
HELD: Final = "the node is being freed for a pod of no less priority"
RULED_OUT: Final = "the pod names other nodes"


@dataclass(frozen=True, slots=True)
class Compared:
    """The result. There are scores if the pod fits."""

    agreement: Agreement
    theirs: str
    ours: str = ""
    """The node that we would have chosen; empty if none."""
    their_score: int | None = None
    our_score: int | None = None
    reason: str = ""
    """Why the pod does not fit on their node, or why we cannot tell."""

    @property
    def agrees(self) -> bool:
        return self.agreement in ("same", "equal")

    @property
    def gap(self) -> int | None:
        if self.our_score is None or self.their_score is None:
            return None
        return max(0, self.our_score - self.their_score)  # a nominated node is ours whatever it scores


class Comparer:
    def __init__(self, cycle: Cycle) -> None:
        self._cluster, self._interest = cycle.selection.cluster, cycle.interest
        self._selection = cycle.selection
        self._caches: dict[tuple[str, PodClass], VerdictCache] = {}

    def compare(self, entry: QueuedPod, theirs: str, without: Sequence[BoundPod] = ()) -> Compared:
        """On the cluster as it is, without some bound pods."""
        row = self._cluster.nodes.rows.get(theirs, NOWHERE)
        if row == NOWHERE:
            return Compared("unknown", theirs, reason=NO_SUCH_NODE)
        if self._interest.has_say(entry.kind):
            return Compared("unknown", theirs, reason=EXTENDERS)
        try:
            return self._compare(entry, row, without)
        except PluginError as error:
            return Compared("unknown", theirs, reason=str(error))

    def _compare(self, entry: QueuedPod, row: int, without: Sequence[BoundPod]) -> Compared:
        names = self._cluster.nodes.names
        framework = self._selection.framework_of(entry)
        nominated = self._nominated(entry)
        if nominated == row and not without:
            return Compared("same", names[row], names[row])
        if without:
            feasible, total = self._from_scratch(framework, entry.kind, View(self._cluster).without(without))
        else:
            feasible, total = self._cached(framework, entry.kind)
        feasible = feasible.copy()
        held = list(self._selection.held(entry))
        feasible[held] = False
        rank = np.where(feasible, total, -1)
        ours = nominated if nominated != NOWHERE and not without else first_best(rank)
        our_name = "" if ours == NOWHERE else names[ours]
        if not feasible[row]:
            reason = HELD if row in held else self._why_not(framework, entry.kind, row, without)
            return Compared("infeasible", names[row], our_name, reason=reason)
        theirs, best = int(rank[row]), int(rank[ours])
        agreement: Agreement = "same" if row == ours else "equal" if theirs >= best else "worse"
        return Compared(agreement, names[row], our_name, theirs, best)

    def _nominated(self, entry: QueuedPod) -> int:
        """The nominated node, if the pod fits there now: any scheduler takes that."""
        row = self._selection.nominated_row(entry)
        return row if self._selection.fits_now(entry, row) else NOWHERE

    def _cached(self, framework: Framework, pod: PodClass) -> tuple[Mask, IntColumn]:
        key = (framework.profile.scheduler_name, pod)
        verdicts = self._caches.pop(key, None) or VerdictCache(self._cluster, framework.profile, pod)
        self._caches[key] = verdicts
        if len(self._caches) > KEPT:
            del self._caches[next(iter(self._caches))]
        verdicts.refresh()
        return verdicts.feasible, verdicts.total

    def _from_scratch(self, framework: Framework, pod: PodClass, view: View) -> tuple[Mask, IntColumn]:
        feasible = run_filters(framework.profile, pod, view).feasible
        if not feasible.any():
            return feasible, np.zeros(view.size, np.int64)
        return feasible, totals(framework.profile, pod, view, feasible)

    def _why_not(self, framework: Framework, pod: PodClass, row: int, without: Sequence[BoundPod]) -> str:
        view = View(self._cluster).without(without)
        filtered = run_filters(framework.profile, pod, view)
        return _first_text(framework, pod, view, filtered, row)


def _first_text(framework: Framework, pod: PodClass, view: View, filtered: Filtered, row: int) -> str:
    """The name and the reasons of the first filter that refuses a node."""
    if filtered.failed is not None:
        return f"{filtered.failed[0]}: {filtered.failed[1].text}"
    diagnosis = diagnose(framework.profile, pod, view, filtered)
    if diagnosis.turned_away is not None:
        return f"{diagnosis.turned_away.plugin}: {diagnosis.turned_away.refusal.text}"
    if diagnosis.absent[row]:
        return RULED_OUT
    found = [one for one in diagnosis.rejections if one.rows[row]]
    return f"{found[0].plugin}: {', '.join(sorted(one.text for one in found))}" if found else ""
