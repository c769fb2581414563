"""The scheduling cycle: a pod gets a node, is counted there and bound; or it learns why not, and waits.

The cycle alone writes the engine's state, with its two parts: the binding cycle and the preemptor. Gangs and extenders
return actions, which are carried out here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, assert_never

from situate.core.changes import (
    BindDone,
    BindFailed,
    ClaimsBound,
    ClaimsFailed,
    EvictDone,
    EvictFailed,
    ExtenderSaid,
    Millis,
    PodRef,
    VolumesBound,
    VolumesFailed,
)
from situate.core.config.types import Extender
from situate.core.devices.extended import CLAIM_ANNOTATION
from situate.core.effects import Effect, ReleaseClaim, SetCondition, SetGroupCondition
from situate.core.engine.actions import (
    Activate,
    Ask,
    EndNomination,
    EvictPod,
    ExtenderAction,
    Fail,
    GangAction,
    Hold,
    HoldNode,
    MarkGangUnschedulable,
    MarkUnschedulable,
    Refuse,
    Release,
    Reserve,
    Retry,
    ReviewGang,
    StartAttempt,
)
from situate.core.engine.binding import AbandonedBind, BindingCycle
from situate.core.engine.extender_interest import ExtenderInterest
from situate.core.engine.extenders import ExtenderScheduling
from situate.core.engine.framework import Framework
from situate.core.engine.gang_scheduling import GangScheduling
from situate.core.engine.metrics import FailedAttempt, Result
from situate.core.engine.node_selection import NodeSelection
from situate.core.engine.preemptor import Preemptor
from situate.core.engine.state import EngineState
from situate.core.engine.wake_events import node_left
from situate.core.gang.members import evicted_together
from situate.core.gang.preemption import all_going
from situate.core.model.node import Node
from situate.core.place.selecting import NOWHERE
from situate.core.place.stopwatch import NO_STOPWATCH, POST_FILTER, RESERVE, Stopwatch
from situate.core.plugins.support.errors import PluginError
from situate.core.preempt.fit_failure import FitFailure
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.pods import BoundPod

RACES: Final = 3
"""How often in a row a pod is decided again at once because the cluster had changed; after that it backs off first."""
MOVED_ON: Final = "what extenders left did not fit any more when they had answered"
WAITING_FOR_GANG: Final = "WaitingForGang"

Answer: TypeAlias = (
    BindDone
    | BindFailed
    | VolumesBound
    | VolumesFailed
    | ClaimsBound
    | ClaimsFailed
    | EvictDone
    | EvictFailed
    | ExtenderSaid
)
"""The answer to an effect."""

RESULTS: Final[dict[str, Result]] = {"Unschedulable": "unschedulable", "SchedulerError": "error"}
"""By the reason in a pod's condition: the result of the attempt."""


