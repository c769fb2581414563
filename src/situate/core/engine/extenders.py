"""HTTP extenders in the engine: the nodes they are asked about, and what follows from their answers.

Much may happen between a question and its answer. So what extenders leave is checked against the cluster as it is by
then: a pod gets a node only if it fits there now, and victims are evicted only if they would be chosen now. Otherwise
the pod is decided again. No other pod waits meanwhile.

Nothing is carried out here: every method returns actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from situate.core.changes import ExtenderSaid, PodRef
from situate.core.effects import Victims
from situate.core.engine.actions import Activate, ExtenderAction, Fail, MarkUnschedulable, Refuse, Reserve, Retry
from situate.core.engine.consultations import Consultation, Consultations, NodeRefused, Outcome
from situate.core.engine.extender_interest import ExtenderInterest
from situate.core.engine.node_selection import NodeSelection
from situate.core.engine.state import EngineState
from situate.core.place.filtering import run_filters
from situate.core.place.scoring import totals
from situate.core.place.selecting import NOWHERE, first_best
from situate.core.plugins.support.errors import PluginError
from situate.core.preempt.extender_preemption import (
    ExtenderRejection,
    PreemptionContext,
    candidates,
    restricted_to,
    with_extender_rejections,
)
from situate.core.preempt.fit_failure import FitFailure
from situate.core.preempt.preemption import PreemptionInputs
from situate.core.preempt.ranking import Candidate
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.columns import Mask
from situate.core.state.view import View

Actions: TypeAlias = Sequence[ExtenderAction]


class ExtenderScheduling:
    def __init__(self, state: EngineState, selection: NodeSelection, interest: ExtenderInterest) -> None:
        self._state = state
        self._cluster = state.cluster
        self._selection = selection
        self._interest = interest
        self._consultations = Consultations(interest)

    def forget(self, key: str) -> None:
        """The pod is gone: ignore answers about it."""
        self._consultations.forget(key)

    # -- asking --------------------------------------------------------------------------------------------------

    def consult(self, entry: QueuedPod) -> Actions:
        """Ask about the node that is nominated for a pod, if it fits there; else about all that it fits."""
        asked_at, row = self._state.event_count, self._selection.nominated_row(entry)
        if self._selection.fits_now(entry, row):
            nodes = [self._cluster.nodes.names[row]]
            return self._follow(self._consultations.begin(entry, nodes, asked_at, nominated=True))
        return self._consult_on_all(entry, asked_at)

    def _consult_on_all(self, entry: QueuedPod, asked_at: int) -> Actions:
        rows = np.flatnonzero(self._selection.feasible(entry)).tolist()
        if not rows:
            return (Refuse(entry),)
        names = self._cluster.nodes.names
        return self._follow(self._consultations.begin(entry, [names[row] for row in rows], asked_at))

    def consult_on_evictions(self, entry: QueuedPod, failure: FitFailure) -> Actions | None:
        """Ask whether victims may be evicted for a pod; None if no extender handles preemption."""
        return self._ask_evictions(entry, failure, self._state.event_count, {})

    def _ask_evictions(
        self, entry: QueuedPod, failure: FitFailure, asked_at: int, refused: dict[str, NodeRefused]
    ) -> Actions | None:
        if failure.post_filter is None or failure.post_filter.node_row is None:
            return None
        if not self._interest.concerned(entry.kind, "preempt"):
            return None
        victims = [self._victims(one) for one in candidates(failure.diagnosis, self._preemption(entry))]
        return self._follow(self._consultations.begin_evictions(entry, victims, asked_at, refused))

    def _victims(self, candidate: Candidate) -> Victims:
        pods = [self._cluster.pods.bound(victim.row) for victim in candidate.victims]
        refs = tuple(PodRef(pod.namespace, pod.name, pod.uid) for pod in pods)
        return Victims(self._cluster.nodes.names[candidate.row], refs, candidate.violations)

    # -- answers -------------------------------------------------------------------------------------------------

    def answered(self, answer: ExtenderSaid) -> Actions:
        return self._concluded(self._consultations.answered(answer))

    def timed_out(self, ask: int) -> Actions:
        return self._concluded(self._consultations.timed_out(ask))

    def _concluded(self, outcome: Outcome | None) -> Actions:
        if outcome is None:
            return ()
        try:
            return self._follow(outcome)
        except PluginError as error:
            return (Fail(outcome.consultation.entry, str(error)),)

    def _follow(self, outcome: Outcome) -> Actions:
        one = outcome.consultation
        match outcome.kind:
            case "asked":
                return outcome.asks
            case "settled":
                return self._evict(one) if one.stage == "preempt" else self._place(one)
            case "refused":
                return self._consult_on_all(one.entry, one.asked_at) if one.nominated else self._refuse(one)
            case "failed":
                return self._failed(one, outcome.problem)
            case "outdated":
                return self._outdated(one)

    def _outdated(self, one: Consultation) -> Actions:
        """Decide about the pod as it is now, unless it is not being decided any more."""
        entry = one.entry
        is_ours = entry.state is QueueState.IN_FLIGHT and self._state.queue.get(entry.key) is entry
        return (Activate(entry),) if is_ours else ()

    def _failed(self, one: Consultation, problem: str) -> Actions:
        if one.stage != "preempt":
            return (Fail(one.entry, problem),)
        failure = self._fit_failure(one)
        if failure.filtered.feasible.any():
            return (Retry(one.entry),)  # room came meanwhile: no eviction is needed
        return (Fail(one.entry, failure.diagnosis.message(f"preemption: {problem}"), "Unschedulable"),)

    def _place(self, one: Consultation) -> Actions:
        """Take the best of the nodes that are left and that the pod fits now."""
        entry = one.entry
        profile, view = self._selection.framework_of(entry).profile, View(self._cluster)
        left = run_filters(profile, entry.kind, view).feasible & self._mask(one.nodes)
        left[list(self._selection.held(entry))] = False
        if not left.any():
            return (Retry(entry),)
        rank = totals(profile, entry.kind, view, left)
        for node, score in one.scores.items():
            if (row := self._row(node)) != NOWHERE:
                rank[row] += score
        rank[~left] = -1
        return (Reserve(entry, first_best(rank)),)

    def _refuse(self, one: Consultation) -> Actions:
        """Extenders left no node: see whether evictions can make room."""
        failure = self._fit_failure(one)
        asks = self._ask_evictions(one.entry, failure, one.asked_at, one.refused)
        return (MarkUnschedulable(one.entry, failure, one.asked_at),) if asks is None else asks

    def _evict(self, one: Consultation) -> Actions:
        """Evict as extenders agreed to, if the same pods would be chosen now."""
        entry = one.entry
        failure = self._fit_failure(one)
        if failure.filtered.failed is None:
            failure = restricted_to(failure, self._mask(one.nodes), self._preemption(entry))
            if (one.nodes or failure.filtered.feasible.any()) and not self._agreed(one, failure):
                return (Retry(entry),)
        return (MarkUnschedulable(entry, failure, one.asked_at),)

    def _agreed(self, one: Consultation, failure: FitFailure) -> bool:
        found = failure.post_filter
        if found is None or found.node_row is None:
            return False
        uids = {pod.uid: None for pod in one.victims[self._cluster.nodes.names[found.node_row]].pods}
        return all(victim.uid in uids for victim in found.victims)

    # -- the cluster as it is ------------------------------------------------------------------------------------

    def _fit_failure(self, one: Consultation) -> FitFailure:
        found = ((self._row(node), why) for node, why in one.refused.items())
        rejections = [ExtenderRejection(row, why.text, why.eviction_helps) for row, why in found if row != NOWHERE]
        failure = self._selection.fit_failure(one.entry, self._state.evictions)
        return with_extender_rejections(failure, rejections, self._preemption(one.entry))

    def _preemption(self, entry: QueuedPod) -> PreemptionContext:
        framework, own = self._selection.framework_of(entry), self._state.nominations.get(entry.key)
        known = PreemptionInputs(nominated=self._selection.nominated(entry), evicting=self._state.evictions)
        node = "" if own is None else own.node
        return PreemptionContext(framework.profile, entry.kind, View(self._cluster), framework.preemption, known, node)

    def _row(self, node: str) -> int:
        return self._cluster.nodes.rows.get(node, NOWHERE)

    def _mask(self, nodes: Iterable[str]) -> Mask:
        found = np.zeros(self._cluster.nodes.size, np.bool_)
        found[[row for row in map(self._row, nodes) if row != NOWHERE]] = True
        return found
