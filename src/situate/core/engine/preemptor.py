"""Nominations and evictions: nodes that are held for pods, and the victims that have to leave them.

Evictions are effects. One that fails is retried with backoff, a limited number of times; then the nomination ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from situate.core.changes import PodRef
from situate.core.effects import Evict, Nominate
from situate.core.engine.in_flight import Eviction, Nomination
from situate.core.engine.state import EngineState, EventTexts
from situate.core.gang.members import nominated_together
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.pods import BoundPod

EVICT_TRIES: Final = 5
RETRY_MS: Final = 500
"""How long after a failure an eviction is retried; doubled each time."""


class Preemptor:
    def __init__(self, state: EngineState) -> None:
        self._state = state

    def preempt(self, entry: QueuedPod, victims: Sequence[BoundPod], node: str) -> None:
        self.nominate(entry, node)
        self._state.metrics.victims.append(len(victims))
        message = f"{entry.pod.spec.scheduler_name}: preempting to accommodate a higher priority pod"
        for victim in victims:
            ref = PodRef(victim.namespace, victim.name, victim.uid)
            at = self._state.cluster.nodes.names[victim.node_row]
            note = f"Preempted by pod {entry.ref.uid} on node {at}"
            self.evict(ref, at, entry.ref, message, ("Normal", "Preempted", "Preempting", note))

    # -- nominations ---------------------------------------------------------------------------------------------

    def nominate(self, entry: QueuedPod, node: str) -> None:
        """Hold a node for a pod until its victims are gone. Nominations of pods that it outranks end."""
        for other in self._state.nominations.on(node):
            if other.kind.priority < entry.priority:
                self.withdraw(other.ref.key)
        self._state.end_nomination(entry.key, taken=node)
        self.renominate(entry, node)
        self._state.effects.append(Nominate(entry.ref, node))

    def renominate(self, entry: QueuedPod, node: str) -> None:
        """Hold a node that is nominated in the pod's status already, by an earlier scheduler or by the leader."""
        entry.nominated = node
        self._set_timer(self._state.nominations.add(entry, node, self._state.now))

    def restate(self, entry: QueuedPod) -> None:
        """A waiting pod changed: the node is held for the pod as it is now."""
        before = self._state.nominations.get(entry.key)
        if before is None or before.kind is entry.kind:
            return
        self._state.end_nomination(entry.key)
        made = self._state.nominations.add(entry, before.node, self._state.now)
        made.until_ms = before.until_ms
        self._set_timer(made)

    def follow(self, entry: QueuedPod, node: str) -> None:
        """The leader nominated a node for the pod, or ended a nomination."""
        self._state.end_nomination(entry.key, taken=node)
        entry.nominated = ""
        if node:
            self.renominate(entry, node)

    def _set_timer(self, made: Nomination) -> None:
        self._state.timers.set(made.until_ms, "nomination", made.ref.key, made.version)

    def time_out(self, key: str, version: int) -> None:
        nomination = self._state.nominations.get(key)
        if nomination is not None and nomination.version == version:
            self.withdraw(key, in_vain=True)

    def withdraw(self, key: str, *, in_vain: bool = False) -> None:
        """End a nomination; in a gang that is not placed, with the nominations of the others.

        `in_vain`: the victims did not leave in time. The pod backs off, or it would get the same nomination at once.
        """
        for one in nominated_together(key, self._state.gangs, self._state.queue, self._state.cluster):
            self.withdraw_one(one, in_vain=in_vain)

    def withdraw_one(self, key: str, *, in_vain: bool = False) -> None:
        """End the nomination of one pod, which may fit elsewhere by now."""
        state = self._state
        entry = state.queue.get(key) if state.end_nomination(key) else None
        if entry is None:
            return
        entry.nominated = ""
        state.effects.append(Nominate(entry.ref, ""))
        if entry.state is QueueState.UNSCHEDULABLE and in_vain:
            state.queue.take(entry, QueueState.IN_FLIGHT)
            entry.errors = entry.refusals
            state.queue.back_off(entry, state.now)
        elif entry.state is QueueState.UNSCHEDULABLE:
            state.queue.wake(entry, state.now)

    # -- evictions -----------------------------------------------------------------------------------------------

    def evict(self, victim: PodRef, node: str, preemptor: PodRef, message: str, event: EventTexts) -> None:
        if victim.uid in self._state.evictions:
            return
        self._state.evictions[victim.uid] = Eviction(victim, node, preemptor, message)
        self._state.effects.append(Evict(victim, node, preemptor, message))
        self._state.report(victim, event, related=preemptor)

    def evict_failed(self, ref: PodRef) -> None:
        eviction = self._state.evictions.get(ref.uid)
        if eviction is None:
            return
        if eviction.tries >= EVICT_TRIES:
            del self._state.evictions[ref.uid]
            self.withdraw(eviction.preemptor.key, in_vain=True)
            return
        due_ms = self._state.now + (RETRY_MS << (eviction.tries - 1))
        self._state.timers.set(due_ms, "evict", ref.uid, eviction.tries)
        eviction.tries += 1

    def evict_again(self, uid: str) -> None:
        """Retry an eviction; not of a pod that is leaving by now, nor of one that is not on that node any more.

        A pod whose bind failed may have another node by now, where it is no victim.
        """
        eviction = self._state.evictions.get(uid)
        if eviction is None:
            return
        counted = self._state.cluster.counted(eviction.victim.key)
        if counted is None or counted[1] != eviction.node:
            del self._state.evictions[uid]
        elif not counted[2]:
            self._state.effects.append(Evict(eviction.victim, eviction.node, eviction.preemptor, eviction.message))
