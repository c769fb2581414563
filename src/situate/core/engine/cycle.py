"""One pod's way through the scheduler: chosen a node, counted there, bound; or told why not, and parked.

Binds and evictions are effects: many are under way at once, and none holds up the next decision. Each is tried again
when it fails, with backoff and up to a limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Final, Literal, TypeAlias, assert_never

from situate.core.changes import (
    BindDone,
    BindFailed,
    EvictDone,
    EvictFailed,
    ExtenderSaid,
    Millis,
    PodRef,
    VolumesBound,
    VolumesFailed,
)
from situate.core.config.types import Extender
from situate.core.contract import WakeEvent
from situate.core.effects import (
    AskExtender,
    Bind,
    BindVolumes,
    Effect,
    Evict,
    Nominate,
    Report,
    SetCondition,
    SetGroupCondition,
)
from situate.core.engine.assumed_volumes import AssumedVolumes
from situate.core.engine.extenders import ExtenderScheduling
from situate.core.engine.framework import Framework
from situate.core.engine.gang_scheduling import GangScheduling
from situate.core.engine.in_flight import Eviction, Nominations, Reservation
from situate.core.engine.metrics import BindingResult as Answered
from situate.core.engine.metrics import EngineMetrics, FailedAttempt, Result
from situate.core.engine.nominated_by_priority import NominatedByPriority
from situate.core.engine.wake_events import node_left, object_events, pod_came, pod_left, promise_ended
from situate.core.place.bind_annotations import BindAnnotations, bind_annotations, with_annotations
from situate.core.place.filtering import fits_at
from situate.core.place.placer import Placer
from situate.core.place.sampling import draw_key, sample, sample_message
from situate.core.place.selecting import NOWHERE
from situate.core.place.stopwatch import NO_STOPWATCH, POST_FILTER, RESERVE, Stopwatch
from situate.core.place.verdict_cache import VerdictCache
from situate.core.plugins.support.errors import PluginError
from situate.core.plugins.volume_binding import NO_VOLUMES_TO_BIND
from situate.core.plugins.volume_binding import VolumeDecision as VolumesDecided
from situate.core.plugins.volume_binding import decide as decide_volumes
from situate.core.preempt import FitFailureFinder
from situate.core.preempt.fit_failure import FitFailure
from situate.core.preempt.lower_priority import LowerTables
from situate.core.preempt.nominated import NominatedPods
from situate.core.queue.queue import UNSCHEDULABLE_LIMIT_MS, Backoff, SchedulingQueue
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import Mask
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

BIND_TRIES: Final = 5
"""How often one bind is asked for before the pod is decided anew."""
EVICT_TRIES: Final = 5
RETRY_MS: Final = 500
"""How long after a failure a bind or an eviction is tried again; doubled each time."""
BIND_ANSWER_MS: Final = 30_000
"""How long an answer to a bind is waited for. Then the bind counts as failed, and is asked for again."""
VOLUMES_ANSWER_MS: Final = 30_000
"""How long after its own time limit, bindTimeoutSeconds, making volumes ready counts as failed without an answer."""
NOTE_BYTES: Final = 1_024
"""An event's note is cut to this, as kube-scheduler cuts it."""
CUT: Final = " ..."

BindingResult: TypeAlias = BindDone | BindFailed | VolumesBound | VolumesFailed | EvictDone | EvictFailed | ExtenderSaid
"""What comes back of an effect."""

EventTexts: TypeAlias = tuple[Literal["Normal", "Warning"], str, str, str]
"""The type, reason, action and note of an event."""

TimerKind = Literal["bind", "evict", "extender", "gang", "nomination", "volumes"]

RESULTS: Final[dict[str, Result]] = {"Unschedulable": "unschedulable", "SchedulerError": "error"}
"""What the reason in a pod's condition says of the attempt that it is about; others are about none."""

NO_BIND_ANSWER: Final = f"no answer to a bind within {BIND_ANSWER_MS // 1_000} s"
NO_VOLUMES_ANSWER: Final = "no answer to binding volumes in time"
NO_VOLUMES: Final = "the volumes that the pod was to get on node {} were taken meanwhile"


