"""The scheduling queue, with kube-scheduler's behaviour.

    active         by priority, then by how long they have waited
    backoff        until their backoff ends: 1 s, doubling to 10 s
    unschedulable  until an event comes that the plugins which refused them wait for
    gated          until their gates are gone, and their claims are there

Every waiting pod is in exactly one of these states, or has been taken out to be decided. Unschedulable pods are put
back after five minutes in any case. That flush is an alarm, not a mechanism: it counts the pods that it moves, and
those that it rescues, which are then placed though no event woke them. Tests demand that no pod is ever rescued.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

from situate.core.changes import Millis
from situate.core.queue.awaiting_claims import ClaimKey, PodsAwaitingClaims
from situate.core.queue.incoming import (
    ACTIVATED,
    ACTIVE,
    ATTEMPT_FAILED,
    BACKOFF,
    BACKOFF_OVER,
    POD_ADDED,
    POD_CHANGED,
    POPPED_EARLY,
    TIMED_OUT,
    UNSCHEDULABLE,
    Incoming,
    came,
)
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.queue.unschedulable import RejectedPods, UnschedulablePods
from situate.core.state.classes import PodClass

INITIAL_BACKOFF_MS: Final = 1_000
MAX_BACKOFF_MS: Final = 10_000
BACKOFF_WINDOW_MS: Final = 1_000
"""Backoffs end at whole seconds, so that pods that end in the same second come back by priority."""
UNSCHEDULABLE_LIMIT_MS: Final = 5 * 60 * 1_000
"""How long a pod may be unschedulable before it is tried again for no reason, by default."""
FLUSH_EVERY_MS: Final = 30_000
PRUNE_ABOVE: Final = 1_024
"""Fewer stale heap entries than this are not worth removing."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a pod backs off after its nth refusal or failure in a row. A maximum of 0 turns backoff off."""

    initial_ms: Millis = INITIAL_BACKOFF_MS
    max_ms: Millis = MAX_BACKOFF_MS

    def after(self, times: int) -> Millis:
        if times <= 0 or self.max_ms == 0:
            return 0
        # Thirty doublings exceed any maximum.
        return min(self.initial_ms << min(times - 1, 30), self.max_ms)


DEFAULT_BACKOFF: Final = Backoff()


