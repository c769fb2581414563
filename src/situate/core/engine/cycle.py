"""One pod's way through the scheduler: chosen a node, counted there, bound; or told why not, and parked.

Binds and evictions are effects: many are under way at once, and none holds up the next decision. Each is tried again
when it fails, with backoff and up to a limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from situate.core.contract import Wake
from situate.core.effects import Bind, BindVolumes, Effect, Evict, Nominate, Report, SetCondition
from situate.core.engine.happenings import pod_left
from situate.core.engine.ledger import Eviction, Nominations, Reservation
from situate.core.engine.profile import Deciding
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import fits_at, run_filters
from situate.core.place.placer import Placer
from situate.core.place.selecting import NOWHERE
from situate.core.plugins.faults import PluginError
from situate.core.plugins.volume_binding import decide as decide_volumes
from situate.core.preempt import Remedy, post_filter
from situate.core.queue.queue import Backoff, SchedulingQueue
from situate.core.queue.waiting import Place, Waiting
from situate.core.queue.waking import WakeEvent
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

BIND_TRIES: Final = 5
"""How often one bind is asked for before the pod is decided anew."""
EVICT_TRIES: Final = 5
RETRY_MS: Final = 500
"""How long after a failure a bind or an eviction is tried again; doubled each time."""
NOTE_BYTES: Final = 1_024
"""An event's note is cut to this, as kube-scheduler cuts it."""
CUT: Final = " ..."

Answer: TypeAlias = BindDone | BindFailed | VolumesBound | VolumesFailed | EvictDone | EvictFailed | ExtenderSaid
"""What comes back of an effect."""

TimerKind = Literal["bind", "evict", "nomination"]