class Cycle:
    """Decides, and keeps the ledger of what was decided. `begin` and `end` frame one step."""

    def __init__(
        self,
        cluster: Cluster,
        profiles: Mapping[str, Framework],
        backoff: Backoff,
        extenders: Sequence[Extender] = (),
        *,
        unschedulable_limit_ms: Millis = UNSCHEDULABLE_LIMIT_MS,
        metrics: EngineMetrics | None = None,
        stopwatch: Stopwatch = NO_STOPWATCH,
    ) -> None:
        self.cluster = cluster
        self.metrics = metrics or EngineMetrics()
        self._stopwatch = stopwatch
        self.queue = SchedulingQueue(backoff, self.metrics.incoming, unschedulable_limit_ms)
        self.events: list[WakeEvent] = []
        """What happened and parked pods have not been told of yet."""
        self.heard = 0
        """How much happened that they have been told of."""
        self.reservations: dict[str, Reservation] = {}
        self.evictions: dict[str, Eviction] = {}
        """By the victim's uid."""
        self.nominations = Nominations()
        self.assumed = AssumedVolumes(cluster)
        self.witness: Callable[[QueuedPod, int], None] | None = None
        """Told of every choice before anything is done about it: the pod, and the row or NOWHERE. May only look."""
        self._profiles = profiles
        self._extending = ExtenderScheduling(self, extenders)
        self.gangs = GangScheduling(self)
        self._placers = {
            name: Placer(cluster, deciding.profile, stopwatch=stopwatch) for name, deciding in profiles.items()
        }
        lower = LowerTables(cluster)
        self._remedies = {
            name: FitFailureFinder(cluster, deciding.profile, deciding.preemption, lower)
            for name, deciding in profiles.items()
        }
        self._promises = NominatedByPriority(cluster, self.nominations)
        self._timers: list[tuple[Millis, int, TimerKind, str, int]] = []
        self._timer_count = 0
        self._unanswered: deque[tuple[Millis, Reservation, int]] = deque()
        """The binds that were asked for, in order: when they count as failed, for whom, and the attempt."""
        self._effects: list[Effect] = []
        self._now: Millis = 0

    def begin(self, now: Millis) -> None:
        self._now = now
        self.metrics.begin()

    def end(self) -> list[Effect]:
        self.queue.count_added()
        effects, self._effects = self._effects, []
        return effects

    def answered(self, answer: BindingResult) -> None:
        """Somebody carried an effect out, or could not."""
        match answer:
            case BindDone(ref, attempt):
                self._bind_done(ref, attempt)
            case BindFailed(ref, attempt, problem, final):
                self._bind_failed(ref, attempt, problem, final=final)
            case VolumesBound(ref, attempt):
                self._volumes_bound(ref, attempt)
            case VolumesFailed(ref, attempt, problem):
                self._bind_failed(ref, attempt, problem, final=True)
            case EvictDone():
                pass  # it was accepted: the victim will be seen to leave
            case EvictFailed(ref, problem):
                self._evict_failed(ref, problem)
            case ExtenderSaid():
                self._extending.answered(answer)
            case _:
                assert_never(answer)

    # -- deciding ------------------------------------------------------------------------------------------------

    def decide(self, entry: QueuedPod) -> None:
        """Place a pod, or preempt for it, or park it with the reason."""
        if entry.pod.metadata.deletion_timestamp is not None:
            self._report(entry, "Warning", "FailedScheduling", "Scheduling", f"skip schedule deleting pod: {entry.key}")
            self.leave(entry.key)
            return
        if self.gangs.decides(entry):
            return
        entry.attempts += 1
        profile = entry.pod.spec.scheduler_name
        self._stopwatch.begin(profile)
        try:
            if self._extending.concern(entry.kind):
                self._extending.consult(entry)
                return
            row = self.choose(entry)
            if self.witness is not None:
                self.witness(entry, row)
            if row != NOWHERE:
                self._reserve(entry, row)
                self._stopwatch.lap(RESERVE)
            else:
                self.refuse(entry)
                self._stopwatch.lap(POST_FILTER, bool(entry.nominated))
        except PluginError as error:
            self._failed(entry, str(error))

    def count_attempts(self, profile: str, pods: int) -> None:
        """These are decided together."""
        self._stopwatch.begin(profile, pods)

    def choose(self, entry: QueuedPod) -> int:
        """The row of the node that a waiting pod would get now, or NOWHERE. Carries nothing out.

        If its bind to a node was rejected, it gets another, where it fits one: the same plan would be rejected again.
        """
        if entry.rejected and (avoided := self.cluster.nodes.rows.get(entry.rejected)) is not None:
            row = self._choose_but(entry, (avoided,))
            if row != NOWHERE:
                return row
        return self._choose_but(entry, ())

    def _choose_but(self, entry: QueuedPod, avoided: tuple[int, ...]) -> int:
        placer = self._placers[entry.pod.spec.scheduler_name]
        key = _draw_key(entry) if placer.samples else 0
        if not len(self.nominations):
            return placer.choose(entry.kind, avoided, key)
        nominated = self.nominations.get(entry.key)
        if nominated is not None:
            row = self.cluster.nodes.rows.get(nominated.node, NOWHERE)
            if row not in avoided and self.fits_now(entry, row):
                return row
        excluded = dict.fromkeys(avoided)
        if placer.samples:
            excluded |= self.held(entry)
        while True:
            row = placer.choose(entry.kind, excluded, key)
            if row == NOWHERE or self._fits_beside_nominees(entry, row):
                return row
            excluded[row] = None

    def held(self, entry: QueuedPod) -> dict[int, None]:
        """The rows that others were promised and that this pod would not fit beside them on."""
        rows = [self.cluster.nodes.rows.get(node, NOWHERE) for node in self.nominations.nodes]
        return {row: None for row in rows if row != NOWHERE and not self._fits_beside_nominees(entry, row)}

    def _fits_beside_nominees(self, entry: QueuedPod, row: int) -> bool:
        """Whether the pod also fits with the pods that were promised this node, as if they were there already."""
        nominees = self.nominations.weighing_on(self.cluster.nodes.names[row], entry)
        return not nominees or self._fits(entry, row, [(one.kind, row) for one in nominees])

    def _fits(self, entry: QueuedPod, row: int, beside: Sequence[tuple[PodClass, int]]) -> bool:
        profile = self._profiles[entry.pod.spec.scheduler_name].profile
        return fits_at(profile.filters, entry.kind, View(self.cluster).plus(beside), row)

    # -- a node was found ----------------------------------------------------------------------------------------

    def _reserve(self, entry: QueuedPod, row: int, said: BindAnnotations | None = None) -> None:
        """Count the pod on its node from now on, and ask for the bind; unless its volumes cannot be had there.

        `said`: what is to be written on it, where that was decided with the node.
        """
        node = self.cluster.nodes.names[row]
        volumes = self.volumes_at(entry, row)
        if volumes is None:
            self._failed(entry, NO_VOLUMES.format(node))
            return
        profile = self._profiles[entry.pod.spec.scheduler_name].profile
        if said is None:
            said = bind_annotations(profile, entry.kind, View(self.cluster), row) if profile.assigners else ()
        self._unpromise(entry.key, taken=node)
        self.cluster.put(with_annotations(entry.pod, said), entry.kind, row)
        self.events.append(pod_came(entry.kind, node, self.cluster.objects))
        self.queue.take(entry, QueueState.RESERVED)
        entry.rejected = ""
        reservation = Reservation(entry, node, entry.attempts, self._now, annotations=said)
        self.reservations[entry.key] = reservation
        if not volumes.bindings and not volumes.provisions:
            self._bind(reservation)
            return
        reservation.volumes_pending, reservation.asked_ms = True, self._now
        self.assumed.take(entry.key, volumes.bindings)
        self._effects.append(BindVolumes(entry.ref, node, entry.attempts, volumes.bindings, volumes.provisions))
        patience_ms = self.framework_of(entry).volumes_ms + VOLUMES_ANSWER_MS
        reservation.timer = self._timer(patience_ms, "volumes", entry.key)

    def volumes_at(self, entry: QueuedPod, row: int) -> VolumesDecided | None:
        """What is to be done about a pod's volumes if it goes to a node; None if they cannot be had there."""
        if not entry.kind.holds_volumes or not self.framework_of(entry).binds_volumes:
            return NO_VOLUMES_TO_BIND
        return decide_volumes(entry.kind, View(self.cluster), row)

    def _bind(self, reservation: Reservation) -> None:
        """Ask for a bind. Asking twice is harmless: (pod, attempt) is bound once."""
        entry = reservation.entry
        reservation.asked, reservation.asked_ms = True, self._now
        self._unanswered.append((self._now + BIND_ANSWER_MS, reservation, reservation.attempt))
        binder = None if reservation.binder_ignored else self._extending.binder(entry.kind)
        self._effects.append(Bind(entry.ref, reservation.node, reservation.attempt, binder, reservation.annotations))

    def _volumes_bound(self, ref: PodRef, attempt: int) -> None:
        reservation = self._current(ref, attempt)
        if reservation is not None and reservation.volumes_pending:
            reservation.volumes_pending = False
            self._count_answer(reservation, "PreBind", success=True)
            self._bind(reservation)

    def _bind_done(self, ref: PodRef, attempt: int) -> None:
        reservation = self._current(ref, attempt)
        if reservation is not None and not reservation.done:
            reservation.done, reservation.asked = True, False
            self.gangs.touch(ref.key)
            self._scheduled(reservation)

    def _scheduled(self, reservation: Reservation) -> None:
        """Its bind was carried out."""
        entry = reservation.entry
        self.metrics.bound.append(reservation)
        note = f"Successfully assigned {entry.key} to {reservation.node}"
        self._report(entry, "Normal", "Scheduled", "Binding", note)

    def _count_answer(self, reservation: Reservation, point: Literal["PreBind", "Bind"], *, success: bool) -> None:
        profile = reservation.entry.pod.spec.scheduler_name
        self.metrics.binding_results.append(Answered(point, profile, self._now - reservation.asked_ms, success))

    def _bind_failed(self, ref: PodRef, attempt: int, problem: str, *, final: bool, silent: bool = False) -> None:
        """Ask again after a while; or, if that cannot help or has been done often enough, decide anew.

        `silent`: nobody said so. Whoever may still have it under way need not begin anew: it is the same attempt.
        """
        reservation = self._current(ref, attempt)
        if reservation is None or reservation.done or not (reservation.asked or reservation.volumes_pending):
            return  # old news, or told twice: it is to be asked for again already
        reservation.asked = False
        self._count_answer(reservation, "PreBind" if reservation.volumes_pending else "Bind", success=False)
        if not reservation.volumes_pending and self._ignores_binder(reservation):
            self._ask_again(reservation, 0, anew=True)
            return
        if not final and reservation.tries < BIND_TRIES:
            self._ask_again(reservation, RETRY_MS << (reservation.tries - 1), anew=not silent)
            reservation.tries += 1
            self.gangs.touch(ref.key)
            return
        entry = reservation.entry
        if not reservation.volumes_pending:
            entry.rejected = reservation.node
        self._release(reservation)
        self._failed(entry, problem, took_ms=self._now - reservation.since_ms)

    def _ask_again(self, reservation: Reservation, after_ms: Millis, *, anew: bool) -> None:
        """`anew`: as another attempt, so that whatever is still said of the one that failed is old news."""
        entry = reservation.entry
        if anew:
            entry.attempts += 1
            entry.retries += 1
            reservation.attempt = entry.attempts
        reservation.timer = self._timer(after_ms, "bind", entry.key)

    def _ignores_binder(self, reservation: Reservation) -> bool:
        """Whether it was an extender that could not bind the pod, and it may be ignored: from now on it is."""
        if reservation.binder_ignored:
            return False
        binder = self._extending.binder(reservation.entry.kind)
        reservation.binder_ignored = binder is not None and self._extending.may_ignore(binder)
        return reservation.binder_ignored

    def _current(self, ref: PodRef, attempt: int) -> Reservation | None:
        """The reservation that an answer is about, unless the answer is old news."""
        found = self.reservations.get(ref.key)
        if found is None or found.entry.ref.uid != ref.uid or found.attempt != attempt:
            return None
        return found

    def _release(self, reservation: Reservation) -> None:
        """Uncount a pod whose bind came to nothing."""
        key = reservation.entry.key
        del self.reservations[key]
        self.gangs.touch(key)
        if reservation.volumes_pending:  # else they are bound, and will be seen to be
            self.give_back_volumes(key)
        counted = self.cluster.counted(key)
        if self.cluster.remove_pod(key) and counted is not None:
            self.events.append(pod_left(counted[0], counted[1], self.cluster.objects))

    def give_back_volumes(self, key: str) -> None:
        """The volumes that a pod was given are free again, but for those that were seen to be its claims'."""
        for taken, free in self.assumed.give_back(key):
            self.events.extend(object_events(taken, free, self.cluster.objects))

    def confirm(self, key: str, node: str) -> None:
        """The pod was seen bound, by us or by somebody else: it waits no longer."""
        reservation = self.reservations.pop(key, None)
        if reservation is not None and reservation.asked and reservation.node == node:
            self._scheduled(reservation)  # the answer to the bind will come later, and be old news
        self._unpromise(key, taken=node)
        self._extending.forget(key)
        self.queue.remove(key)

    # -- no node was found ---------------------------------------------------------------------------------------

    def refuse(self, entry: QueuedPod) -> None:
        """See whom to evict; tell the pod why it waits; park it until something changes."""
        found = self.find(entry)
        if not self._extending.has_say_on_room(entry, found):
            self.park(entry, found)

    def find(self, entry: QueuedPod) -> FitFailure:
        """Why a pod fits nowhere now, and what can be done."""
        own = self.nominations.get(entry.key)
        return self._remedies[entry.pod.spec.scheduler_name].find(
            entry.kind,
            self._promises.seen_by(entry),
            nominated_node="" if own is None else own.node,
            evicting=self.evictions,
        )

    def park(self, entry: QueuedPod, found: FitFailure) -> None:
        """Tell a pod why it waits, do what can be done, and park it until something changes."""
        if found.filtered.failed is not None:
            self._failed(entry, found.message)
            return
        feasible = bool(found.filtered.feasible.any())
        drew = self._profiles[entry.pod.spec.scheduler_name].profile.sampling.nodes
        if drew and feasible:
            # It fits somewhere, and drew other nodes: no change has to come for it, only another draw.
            entry.errors += 1
            entry.message = sample_message(found.diagnosis, sample(View(self.cluster), drew, _draw_key(entry)))
            self._told(entry, "Unschedulable", entry.message)
            self.queue.back_off(entry, self._now)
            return
        entry.refusals += 1
        entry.errors = 0
        # If a node is left that was not chosen, it is not known what the pod waits for: anything may help.
        entry.unschedulable_plugins = () if feasible else found.diagnosis.plugins
        entry.message = found.message
        self._told(entry, "Unschedulable", entry.message)
        result = found.post_filter
        self.metrics.preemptions += result is not None and bool(result.code)
        if result is not None and result.node_row is not None:
            going = self.gangs.all_going(result.victims, entry.priority)
            if going is not None:
                self._preempt(entry, going, self.cluster.nodes.names[result.node_row])
        elif result is not None and result.withdraws:
            self._withdraw(entry.key)
        self.queue.add_unschedulable(entry, self._now)

    def _preempt(self, entry: QueuedPod, victims: Sequence[BoundPod], node: str) -> None:
        """Promise the node to the pod, and ask the victims to leave, each once."""
        self.promise(entry, node)
        self.metrics.victims.append(len(victims))
        message = f"{entry.pod.spec.scheduler_name}: preempting to accommodate a higher priority pod"
        for victim in victims:
            ref = PodRef(victim.namespace, victim.name, victim.uid)
            at = self.cluster.nodes.names[victim.node_row]
            note = f"Preempted by pod {entry.ref.uid} on node {at}"
            self.evict(ref, at, entry.ref, message, ("Normal", "Preempted", "Preempting", note))

    def promise(self, entry: QueuedPod, node: str) -> None:
        """Hold a node for a pod until its victims are gone. Promises to pods that it outranks are taken back."""
        for other in self.nominations.on(node):
            if other.kind.priority < entry.priority:
                self._withdraw(other.ref.key)
        self._unpromise(entry.key, taken=node)
        made = self.nominations.add(entry, node, self._now)
        entry.nominated = node
        self._timer(made.until_ms - self._now, "nomination", entry.key, made.version)
        self._effects.append(Nominate(entry.ref, node))

    def evict(self, victim: PodRef, node: str, by: PodRef, message: str, event: EventTexts) -> None:
        """Ask a victim to leave, once."""
        if victim.uid in self.evictions:
            return
        self.evictions[victim.uid] = Eviction(victim, node, by, message)
        self._effects.append(Evict(victim, node, by, message))
        kind, reason, action, note = event
        self._effects.append(Report(victim, kind, reason, action, cut(note), related=by))

    def _withdraw(self, key: str, *, in_vain: bool = False) -> None:
        """Take back the promise of a node; a gang that is not placed keeps none without the others.

        `in_vain`: it was not kept in time. The pod lets others go first, or it would be promised the same at once.
        """
        for mate in self.gangs.mates(key):
            self.withdraw_one(mate, in_vain=in_vain)

    def withdraw_one(self, key: str, *, in_vain: bool = False) -> None:
        """Whoever had the promise may fit elsewhere by now."""
        if not self._unpromise(key):
            return
        entry = self.queue.get(key)
        if entry is None:
            return
        entry.nominated = ""
        self._effects.append(Nominate(entry.ref, ""))
        if entry.state is QueueState.UNSCHEDULABLE and in_vain:
            self.queue.take(entry, QueueState.IN_FLIGHT)
            entry.errors = entry.refusals
            self.queue.back_off(entry, self._now)
        elif entry.state is QueueState.UNSCHEDULABLE:
            self.queue.wake(entry, self._now)

    def _unpromise(self, key: str, *, taken: str = "") -> bool:
        """No node is held for the pod any more; whether one was. Others may have it, if it is not now taken."""
        nominated = self.nominations.remove(key)
        if nominated is not None and nominated.node != taken:
            self.events.append(promise_ended(nominated.kind, nominated.node, self.cluster.objects))
        return nominated is not None

    def evicted(self, ref: PodRef) -> None:
        self.evictions.pop(ref.uid, None)

    def _evict_failed(self, ref: PodRef, problem: str) -> None:
        eviction = self.evictions.get(ref.uid)
        if eviction is None:
            return
        if eviction.tries >= EVICT_TRIES:
            del self.evictions[ref.uid]
            self._withdraw(eviction.preemptor.key, in_vain=True)
            return
        self._timer(RETRY_MS << (eviction.tries - 1), "evict", ref.uid, eviction.tries)
        eviction.tries += 1

    def _evict_again(self, uid: str) -> None:
        """Ask a victim once more; not one that is leaving by now, nor one whose bind came to nothing meanwhile.

        Such a one may have got another node since, by us or by another scheduler: there it is nobody's victim.
        """
        eviction = self.evictions.get(uid)
        if eviction is None:
            return
        counted = self.cluster.counted(eviction.victim.key)
        if counted is None or counted[1] != eviction.node:
            del self.evictions[uid]
        elif not counted[2]:
            self._effects.append(Evict(eviction.victim, eviction.node, eviction.preemptor, eviction.message))

    def _failed(self, entry: QueuedPod, problem: str, *, took_ms: Millis | None = None) -> None:
        """Something went wrong that is not about room: try again after a while."""
        entry.errors += 1
        entry.message = problem
        self._told(entry, "SchedulerError", problem, took_ms=took_ms)
        self.queue.back_off(entry, self._now)

    def _told(self, entry: QueuedPod, reason: str, message: str, *, took_ms: Millis | None = None) -> None:
        self._count_refusal(entry, reason, took_ms)
        self._effects.append(SetCondition(entry.ref, "PodScheduled", "False", reason, message))
        self._report(entry, "Warning", "FailedScheduling", "Scheduling", message)

    def _count_refusal(self, entry: QueuedPod, reason: str, took_ms: Millis | None = None) -> None:
        result = RESULTS.get(reason)
        if result is not None:
            self.metrics.failed_attempts.append(FailedAttempt(entry.pod.spec.scheduler_name, result, took_ms))

    def _report(
        self, entry: QueuedPod, kind: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> None:
        self._effects.append(Report(entry.ref, kind, reason, action, cut(note)))

    # -- what extenders and gangs ask for ------------------------------------------------------------------------

    def fits_now(self, entry: QueuedPod, row: int) -> bool:
        """Whether a pod fits on a node, beside those who were promised it and without them."""
        return row != NOWHERE and self._fits_beside_nominees(entry, row) and self._fits(entry, row, ())

    def looked_at(self, entry: QueuedPod) -> Mask:
        """The rows that a pod fits, of those that are looked at for it."""
        placer = self._placers[entry.pod.spec.scheduler_name]
        return placer.looked_at(entry.kind, self.held(entry), _draw_key(entry) if placer.samples else 0)

    def promised_to_others(self, entry: QueuedPod) -> NominatedPods:
        return self._promises.seen_by(entry)

    def ask(self, effect: AskExtender, within_ms: Millis) -> None:
        self._effects.append(effect)
        self._timer(within_ms, "extender", "", effect.ask)

    def failed(self, entry: QueuedPod, problem: str) -> None:
        self._failed(entry, problem)

    def no_room(self, entry: QueuedPod, message: str) -> None:
        """It fits nowhere, and making room failed: try again after a while, whatever changes."""
        entry.errors += 1
        entry.message = message
        self._told(entry, "Unschedulable", message)
        self.queue.back_off(entry, self._now)

    @property
    def now(self) -> Millis:
        return self._now

    def framework_of(self, entry: QueuedPod) -> Framework:
        return self._profiles[entry.pod.spec.scheduler_name]

    def verdicts_for(self, entry: QueuedPod) -> VerdictCache | None:
        """What is kept of the answers for a pod's class: for a witness to look at."""
        return self._placers[entry.pod.spec.scheduler_name].verdicts(entry.kind)

    def asks_extenders(self, pod: PodClass) -> bool:
        return self._extending.concern(pod)

    def reserve(self, entry: QueuedPod, row: int, said: BindAnnotations | None = None) -> None:
        self._reserve(entry, row, said)

    def release(self, reservation: Reservation) -> None:
        self._release(reservation)

    def tell(
        self, entry: QueuedPod, condition: str, kind: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Set the pod's condition, with this reason, and report an event with another."""
        self._count_refusal(entry, condition)
        self._effects.append(SetCondition(entry.ref, "PodScheduled", "False", condition, message))
        self._report(entry, kind, reason, "Scheduling", message)

    def tell_group(
        self, namespace: str, name: str, status: Literal["True", "False"], reason: str, message: str
    ) -> None:
        self._effects.append(SetGroupCondition(namespace, name, status, reason, message))

    def remind(self, after_ms: Millis, gang_id: str) -> None:
        """Have a gang looked at again after a while."""
        self._timer(after_ms, "gang", gang_id, 0)

    # -- nodes and pods that leave -------------------------------------------------------------------------------

    def known_uid(self, key: str) -> str | None:
        """The uid of the pod that we know under this name, waiting or bound."""
        entry = self.queue.get(key)
        return entry.ref.uid if entry is not None else self.cluster.uid_of(key)

    def leave(self, key: str) -> None:
        """A waiting pod is no more, wherever it was."""
        reservation = self.reservations.get(key)
        if reservation is not None:
            self._release(reservation)
        self._unpromise(key)
        self._extending.forget(key)
        self.queue.remove(key)

    def node_gone(self, name: str) -> None:
        row = self.cluster.nodes.rows.get(name)
        node = None if row is None else self.cluster.nodes.objects[row]
        if row is not None and node is not None:
            kinds = [self.cluster.pods.kind(pod_row) for pod_row in self.cluster.nodes.pods[row]]
            self.cluster.remove_node(name)
            self.events.extend(node_left(node, kinds, self.cluster.objects))
        for nominated in self.nominations.on(name):
            self._withdraw(nominated.ref.key)

    def restate(self, entry: QueuedPod) -> None:
        """A waiting pod changed: a node that was promised to it is held for what it is now."""
        nominated = self.nominations.get(entry.key)
        if nominated is None or nominated.kind is entry.kind:
            return
        self._unpromise(entry.key)
        made = self.nominations.add(entry, nominated.node, self._now)
        made.until_ms = nominated.until_ms
        self._timer(made.until_ms - self._now, "nomination", entry.key, made.version)

    def renominate(self, entry: QueuedPod, node: str) -> None:
        """The pod came with a promise that an earlier scheduler made."""
        made = self.nominations.add(entry, node, self._now)
        entry.nominated = node
        self._timer(made.until_ms - self._now, "nomination", entry.key, made.version)

    def follow(self, entry: QueuedPod, node: str) -> None:
        """Whoever leads made the pod a promise, or took it back."""
        self._unpromise(entry.key, taken=node)
        entry.nominated = ""
        if node:
            self.renominate(entry, node)

    # -- timers --------------------------------------------------------------------------------------------------

    def _timer(self, after_ms: Millis, kind: TimerKind, key: str, version: int = 0) -> int:
        """Its number, which no other timer has."""
        self._timer_count += 1
        heappush(self._timers, (self._now + after_ms, self._timer_count, kind, key, version))
        return self._timer_count

    def next_timer_ms(self) -> Millis | None:
        moments = [queue[0][0] for queue in (self._timers, self._unanswered) if queue]
        return min(moments, default=None)

    def _give_up_waiting(self) -> None:
        """Binds whose answer does not come count as failed; those that were answered are forgotten here."""
        while self._unanswered:
            until_ms, reservation, attempt = self._unanswered[0]
            entry = reservation.entry
            waited_for = self.reservations.get(entry.key) is reservation
            if waited_for and reservation.asked and reservation.attempt == attempt:
                if until_ms > self._now:
                    return
                self._bind_failed(entry.ref, attempt, NO_BIND_ANSWER, final=False, silent=True)
            self._unanswered.popleft()

    def due_timers(self) -> None:
        self._give_up_waiting()
        while self._timers and self._timers[0][0] <= self._now:
            _, number, kind, key, version = heappop(self._timers)
            match kind:
                case "bind":
                    reservation = self.reservations.get(key)
                    if reservation is not None and reservation.timer == number and not reservation.done:
                        self._bind(reservation)
                case "evict":
                    self._evict_again(key)
                case "extender":
                    self._extending.timed_out(version)
                case "gang":
                    self.gangs.timer(key)
                case "volumes":
                    reservation = self.reservations.get(key)
                    if reservation is not None and reservation.timer == number and reservation.volumes_pending:
                        self._bind_failed(reservation.entry.ref, reservation.attempt, NO_VOLUMES_ANSWER, final=True)
                case "nomination":
                    nominated = self.nominations.get(key)
                    if nominated is not None and nominated.version == version:
                        self._withdraw(key, in_vain=True)


def _draw_key(entry: QueuedPod) -> int:
    return draw_key(entry.ref.uid or entry.key, entry.attempts)


def cut(note: str) -> str:
    """A note that fits in an event."""
    raw = note.encode()
    if len(raw) <= NOTE_BYTES:
        return note
    return raw[: NOTE_BYTES - len(CUT)].decode(errors="ignore") + CUT
