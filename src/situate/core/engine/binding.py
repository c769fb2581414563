"""The binding cycle: reserved pods, their volumes, their binds, and the retries of both.

Binds are effects: many are under way at once, and none holds up the next decision. A bind that fails is retried with
backoff, a limited number of times; then the pod is decided again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from msgspec.structs import replace

from situate.core.changes import Millis, PodRef
from situate.core.contract import Wake, WakeEvent
from situate.core.effects import Bind, BindClaims, BindVolumes, UnreserveClaims
from situate.core.engine.claims_to_bind import claims_to_bind
from situate.core.engine.extender_interest import ExtenderInterest
from situate.core.engine.in_flight import Reservation
from situate.core.engine.metrics import BindingResult
from situate.core.engine.node_selection import NodeSelection
from situate.core.engine.state import EngineState
from situate.core.engine.timers import Timer
from situate.core.engine.wake_events import object_events, pod_came, pod_left, shares_taken
from situate.core.place.bind_annotations import BindAnnotations, bind_annotations, with_annotations
from situate.core.plugins.support.device_demand import NO_DEVICES, DeviceDecision
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.view import View

BIND_TRIES: Final = 5
"""How often one bind is tried before the pod is decided again."""
RETRY_MS: Final = 500
"""How long after a failure a bind is retried; doubled each time."""
BIND_ANSWER_MS: Final = 30_000
"""A bind that is not answered within this time counts as failed, and is retried."""
VOLUMES_ANSWER_MS: Final = 30_000
"""How long after bindTimeoutSeconds volumes that are not reported ready count as failed."""
HELD_MS: Final = 30_000
"""How long the devices of a pod that is not bound stay taken, if nobody reports what was written in its claims."""

NO_BIND_ANSWER: Final = f"no answer to a bind within {BIND_ANSWER_MS // 1_000} s"
NO_VOLUMES_ANSWER: Final = "no answer to binding volumes in time"
NO_CLAIMS_ANSWER: Final = "no answer to binding claims in time"
NO_DEVICES_LEFT: Final = "the devices that the pod was to get on node {} were taken meanwhile"
NOT_GIVEN_BACK: Final = "the devices that the pod was given before have not been given back yet"
NO_VOLUMES: Final = "the volumes that the pod was to get on node {} were taken meanwhile"


class AbandonedBind(NamedTuple):
    """A pod whose bind is not retried: it must be decided again."""

    entry: QueuedPod
    problem: str
    took_ms: Millis


class BindingCycle:
    def __init__(self, state: EngineState, selection: NodeSelection, interest: ExtenderInterest) -> None:
        self._state = state
        self._selection = selection
        self._interest = interest
        self._unanswered: deque[tuple[Millis, Reservation, int]] = deque()
        """The binds that were asked for, in order: when they count as failed, and the attempt."""
        self._writing: dict[str, int] = {}
        """By the pod's uid: the attempt whose devices are being written, until that is answered."""

    def reserve(self, entry: QueuedPod, row: int, annotations: BindAnnotations | None = None) -> str:
        """Count the pod on its node, and ask for the bind; why not, if its volumes cannot be had there.

        `annotations`: what the bind writes on the pod, where that was decided with the node.
        """
        state = self._state
        cluster, now = state.cluster, state.now
        node = cluster.nodes.names[row]
        if state.assumed_claims.is_held(entry.ref.uid):
            return NOT_GIVEN_BACK
        volumes = self._selection.volumes_at(entry, row)
        if volumes is None:
            return NO_VOLUMES.format(node)
        devices = self._selection.devices_at(entry, row)
        if devices is None:
            return NO_DEVICES_LEFT.format(node)
        framework = self._selection.framework_of(entry)
        if annotations is None:
            profile = framework.profile
            annotations = bind_annotations(profile, entry.kind, View(cluster), row) if profile.assigners else ()
        state.end_nomination(entry.key, taken=node)
        cluster.put(with_annotations(entry.pod, annotations), entry.kind, row)
        state.events.append(pod_came(entry.kind, node, cluster.objects))
        state.queue.take(entry, QueueState.RESERVED)
        entry.rejected = ""
        reservation = Reservation(entry, node, entry.attempts, now, annotations=annotations)
        state.reservations[entry.key] = reservation
        if devices is not NO_DEVICES:
            self._take_devices(reservation, devices, framework.devices_ms)
        if not volumes.bindings and not volumes.provisions:
            if not reservation.claims_pending:
                self._bind(reservation)
            return ""
        reservation.volumes_pending, reservation.asked_ms = True, now
        state.assumed.take(entry.key, volumes.bindings)
        state.effects.append(BindVolumes(entry.ref, node, entry.attempts, volumes.bindings, volumes.provisions))
        due_ms = now + framework.volumes_ms + VOLUMES_ANSWER_MS
        reservation.timer = state.timers.set(due_ms, "volumes", entry.key)
        return ""

    def _take_devices(self, reservation: Reservation, devices: DeviceDecision, within_ms: Millis) -> None:
        """Give a pod its devices, and ask for them to be written in its claims."""
        claims, create = claims_to_bind(devices)
        if not claims and create is None:
            return
        entry, state = reservation.entry, self._state
        reservation.claims_pending, reservation.asked_ms = True, state.now
        reservation.claims = tuple(claim.name for claim in claims) + (() if create is None else ("",))
        state.assumed_claims.take(entry.key, entry.pod.metadata, devices)
        state.events += shares_taken(devices.allocations, state.cluster.objects)
        self._writing[entry.ref.uid] = entry.attempts
        state.effects.append(BindClaims(entry.ref, reservation.node, entry.attempts, claims, create))
        due_ms = state.now + within_ms + VOLUMES_ANSWER_MS
        reservation.timer = state.timers.set(due_ms, "claims", entry.key)

    def _bind(self, reservation: Reservation) -> None:
        """Ask for a bind. Asking twice is harmless: (pod, attempt) is bound once."""
        entry, state = reservation.entry, self._state
        reservation.asked, reservation.asked_ms = True, state.now
        self._unanswered.append((state.now + BIND_ANSWER_MS, reservation, reservation.attempt))
        binder = None if reservation.binder_ignored else self._interest.binder(entry.kind)
        state.effects.append(Bind(entry.ref, reservation.node, reservation.attempt, binder, reservation.annotations))

    # -- answers -------------------------------------------------------------------------------------------------

    def volumes_bound(self, ref: PodRef, attempt: int) -> None:
        reservation = self._current(ref, attempt)
        if reservation is not None and reservation.volumes_pending:
            reservation.volumes_pending = False
            self._prepared(reservation)

    def claims_answered(self, ref: PodRef, attempt: int) -> None:
        """It is known what was written in the claims of a pod: what it holds, though it is not bound, is free again."""
        if self._writing.get(ref.uid) == attempt:
            del self._writing[ref.uid]
            self.give_back_devices(ref.uid)

    def claims_bound(self, ref: PodRef, attempt: int) -> None:
        self.claims_answered(ref, attempt)
        reservation = self._current(ref, attempt)
        if reservation is not None and reservation.claims_pending:
            reservation.claims_pending = False
            for claim in self._state.assumed_claims.written(ref.key):
                before = replace(claim, status=replace(claim.status, allocation=None))
                objects = self._state.cluster.objects
                # Pods that share the claim could not be decided until now.
                event = WakeEvent(Wake.RESOURCE_CLAIM_UPDATED, item=claim, item_before=before, objects=objects)
                self._state.events.append(event)
            self._prepared(reservation)

    def _prepared(self, reservation: Reservation) -> None:
        """Bind, once both volumes and devices are ready."""
        if not reservation.preparing:
            self._count_result(reservation, "PreBind", success=True)
            self._bind(reservation)

    def bind_done(self, ref: PodRef, attempt: int) -> None:
        reservation = self._current(ref, attempt)
        if reservation is not None and not reservation.done:
            reservation.done, reservation.asked = True, False
            self._state.gangs.touch(ref.key)
            self._scheduled(reservation)

    def _scheduled(self, reservation: Reservation) -> None:
        entry = reservation.entry
        self._state.metrics.bound.append(reservation)
        note = f"Successfully assigned {entry.key} to {reservation.node}"
        self._state.report(entry.ref, ("Normal", "Scheduled", "Binding", note))

    def _count_result(self, reservation: Reservation, point: Literal["PreBind", "Bind"], *, success: bool) -> None:
        profile, took_ms = reservation.entry.pod.spec.scheduler_name, self._state.now - reservation.asked_ms
        self._state.metrics.binding_results.append(BindingResult(point, profile, took_ms, success))

    def bind_failed(
        self, ref: PodRef, attempt: int, problem: str, *, final: bool, silent: bool = False
    ) -> AbandonedBind | None:
        """Retry after a while; or, if that cannot help or was done often enough, abandon the bind.

        `silent`: no answer came. The bind may still be under way, so the retry is the same attempt.
        """
        reservation = self._current(ref, attempt)
        if reservation is None or reservation.done or not (reservation.asked or reservation.preparing):
            return None  # about an earlier attempt, or reported twice: it is retried already
        reservation.asked = False
        self._count_result(reservation, "PreBind" if reservation.preparing else "Bind", success=False)
        if not reservation.preparing and self._ignores_binder(reservation):
            self._retry(reservation, 0, anew=True)
            return None
        if not final and reservation.tries < BIND_TRIES:
            self._retry(reservation, RETRY_MS << (reservation.tries - 1), anew=not silent)
            reservation.tries += 1
            self._state.gangs.touch(ref.key)
            return None
        entry = reservation.entry
        if not reservation.preparing:
            entry.rejected = reservation.node
        self.release(reservation)
        return AbandonedBind(entry, problem, self._state.now - reservation.since_ms)

    def _retry(self, reservation: Reservation, after_ms: Millis, *, anew: bool) -> None:
        """`anew`: as another attempt, so that later answers to the one that failed are ignored."""
        entry = reservation.entry
        if anew:
            entry.attempts += 1
            entry.retries += 1
            reservation.attempt = entry.attempts
        reservation.timer = self._state.timers.set(self._state.now + after_ms, "bind", entry.key)

    def _ignores_binder(self, reservation: Reservation) -> bool:
        """Whether an ignorable extender could not bind the pod; from now on the pod is bound without it."""
        if reservation.binder_ignored:
            return False
        binder = self._interest.binder(reservation.entry.kind)
        reservation.binder_ignored = binder is not None and self._interest.extenders[binder].ignorable
        return reservation.binder_ignored

    def _current(self, ref: PodRef, attempt: int) -> Reservation | None:
        """The reservation that an answer is about; None if it is about an earlier attempt or another pod."""
        found = self._state.reservations.get(ref.key)
        if found is None or found.entry.ref.uid != ref.uid or found.attempt != attempt:
            return None
        return found

    # -- the end of a reservation --------------------------------------------------------------------------------

    def release(self, reservation: Reservation) -> None:
        """The bind failed: the pod does not count on its node any more."""
        state, key = self._state, reservation.entry.key
        del state.reservations[key]
        state.gangs.touch(key)
        if reservation.volumes_pending:  # else they are bound, and will be seen to be
            self.give_back_volumes(key)
        if reservation.claims:
            state.effects.append(UnreserveClaims(reservation.entry.ref, reservation.claims))
            self._unreserve_devices(reservation.entry.ref)
        counted = state.cluster.counted(key)
        if state.cluster.remove_pod(key) and counted is not None:
            state.events.append(pod_left(counted[0], counted[1], state.cluster.objects))

    def give_back_volumes(self, key: str) -> None:
        """Free the volumes that a pod was given, but for those that were seen to be its claims'."""
        state = self._state
        for taken, free in state.assumed.give_back(key):
            state.events.extend(object_events(taken, free, state.cluster.objects))

    def _unreserve_devices(self, ref: PodRef) -> None:
        """Free the devices that a pod was given; not before it is known which of them were written."""
        if ref.uid in self._writing:
            self._state.assumed_claims.hold(ref.key, ref.uid)
            self._state.timers.set(self._state.now + HELD_MS, "devices", ref.uid, self._writing[ref.uid])
        else:
            self.give_back_devices(ref.key)

    def bound_gone(self, ref: PodRef) -> None:
        """A pod that was bound is gone or has finished. If others bound it, its devices may still be on their way."""
        self.give_back_volumes(ref.key)
        if ref.uid in self._writing and (names := self._state.assumed_claims.names(ref.key)):
            self._state.effects.append(UnreserveClaims(ref, names))
        self._unreserve_devices(ref)

    def held_too_long(self, uid: str, attempt: int) -> None:
        if self._writing.get(uid) == attempt:
            del self._writing[uid]
            self.give_back_devices(uid)

    def give_back_devices(self, key: str) -> None:
        """Free the devices that a pod was given, but for those that were seen to be its claims'."""
        state = self._state
        for taken, free in state.assumed_claims.give_back(key):
            state.events.extend(object_events(taken, free, state.cluster.objects))

    def confirm(self, key: str, node: str) -> None:
        reservation = self._state.reservations.pop(key, None)
        if reservation is not None and reservation.asked and reservation.node == node:
            self._scheduled(reservation)  # the answer to the bind comes later, and is ignored
        if reservation is None or not reservation.claims_pending:
            return
        if reservation.node != node or "" in reservation.claims:  # somebody else bound it, perhaps with other devices
            self._state.effects.append(UnreserveClaims(reservation.entry.ref, reservation.claims))
            self._unreserve_devices(reservation.entry.ref)

    # -- timers --------------------------------------------------------------------------------------------------

    def next_timeout_ms(self) -> Millis | None:
        return self._unanswered[0][0] if self._unanswered else None

    def time_out(self) -> Iterator[AbandonedBind]:
        """Binds that are not answered in time count as failed."""
        while self._unanswered:
            until_ms, reservation, attempt = self._unanswered[0]
            entry = reservation.entry
            is_current = self._state.reservations.get(entry.key) is reservation
            abandoned = None
            if is_current and reservation.asked and reservation.attempt == attempt:
                if until_ms > self._state.now:
                    return
                abandoned = self.bind_failed(entry.ref, attempt, NO_BIND_ANSWER, final=False, silent=True)
            self._unanswered.popleft()
            if abandoned is not None:
                yield abandoned

    def timer(self, timer: Timer) -> AbandonedBind | None:
        """A bind is to be retried, or volumes were not ready in time."""
        reservation = self._state.reservations.get(timer.key)
        if reservation is None or reservation.timer != timer.number:
            return None
        if timer.kind != "bind" and reservation.preparing:
            problem = NO_VOLUMES_ANSWER if reservation.volumes_pending else NO_CLAIMS_ANSWER
            return self.bind_failed(reservation.entry.ref, reservation.attempt, problem, final=True)
        if timer.kind == "bind" and not reservation.done:
            self._bind(reservation)
        return None