class Cycle:
    def __init__(
        self,
        state: EngineState,
        frameworks: Mapping[str, Framework],
        extenders: Sequence[Extender] = (),
        stopwatch: Stopwatch = NO_STOPWATCH,
    ) -> None:
        self._state = state
        self._stopwatch = stopwatch
        self.refused = 0
        """How many pods fitted nowhere in this step."""
        self.witness: Callable[[QueuedPod, int], None] | None = None
        """Called with every choice before it is carried out: the pod, and the row or NOWHERE. May only look."""
        self.interest = ExtenderInterest(extenders)
        self.selection = NodeSelection(state.cluster, frameworks, state.nominations, stopwatch)
        self._binding = BindingCycle(state, self.selection, self.interest)
        self.preemptor = Preemptor(state)
        self._extenders = ExtenderScheduling(state, self.selection, self.interest)
        self.gangs = GangScheduling(state, self.selection, self.interest)

    def begin(self, now: Millis) -> None:
        self._state.now = now
        self._state.metrics.begin()
        self.refused = 0

    def end(self) -> list[Effect]:
        self._state.queue.count_added()
        effects, self._state.effects = self._state.effects, []
        return effects

    def answered(self, answer: Answer) -> None:
        match answer:
            case BindDone(ref, attempt):
                self._binding.bind_done(ref, attempt)
            case BindFailed(ref, attempt, problem, final):
                self._abandon(self._binding.bind_failed(ref, attempt, problem, final=final))
            case VolumesBound(ref, attempt):
                self._binding.volumes_bound(ref, attempt)
            case VolumesFailed(ref, attempt, problem):
                self._abandon(self._binding.bind_failed(ref, attempt, problem, final=True))
            case ClaimsBound(ref, attempt):
                self._binding.claims_bound(ref, attempt)
            case ClaimsFailed(ref, attempt, problem):
                self._binding.claims_answered(ref, attempt)
                self._abandon(self._binding.bind_failed(ref, attempt, problem, final=True))
            case EvictDone():
                pass  # the victim will be seen to leave
            case EvictFailed(ref, _):
                self.preemptor.evict_failed(ref)
            case ExtenderSaid():
                self._apply_guarded(self._extenders.answered(answer))
            case _:
                assert_never(answer)

    # -- deciding ------------------------------------------------------------------------------------------------

    def decide(self, entry: QueuedPod) -> None:
        if entry.pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {entry.key}"
            self._state.report(entry.ref, ("Warning", "FailedScheduling", "Scheduling", note))
            self.leave(entry.key)
            return
        gang = self.gangs.decide(entry)
        if gang is not None:
            self._decide_gang(gang)
            return
        entry.attempts += 1
        self._stopwatch.begin(entry.pod.spec.scheduler_name)
        try:
            if self.interest.has_say(entry.kind):
                self._apply(self._extenders.consult(entry))
                return
            row = self.selection.choose(entry)
            if self.witness is not None:
                self.witness(entry, row)
            if row != NOWHERE:
                if problem := self._binding.reserve(entry, row):
                    self._fail(entry, problem)
                self._stopwatch.lap(RESERVE)
            else:
                self._refuse(entry)
                self._stopwatch.lap(POST_FILTER, bool(entry.nominated))
        except PluginError as error:
            self._fail(entry, str(error))

    def _decide_gang(self, actions: Iterable[GangAction]) -> None:
        started: tuple[QueuedPod, ...] = ()
        try:
            for action in actions:
                if isinstance(action, StartAttempt):
                    started = action.entries
                self._apply_one(action)
        except PluginError as error:
            for entry in started:
                self._fail(entry, str(error))

    def review_gangs(self) -> None:
        self._apply(self.gangs.review())

    # -- carrying out --------------------------------------------------------------------------------------------

    def _apply(self, actions: Iterable[GangAction | ExtenderAction]) -> None:
        for action in actions:
            self._apply_one(action)

    def _apply_guarded(self, actions: Iterable[ExtenderAction]) -> None:
        """The same outside of a decision: a plugin that fails costs its pod a retry."""
        for action in actions:
            try:
                self._apply_one(action)
            except PluginError as error:
                self._fail(action.entry, str(error))

    def _apply_one(self, action: GangAction | ExtenderAction) -> None:  # noqa: C901, PLR0912 - one case an action
        state = self._state
        match action:
            case Reserve(entry, row, annotations):
                if problem := self._binding.reserve(entry, row, annotations):
                    self._fail(entry, problem)
            case StartAttempt(entries):
                for entry in entries:
                    entry.attempts += 1
                    state.queue.take(entry, QueueState.IN_FLIGHT)
                self._stopwatch.begin(entries[0].pod.spec.scheduler_name, len(entries))
            case Hold(entry, message):
                self._hold(entry, message)
            case Activate(entry, at_once):
                state.queue.wake(entry, state.now, at_once=at_once)
            case Ask(_, effect, within_ms):
                state.effects.append(effect)
                state.timers.set(state.now + within_ms, "extender", "", effect.ask)
            case Refuse(entry):
                self._refuse(entry)
            case MarkUnschedulable(entry, failure, asked_at):
                self._mark_unschedulable(entry, failure)
                if asked_at != state.event_count and entry.state is QueueState.UNSCHEDULABLE:
                    # Extenders answered about the cluster as it was; what happened since may help.
                    state.queue.wake(entry, state.now)
            case MarkGangUnschedulable(entry, message, plugins):
                self._add_unschedulable(entry, message, plugins)
                state.queue.add_unschedulable(entry, state.now)
            case Fail(entry, problem, reason):
                self._fail(entry, problem, reason)
            case Retry(entry):
                self._retry(entry)
            case Release(reservation, problem):
                self._binding.release(reservation)
                self._fail(reservation.entry, problem)
            case HoldNode(entry, node):
                self.preemptor.nominate(entry, node)
            case EndNomination(key):
                self.preemptor.withdraw_one(key)
            case EvictPod(victim, node, preemptor, message, event):
                self.preemptor.evict(victim, node, preemptor, message, event)
            case ReviewGang(gang_id, after_ms):
                state.timers.set(state.now + after_ms, "gang", gang_id)
            case SetGroupCondition():
                state.effects.append(action)
            case _:
                assert_never(action)

    def _hold(self, entry: QueuedPod, message: str) -> None:
        if entry.state is not QueueState.GATED:
            self._state.queue.gate(entry)
        if message:
            entry.message = message
            self._report_unscheduled(entry, WAITING_FOR_GANG, message)
            self._state.report(entry.ref, ("Normal", WAITING_FOR_GANG, "Scheduling", message))

    def _refuse(self, entry: QueuedPod) -> None:
        """Find out why a pod fits nowhere, and evict pods for it or mark it unschedulable."""
        self.refused += 1
        failure = self.selection.fit_failure(entry, self._state.evictions)
        actions = self._extenders.consult_on_evictions(entry, failure)
        if actions is None:
            self._mark_unschedulable(entry, failure)
        else:
            self._apply(actions)

    def _mark_unschedulable(self, entry: QueuedPod, failure: FitFailure) -> None:
        """Tell a pod why it fits nowhere, evict its victims, and let it wait for a change."""
        state = self._state
        if failure.filtered.failed is not None:
            self._fail(entry, failure.message)
            return
        if message := self.selection.sample_message(entry, failure):
            # It fits somewhere, but drew other nodes: it needs another draw, not a change.
            self._fail(entry, message, "Unschedulable")
            return
        # If a node is left that was not chosen, it is not known what the pod waits for: any change may help.
        plugins = () if failure.filtered.feasible.any() else failure.diagnosis.plugins
        self._add_unschedulable(entry, failure.message, plugins)
        found = failure.post_filter
        if found is not None and found.released is not None:
            meta = found.released.metadata
            is_extended = meta.annotations.get(CLAIM_ANNOTATION) == "true"
            state.effects.append(ReleaseClaim(entry.ref, meta.name, meta.uid, is_extended))
        state.metrics.preemptions += found is not None and bool(found.code)
        if found is not None and found.node_row is not None:
            going = all_going(found.victims, entry.priority, self._evicted_together)
            if going is not None:
                victims = [victim for victim in going if not victim.leaving]
                self.preemptor.preempt(entry, victims, state.cluster.nodes.names[found.node_row])
        elif found is not None and found.withdraws:
            self.preemptor.withdraw(entry.key)
        state.queue.add_unschedulable(entry, state.now)

    def _evicted_together(self, victim: BoundPod, priority: int) -> Sequence[BoundPod] | None:
        return evicted_together(victim, priority, self._state.gangs, self._state.cluster)

    def _add_unschedulable(self, entry: QueuedPod, message: str, plugins: tuple[str, ...]) -> None:
        entry.refusals += 1
        entry.errors = 0
        entry.unschedulable_plugins = plugins
        entry.message = message
        self._report_failure(entry, "Unschedulable", message)

    def _retry(self, entry: QueuedPod) -> None:
        if entry.errors >= RACES:
            self._fail(entry, MOVED_ON)
            return
        entry.errors += 1
        self._state.queue.wake(entry, self._state.now, at_once=True)

    def _abandon(self, bind: AbandonedBind | None) -> None:
        if bind is not None:
            self._fail(bind.entry, bind.problem, took_ms=bind.took_ms)

    def _fail(
        self, entry: QueuedPod, problem: str, reason: str = "SchedulerError", *, took_ms: Millis | None = None
    ) -> None:
        """Back off, and try again whatever changes."""
        entry.errors += 1
        entry.message = problem
        self._report_failure(entry, reason, problem, took_ms)
        self._state.queue.back_off(entry, self._state.now)

    def _report_failure(self, entry: QueuedPod, reason: str, message: str, took_ms: Millis | None = None) -> None:
        attempt = FailedAttempt(entry.pod.spec.scheduler_name, RESULTS[reason], took_ms)
        self._state.metrics.failed_attempts.append(attempt)
        self._report_unscheduled(entry, reason, message)
        self._state.report(entry.ref, ("Warning", "FailedScheduling", "Scheduling", message))

    def _report_unscheduled(self, entry: QueuedPod, reason: str, message: str) -> None:
        self._state.effects.append(SetCondition(entry.ref, "PodScheduled", "False", reason, message))

    # -- nodes and pods that come, change and leave ---------------------------------------------------------------

    def node_changed(self, before: Node | None, after: Node) -> None:
        self._apply(self.gangs.node_changed(before, after))

    def node_gone(self, name: str) -> None:
        cluster = self._state.cluster
        row = cluster.nodes.rows.get(name)
        node = None if row is None else cluster.nodes.objects[row]
        if row is not None and node is not None:
            kinds = [cluster.pods.kind(pod_row) for pod_row in cluster.nodes.pods[row]]
            cluster.remove_node(name)
            self._state.events.extend(node_left(node, kinds, cluster.objects))
        for nomination in self._state.nominations.on(name):
            self.preemptor.withdraw(nomination.ref.key)

    def confirm(self, key: str, node: str) -> None:
        """The pod was seen bound, by us or by another scheduler: it waits no longer."""
        self._binding.confirm(key, node)
        self._forget(key, node)

    def leave(self, key: str) -> None:
        """A waiting pod is gone, whatever state it was in."""
        reservation = self._state.reservations.get(key)
        if reservation is not None:
            self._binding.release(reservation)
        self._forget(key, "")

    def _forget(self, key: str, node: str) -> None:
        self._state.end_nomination(key, taken=node)
        self._extenders.forget(key)
        self._state.queue.remove(key)

    def bound_gone(self, ref: PodRef) -> None:
        """A pod that was bound is gone or has finished."""
        self._binding.bound_gone(ref)
        self._state.evictions.pop(ref.uid, None)

    # -- timers --------------------------------------------------------------------------------------------------

    def next_timer_ms(self) -> Millis | None:
        moments = (self._state.timers.next_ms(), self._binding.next_timeout_ms())
        return min((moment for moment in moments if moment is not None), default=None)

    def due_timers(self) -> None:
        for abandoned in self._binding.time_out():
            self._abandon(abandoned)
        while (timer := self._state.timers.pop(self._state.now)) is not None:
            match timer.kind:
                case "bind" | "volumes" | "claims":
                    self._abandon(self._binding.timer(timer))
                case "devices":
                    self._binding.held_too_long(timer.key, timer.version)
                case "evict":
                    self.preemptor.evict_again(timer.key)
                case "extender":
                    self._apply_guarded(self._extenders.timed_out(timer.version))
                case "gang":
                    self.gangs.timer(timer.key)
                case "nomination":
                    self.preemptor.time_out(timer.key, timer.version)
