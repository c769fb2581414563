"""HTTP extenders in the engine: about which nodes they are asked, and what is done with what they leave.

Much may happen between a question and its answer. So what extenders leave is checked against the cluster as it is by
then: a node is taken only if the pod fits it now, and pods are evicted only if they would be chosen now. Where that
comes to nothing, the pod is decided anew. Nobody else waits meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from situate.core.changes import ExtenderSaid, Millis, PodRef
from situate.core.config.types import Extender
from situate.core.effects import AskExtender, Victims
from situate.core.engine.consultations import Consultation, Consultations, NodeRefused
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
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View

if TYPE_CHECKING:
    from situate.core.engine.cycle import Cycle

RACES: Final = 3
"""How often in a row a pod is decided anew at once because the cluster had moved on; after that it rests first."""
MOVED_ON: Final = "what extenders left did not fit any more when they had answered"


class ExtenderScheduling:
    """All that extenders have a say in, for one engine."""

    def __init__(self, cycle: Cycle, extenders: Sequence[Extender]) -> None:
        self._cycle = cycle
        self._extenders = extenders
        self._askings = Consultations(extenders, self)

    def __len__(self) -> int:
        """How many pods are being asked about."""
        return len(self._askings)

    def concern(self, pod: PodClass) -> bool:
        """Whether any extender has a say on nodes for a pod."""
        return self._askings.has_say(pod)

    def binder(self, pod: PodClass) -> int | None:
        """The extender that binds a pod, if one does."""
        return self._askings.binder(pod)

    def may_ignore(self, extender: int) -> bool:
        return self._extenders[extender].ignorable

    def answered(self, answer: ExtenderSaid) -> None:
        self._askings.answered(answer)

    def timed_out(self, ask: int) -> None:
        self._askings.timed_out(ask)

    def forget(self, key: str) -> None:
        """The pod is gone: answers about it are old news."""
        self._askings.forget(key)

    # -- asking --------------------------------------------------------------------------------------------------

    def consult(self, entry: QueuedPod) -> None:
        """Ask about the node that is held for a pod, if it fits there; else about all that it fits."""
        entry.heard = self._cycle.heard
        held = self._cycle.nominations.get(entry.key)
        if held is not None and self._cycle.fits_now(entry, self._row(held.node)):
            self._askings.begin(entry, [held.node], nominated=True)
        else:
            self._consult_on_all(entry)

    def _consult_on_all(self, entry: QueuedPod) -> None:
        rows = np.flatnonzero(self._cycle.looked_at(entry)).tolist()
        if not rows:
            self._cycle.refuse(entry)
            return
        names = self._cycle.cluster.nodes.names
        self._askings.begin(entry, [names[row] for row in rows])

    def has_say_on_room(
        self, entry: QueuedPod, found: FitFailure, refused: dict[str, NodeRefused] | None = None
    ) -> bool:
        """Ask whether room may be made for a pod as was found; False if no extender has a say in that."""
        if found.post_filter is None or found.post_filter.node_row is None:
            return False
        if not self._askings.concerned(entry.kind, "preempt"):
            return False
        if refused is None:
            entry.heard = self._cycle.heard
        victims = [self._victims(one) for one in candidates(found.diagnosis, self._seeking(entry))]
        self._cycle.queue.take(entry, QueueState.IN_FLIGHT)
        self._askings.begin_evictions(entry, victims, refused or {})
        return True

    def _victims(self, candidate: Candidate) -> Victims:
        pods = [self._cycle.cluster.pods.bound(victim.row) for victim in candidate.victims]
        refs = tuple(PodRef(pod.namespace, pod.name, pod.uid) for pod in pods)
        return Victims(self._cycle.cluster.nodes.names[candidate.row], refs, candidate.violations)

    def ask(self, effect: AskExtender, within_ms: Millis) -> None:
        self._cycle.ask(effect, within_ms)

    # -- what an asking came to ----------------------------------------------------------------------------------

    def settled(self, asking: Consultation) -> None:
        try:
            if asking.stage == "preempt":
                self._make_room(asking)
            else:
                self._place(asking)
        except PluginError as error:
            self._cycle.failed(asking.entry, str(error))

    def refused(self, asking: Consultation) -> None:
        try:
            if asking.nominated:
                self._consult_on_all(asking.entry)
            else:
                self._refuse(asking)
        except PluginError as error:
            self._cycle.failed(asking.entry, str(error))

    def failed(self, asking: Consultation, problem: str) -> None:
        if asking.stage != "preempt":
            self._cycle.failed(asking.entry, problem)
            return
        try:
            found = self._found(asking)
        except PluginError as error:
            self._cycle.failed(asking.entry, str(error))
            return
        if found.filtered.feasible.any():
            self._again(asking.entry)  # room came meanwhile: nobody need be asked for it
        else:
            self._cycle.no_room(asking.entry, found.diagnosis.message(f"preemption: {problem}"))

    def outdated(self, asking: Consultation) -> None:
        """Decide anew, about the pod as it is. One that is not being decided any more is somebody else's."""
        entry = asking.entry
        if entry.state is QueueState.IN_FLIGHT and self._cycle.queue.get(entry.key) is entry:
            self._cycle.queue.wake(entry, self._cycle.now, at_once=True)

    def _place(self, asking: Consultation) -> None:
        """Take the best of the nodes that are left and that the pod fits now."""
        entry = asking.entry
        profile, view = self._cycle.framework_of(entry).profile, View(self._cycle.cluster)
        left = run_filters(profile, entry.kind, view).feasible & self._mask(asking.nodes)
        left[list(self._cycle.held(entry))] = False
        if not left.any():
            self._again(entry)
            return
        rank = totals(profile, entry.kind, view, left)
        for node, score in asking.scores.items():
            if (row := self._row(node)) != NOWHERE:
                rank[row] += score
        rank[~left] = -1
        self._cycle.reserve(entry, first_best(rank))

    def _refuse(self, asking: Consultation) -> None:
        """Extenders left no node: see whether room can be made, and park the pod."""
        found = self._found(asking)
        if not self.has_say_on_room(asking.entry, found, asking.refused):
            self._park(asking.entry, found)

    def _make_room(self, asking: Consultation) -> None:
        """Evict as extenders agreed to, if that is what would be done now."""
        entry = asking.entry
        found = self._found(asking)
        if found.filtered.failed is None:
            found = restricted_to(found, self._mask(asking.nodes), self._seeking(entry))
            if (asking.nodes or found.filtered.feasible.any()) and not self._agreed(asking, found):
                self._again(entry)
                return
        self._park(entry, found)

    def _agreed(self, asking: Consultation, found: FitFailure) -> bool:
        if found.post_filter is None or found.post_filter.node_row is None:
            return False
        offered = asking.victims[self._cycle.cluster.nodes.names[found.post_filter.node_row]]
        uids = {pod.uid: None for pod in offered.pods}
        return all(victim.uid in uids for victim in found.post_filter.victims)

    # -- the cluster as it is ------------------------------------------------------------------------------------

    def _found(self, asking: Consultation) -> FitFailure:
        """Why the pod fits nowhere now, with what extenders refused."""
        return with_extender_rejections(
            self._cycle.find(asking.entry), self._said(asking.refused), self._seeking(asking.entry)
        )

    def _said(self, refused: dict[str, NodeRefused]) -> list[ExtenderRejection]:
        found = ((self._row(node), why) for node, why in refused.items())
        return [ExtenderRejection(row, why.text, why.eviction_helps) for row, why in found if row != NOWHERE]

    def _seeking(self, entry: QueuedPod) -> PreemptionContext:
        cycle = self._cycle
        deciding, held = cycle.framework_of(entry), cycle.nominations.get(entry.key)
        known = PreemptionInputs(nominated=cycle.promised_to_others(entry), evicting=cycle.evictions)
        node = "" if held is None else held.node
        return PreemptionContext(deciding.profile, entry.kind, View(cycle.cluster), deciding.preemption, known, node)

    def _row(self, node: str) -> int:
        return self._cycle.cluster.nodes.rows.get(node, NOWHERE)

    def _mask(self, nodes: Iterable[str]) -> Mask:
        found = np.zeros(self._cycle.cluster.nodes.size, np.bool_)
        found[[row for row in map(self._row, nodes) if row != NOWHERE]] = True
        return found

    # -- going on ------------------------------------------------------------------------------------------------

    def _park(self, entry: QueuedPod, found: FitFailure) -> None:
        self._cycle.park(entry, found)
        if entry.heard != self._cycle.heard and entry.state is QueueState.UNSCHEDULABLE:
            # What the extenders said is about what was; whatever came since may help.
            self._cycle.queue.wake(entry, self._cycle.now)

    def _again(self, entry: QueuedPod) -> None:
        """The cluster moved on while extenders were asked: decide anew, and before long with a rest between."""
        if entry.errors >= RACES:
            self._cycle.failed(entry, MOVED_ON)
            return
        entry.errors += 1
        self._cycle.queue.wake(entry, self._cycle.now, at_once=True)