class Cycle:
    """Decides, and keeps the ledger of what was decided. `begin` and `end` frame one step."""

    def __init__(self, cluster: Cluster, profiles: Mapping[str, Deciding], backoff: Backoff) -> None:
        self.cluster = cluster
        self.queue = SchedulingQueue(backoff)
        self.events: list[WakeEvent] = []
        """What happened and parked pods have not been told of yet."""
        self.reservations: dict[str, Reservation] = {}
        self.evictions: dict[str, Eviction] = {}
        """By the victim's uid."""
        self.nominations = Nominations()
        self._profiles = profiles
        self._placers = {name: Placer(cluster, deciding.profile) for name, deciding in profiles.items()}
        self._timers: list[tuple[Millis, int, TimerKind, str, int]] = []
        self._timer_count = 0
        self._effects: list[Effect] = []
        self._now: Millis = 0

    def begin(self, now: Millis) -> None:
        self._now = now

    def end(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def answered(self, answer: Answer) -> None:
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
                pass  # extenders are not asked yet, so this answers nothing
            case _:
                assert_never(answer)

    # -- deciding ------------------------------------------------------------------------------------------------

    def decide(self, entry: Waiting) -> None:
        """Place a pod, or preempt for it, or park it with the reason."""
        if entry.pod.metadata.deletion_timestamp is not None:
            self._report(entry, "Warning", "FailedScheduling", "Scheduling", f"skip schedule deleting pod: {entry.key}")
            self.leave(entry.key)
            return
        entry.attempts += 1
        try:
            row = self._choose(entry)
            if row != NOWHERE:
                self._reserve(entry, row)
            else:
                self._refuse(entry)
        except PluginError as error:
            self._failed(entry, str(error))

    def _choose(self, entry: Waiting) -> int:
        placer = self._placers[entry.pod.spec.scheduler_name]
        if not len(self.nominations):
            return placer.choose(entry.kind)
        promised = self.nominations.get(entry.key)
        if promised is not None:
            row = self.cluster.nodes.rows.get(promised.node, NOWHERE)
            if row != NOWHERE and self._fits_beside_nominees(entry, row) and self._fits(entry, row, ()):
                return row
        excluded: dict[int, None] = {}
        while True:
            row = placer.choose(entry.kind, excluded)
            if row == NOWHERE or self._fits_beside_nominees(entry, row):
                return row
            excluded[row] = None

    def _fits_beside_nominees(self, entry: Waiting, row: int) -> bool:
        """Whether the pod also fits with the pods that were promised this node, as if they were there already."""
        nominees = self.nominations.weighing_on(self.cluster.nodes.names[row], entry)
        return not nominees or self._fits(entry, row, [(one.kind, row) for one in nominees])

    def _fits(self, entry: Waiting, row: int, beside: Sequence[tuple[PodClass, int]]) -> bool:
        profile = self._profiles[entry.pod.spec.scheduler_name].profile
        return fits_at(profile.filters, entry.kind, View(self.cluster).plus(beside), row)

    # -- a node was found ----------------------------------------------------------------------------------------

    def _reserve(self, entry: Waiting, row: int) -> None:
        """Count the pod on its node from now on, and ask for the bind."""
        node = self.cluster.nodes.names[row]
        volumes = decide_volumes(entry.kind, View(self.cluster), row) if entry.kind.holds_volumes else None
        self.nominations.remove(entry.key)
        self.cluster.put(entry.pod, entry.kind, row)
        self.events.append(WakeEvent(Wake.POD_ADDED, pod=entry.kind, node_name=node))
        self.queue.take(entry, Place.RESERVED)
        reservation = Reservation(entry, node, entry.attempts)
        self.reservations[entry.key] = reservation
        if volumes is not None and (volumes.bindings or volumes.provisions):
            reservation.volumes_pending = True
            static = tuple((claim, volume) for claim, volume in volumes.bindings)
            self._effects.append(BindVolumes(entry.ref, node, entry.attempts, static, tuple(volumes.provisions)))
            return
        self._effects.append(Bind(entry.ref, node, entry.attempts))

    def _volumes_bound(self, ref: PodRef, attempt: int) -> None:
        reservation = self._current(ref, attempt)
        if reservation is not None and reservation.volumes_pending:
            reservation.volumes_pending = False
            self._effects.append(Bind(ref, reservation.node, attempt))

    def _bind_done(self, ref: PodRef, attempt: int) -> None:
        reservation = self._current(ref, attempt)
        if reservation is not None and not reservation.done:
            reservation.done = True
            note = f"Successfully assigned {ref.key} to {reservation.node}"
            self._report(reservation.entry, "Normal", "Scheduled", "Binding", note)

    def _bind_failed(self, ref: PodRef, attempt: int, problem: str, *, final: bool) -> None:
        """Ask again after a while; or, if that cannot help or has been done often enough, decide anew."""
        reservation = self._current(ref, attempt)
        if reservation is None or reservation.done:
            return
        if not final and reservation.tries < BIND_TRIES:
            self._timer(RETRY_MS << (reservation.tries - 1), "bind", ref.key, attempt)
            reservation.tries += 1
            return
        entry = reservation.entry
        self._release(reservation)
        self._failed(entry, problem)

    def _current(self, ref: PodRef, attempt: int) -> Reservation | None:
        """The reservation that an answer is about, unless the answer is old news."""
        found = self.reservations.get(ref.key)
        if found is None or found.entry.ref.uid != ref.uid or found.attempt != attempt:
            return None
        return found

    def _release(self, reservation: Reservation) -> None:
        """Uncount a pod whose bind came to nothing."""
        entry = reservation.entry
        del self.reservations[entry.key]
        if self.cluster.remove_pod(entry.key):
            self.events.append(pod_left(entry.kind, reservation.node))

    def confirm(self, key: str) -> bool:
        """The pod was seen bound: it waits no longer. Whether we had it reserved."""
        reservation = self.reservations.pop(key, None)
        self.nominations.remove(key)
        self.queue.remove(key)
        return reservation is not None

    # -- no node was found ---------------------------------------------------------------------------------------

    def _refuse(self, entry: Waiting) -> None:
        """See whom to evict; tell the pod why it waits; park it until something changes."""
        deciding = self._profiles[entry.pod.spec.scheduler_name]
        view = View(self.cluster)
        filtered = run_filters(deciding.profile, entry.kind, view)
        if filtered.failed is not None:
            self._failed(entry, filtered.failed[1].text)
            return
        diagnosis = diagnose(deciding.profile, entry.kind, view, filtered)
        promised = self.nominations.get(entry.key)
        remedy = post_filter(
            deciding.profile,
            entry.kind,
            view,
            diagnosis,
            deciding.preemption,
            nominated_node="" if promised is None else promised.node,
        )
        entry.refusals += 1
        entry.errors = 0
        entry.refused_by = diagnosis.plugins
        entry.message = diagnosis.message(remedy.message)
        self._told(entry, "Unschedulable", entry.message)
        if remedy.node_row is not None:
            self._preempt(entry, remedy, self.cluster.nodes.names[remedy.node_row])
        self.queue.park(entry, self._now)

    def _preempt(self, entry: Waiting, remedy: Remedy, node: str) -> None:
        """Promise the node to the pod, and ask the victims to leave, each once."""
        for other in self.nominations.on(node):
            if other.kind.priority < entry.priority:
                self._withdraw(other.ref.key)
        made = self.nominations.add(entry, node, self._now)
        entry.nominated = node
        self._timer(made.until_ms - self._now, "nomination", entry.key, made.version)
        self._effects.append(Nominate(entry.ref, node))
        name = entry.pod.spec.scheduler_name
        for victim in remedy.victims:
            if victim.uid in self.evictions:
                continue
            ref = PodRef(victim.namespace, victim.name, victim.uid)
            message = f"{name}: preempting to accommodate a higher priority pod"
            self.evictions[victim.uid] = Eviction(ref, node, entry.ref, message)
            self._effects.append(Evict(ref, node, entry.ref, message))
            note = f"Preempted by pod {entry.ref.uid} on node {node}"
            self._effects.append(Report(ref, "Normal", "Preempted", "Preempting", note, related=entry.ref))

    def _withdraw(self, key: str) -> None:
        """Take back the promise of a node; whoever had it may fit elsewhere by now."""
        if self.nominations.remove(key) is None:
            return
        entry = self.queue.get(key)
        if entry is not None:
            entry.nominated = ""
            self._effects.append(Nominate(entry.ref, ""))
            if entry.place is Place.PARKED:
                self.queue.wake(entry, self._now)

    def evicted(self, ref: PodRef) -> None:
        self.evictions.pop(ref.uid, None)

    def _evict_failed(self, ref: PodRef, problem: str) -> None:
        eviction = self.evictions.get(ref.uid)
        if eviction is None:
            return
        if eviction.tries >= EVICT_TRIES:
            del self.evictions[ref.uid]
            self._withdraw(eviction.preemptor.key)
            return
        self._timer(RETRY_MS << (eviction.tries - 1), "evict", ref.uid, eviction.tries)
        eviction.tries += 1

    def _failed(self, entry: Waiting, problem: str) -> None:
        """Something went wrong that is not about room: try again after a while."""
        entry.errors += 1
        entry.message = problem
        self._told(entry, "SchedulerError", problem)
        self.queue.rest(entry, self._now)

    def _told(self, entry: Waiting, reason: str, message: str) -> None:
        self._effects.append(SetCondition(entry.ref, "PodScheduled", "False", reason, message))
        self._report(entry, "Warning", "FailedScheduling", "Scheduling", message)

    def _report(self, entry: Waiting, kind: Literal["Normal", "Warning"], reason: str, action: str, note: str) -> None:
        self._effects.append(Report(entry.ref, kind, reason, action, cut(note)))

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
        self.nominations.remove(key)
        self.queue.remove(key)

    def node_gone(self, name: str) -> None:
        if self.cluster.remove_node(name):
            self.events.append(WakeEvent(Wake.NODE_DELETED, node_name=name))
        for promised in self.nominations.on(name):
            self._withdraw(promised.ref.key)

    def renominate(self, entry: Waiting, node: str) -> None:
        """The pod came with a promise that an earlier scheduler made."""
        made = self.nominations.add(entry, node, self._now)
        entry.nominated = node
        self._timer(made.until_ms - self._now, "nomination", entry.key, made.version)

    # -- timers --------------------------------------------------------------------------------------------------

    def _timer(self, after_ms: Millis, kind: TimerKind, key: str, version: int) -> None:
        self._timer_count += 1
        heappush(self._timers, (self._now + after_ms, self._timer_count, kind, key, version))

    def next_timer_ms(self) -> Millis | None:
        return self._timers[0][0] if self._timers else None

    def due_timers(self) -> None:
        while self._timers and self._timers[0][0] <= self._now:
            _, _, kind, key, version = heappop(self._timers)
            match kind:
                case "bind":
                    reservation = self.reservations.get(key)
                    if reservation is not None and reservation.attempt == version and not reservation.done:
                        self._effects.append(Bind(reservation.entry.ref, reservation.node, version))
                case "evict":
                    eviction = self.evictions.get(key)
                    if eviction is not None:
                        self._effects.append(
                            Evict(eviction.victim, eviction.node, eviction.preemptor, eviction.message)
                        )
                case "nomination":
                    promised = self.nominations.get(key)
                    if promised is not None and promised.version == version:
                        self._withdraw(key)


def cut(note: str) -> str:
    """A note that fits in an event."""
    raw = note.encode()
    if len(raw) <= NOTE_BYTES:
        return note
    return raw[: NOTE_BYTES - len(CUT)].decode(errors="ignore") + CUT