class SchedulingQueue:
    def __init__(
        self,
        backoff: Backoff = DEFAULT_BACKOFF,
        incoming: Incoming | None = None,
        unschedulable_limit_ms: Millis = UNSCHEDULABLE_LIMIT_MS,
    ) -> None:
        self._backoff = backoff
        self.unschedulable_limit_ms = unschedulable_limit_ms
        self.incoming: Incoming = {} if incoming is None else incoming
        """How many pods came, and why. For metrics."""
        self._added = 0
        self._entries: dict[str, QueuedPod] = {}
        self._active: list[tuple[int, Millis, int, QueuedPod]] = []
        self._backing_off: list[tuple[Millis, int, Millis, int, QueuedPod]] = []
        self._unschedulable = UnschedulablePods()
        self.awaiting_claims = PodsAwaitingClaims()
        self._next_flush_ms: Millis | None = None
        self.flushed = 0
        """How many pods the five-minute flush put back."""
        self.rescued = 0
        """How many of them were then placed though no event had come that they waited for: events were lost."""
        self._flushed: dict[str, QueuedPod] = {}
        """The pods that the flush put back and that have not been decided since."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> QueuedPod | None:
        return self._entries.get(key)

    def values(self) -> list[QueuedPod]:
        return list(self._entries.values())

    def unschedulable(self) -> list[QueuedPod]:
        return self._unschedulable.values()

    # -- coming and going ----------------------------------------------------------------------------------------

    def add(self, entry: QueuedPod) -> None:
        """Add a new waiting pod, in the state that it has: active or gated."""
        self._entries[entry.key] = entry
        if entry.state is QueueState.ACTIVE:
            entry.first_ready_ms = entry.since_ms
            self._push_active(entry)
            self._added += 1
        else:
            came(self.incoming, UNSCHEDULABLE, POD_ADDED)

    def count_added(self) -> None:
        """At the end of a step: count the pods that were added active, all at once."""
        if self._added:
            came(self.incoming, ACTIVE, POD_ADDED, self._added)
            self._added = 0

    def remove(self, key: str) -> QueuedPod | None:
        """The pod is gone or bound. It may be in any state."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._unschedulable.discard(key)
            self.awaiting_claims.discard(key)
            self.clear_flushed(entry)
        return entry

    def take(self, entry: QueuedPod, state: QueueState) -> None:
        """Take a pod out of the queue: it is being decided, or has been reserved."""
        self._unschedulable.discard(entry.key)
        self.awaiting_claims.discard(entry.key)
        entry.state = state
        if entry.flushed and state is QueueState.RESERVED:
            self.rescued += 1
            self.clear_flushed(entry)

    def flushed_pods(self) -> list[QueuedPod]:
        """The pods that the flush put back, and that no event has woken since."""
        return list(self._flushed.values())

    def clear_flushed(self, entry: QueuedPod) -> None:
        """Do not count the pod as rescued by the flush, whatever happens to it now."""
        if entry.flushed:
            entry.flushed = False
            self._flushed.pop(entry.key, None)

    def _push_active(self, entry: QueuedPod) -> None:
        entry.state = QueueState.ACTIVE
        heappush(self._active, (-entry.priority, entry.since_ms, entry.order, entry))

    # -- popping -------------------------------------------------------------------------------------------------

    def pop(self, now: Millis) -> QueuedPod | None:
        """The next pod to decide, or None. If none is active, a pod in backoff may come early, unless it failed."""
        self._flush_backoff(now)
        while self._active:
            minus_priority, since_ms, _, entry = heappop(self._active)
            if self._holds(entry, QueueState.ACTIVE) and (minus_priority, since_ms) == (
                -entry.priority,
                entry.since_ms,
            ):
                entry.state = QueueState.IN_FLIGHT
                return entry
        return self._pop_backoff_early()

    def _pop_backoff_early(self) -> QueuedPod | None:
        kept = []
        found = None
        while self._backing_off and found is None:
            item = heappop(self._backing_off)
            entry = item[-1]
            if not self._holds(entry, QueueState.BACKOFF) or item[0] != entry.retry_at_ms:
                continue
            if entry.errors:
                kept.append(item)
            else:
                found = entry
        for item in kept:
            heappush(self._backing_off, item)
        if found is not None:
            found.state = QueueState.IN_FLIGHT
            came(self.incoming, ACTIVE, POPPED_EARLY)
        return found

    def _holds(self, entry: QueuedPod, state: QueueState) -> bool:
        """Whether a heap entry is still valid. Pods that leave are not removed from the heaps."""
        return entry.state is state and self._entries.get(entry.key) is entry

    def prune(self) -> None:
        """Remove stale heap entries. While nobody pops, they would pile up."""
        if len(self._active) > 2 * len(self._entries) + PRUNE_ABOVE:
            self._active = [item for item in self._active if self._holds(item[3], QueueState.ACTIVE)]
            heapify(self._active)

    def _flush_backoff(self, now: Millis) -> None:
        while self._backing_off and self._backing_off[0][0] <= now:
            retry_at_ms, *_, entry = heappop(self._backing_off)
            if self._holds(entry, QueueState.BACKOFF) and retry_at_ms == entry.retry_at_ms:
                self._push_active(entry)
                came(self.incoming, ACTIVE, BACKOFF_OVER)

    # -- putting back --------------------------------------------------------------------------------------------

    def add_unschedulable(self, entry: QueuedPod, now: Millis) -> None:
        """It fits nowhere: let it wait for an event that may help."""
        self.clear_flushed(entry)
        entry.since_ms = entry.unschedulable_since_ms = now
        entry.retry_at_ms = self._over(now, entry.refusals)
        entry.state = QueueState.UNSCHEDULABLE
        self._unschedulable.add(entry)
        came(self.incoming, UNSCHEDULABLE, ATTEMPT_FAILED)
        if self._next_flush_ms is None:
            self._next_flush_ms = now + FLUSH_EVERY_MS

    def back_off(self, entry: QueuedPod, now: Millis) -> None:
        """Something failed: try again after a backoff, whatever happens."""
        self.clear_flushed(entry)
        entry.since_ms = now
        entry.retry_at_ms = self._over(now, entry.errors or entry.refusals)
        self._back_to_queue(entry, now, ATTEMPT_FAILED)

    def gate(self, entry: QueuedPod) -> None:
        self._unschedulable.discard(entry.key)
        self.awaiting_claims.discard(entry.key)
        if entry.state is not QueueState.GATED:
            came(self.incoming, UNSCHEDULABLE, POD_CHANGED)
        entry.state = QueueState.GATED

    def await_claim(self, entry: QueuedPod, claim: ClaimKey | None) -> None:
        """Gate a pod until this claim changes; None: until the pod itself does."""
        self.gate(entry)
        self.awaiting_claims.add(entry, claim)

    def changed(self, entry: QueuedPod, now: Millis, *, worth: bool) -> None:
        """The pod itself changed. `worth`: that could make it fit where it was refused."""
        if worth:
            self.clear_flushed(entry)
        if entry.state is QueueState.UNSCHEDULABLE:
            if worth:
                self.wake(entry, now, cause=POD_CHANGED)
            else:
                self._unschedulable.add(entry)
        elif entry.state is QueueState.ACTIVE:
            self._push_active(entry)  # its priority may have changed; the older heap entry is stale now

    @property
    def has_unschedulable(self) -> bool:
        return bool(self._unschedulable)

    def wake(self, entry: QueuedPod, now: Millis, *, at_once: bool = False, cause: str = ACTIVATED) -> None:
        """Put an unschedulable or gated pod back: active, or in backoff for what is left of that."""
        self._unschedulable.discard(entry.key)
        self.awaiting_claims.discard(entry.key)
        if at_once:
            entry.retry_at_ms = now
        self._back_to_queue(entry, now, cause)

    def _back_to_queue(self, entry: QueuedPod, now: Millis, cause: str) -> None:
        if entry.first_ready_ms is None:
            entry.first_ready_ms = now
        if entry.retry_at_ms <= now:
            self._push_active(entry)
            came(self.incoming, ACTIVE, cause)
            return
        entry.state = QueueState.BACKOFF
        came(self.incoming, BACKOFF, cause)
        heappush(self._backing_off, (entry.retry_at_ms, -entry.priority, entry.since_ms, entry.order, entry))

    def _over(self, now: Millis, times: int) -> Millis:
        wait = self._backoff.after(times)
        return -(-(now + wait) // BACKOFF_WINDOW_MS) * BACKOFF_WINDOW_MS if wait else now

    def rejected_pods(self) -> list[RejectedPods]:
        return self._unschedulable.groups()

    def wake_class(self, refused: RejectedPods, kind: PodClass, now: Millis, cause: str = ACTIVATED) -> None:
        """Put back the unschedulable pods of one class that the same plugins refused."""
        for entry in list(refused.pods[kind].values()):
            self.wake(entry, now, cause=cause)

    def flush(self, now: Millis) -> int:
        """Put back pods that have been unschedulable for too long, and return how many. This should never be needed."""
        if self._next_flush_ms is None or now < self._next_flush_ms:
            return 0
        self._next_flush_ms = now + FLUSH_EVERY_MS if self._unschedulable else None
        old = [
            entry
            for entry in self._unschedulable.values()
            if now - entry.unschedulable_since_ms >= self.unschedulable_limit_ms
        ]
        for entry in old:
            self.wake(entry, now, cause=TIMED_OUT)
            entry.flushed = True
            self._flushed[entry.key] = entry
        self.flushed += len(old)
        return len(old)

    # -- looking -------------------------------------------------------------------------------------------------

    def next_due_ms(self, now: Millis) -> Millis | None:
        """When there is something to do even if nothing happens: `now` if there already is, None if never."""
        if any(self._holds(item[3], QueueState.ACTIVE) for item in self._active):
            return now
        moments = [item[0] for item in self._backing_off if self._holds(item[-1], QueueState.BACKOFF)]
        if self._unschedulable and self._next_flush_ms is not None:
            moments.append(self._next_flush_ms)
        return min(moments, default=None)

    def counts(self) -> dict[QueueState, int]:
        found = dict.fromkeys(QueueState, 0)
        for entry in self._entries.values():
            found[entry.state] += 1
        return found


def in_order(entries: Iterable[QueuedPod]) -> list[QueuedPod]:
    """In the order in which the queue would return them."""
    return sorted(entries, key=lambda entry: (-entry.priority, entry.since_ms, entry.order))
