"""Reschedules several pods, one after another, with preemption.

Higher priority goes first. Within a priority, pods come class by class, as their controllers recreate them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.model.timestamp import epoch_ms
from situate.core.place.selecting import NOWHERE
from situate.core.plan.eviction_rules import FORCED, DrainRules, EvictionOutcome
from situate.core.plan.sandbox import Sandbox, recreated
from situate.core.plugins.priority_sort import PrioritySort
from situate.core.state.classes import PodClass

LATEST: Final = 1 << 63
"""The age of a pod without a creation time: younger than all others."""
_ALL_GO: Final = DrainRules(force=True, delete_emptydir_data=True)


@dataclass(frozen=True, slots=True)
class Rescheduled:
    """A rescheduled pod: its new node, or kube-scheduler's message."""

    key: str
    before: str
    """Its old node; empty if it had none."""
    node: str = ""
    message: str = ""
    evicts: tuple[str, ...] = ()
    evicted_by: str = ""
    """The pod that preempted it."""


def queue_key(pod: Pod) -> tuple[int, int]:
    """The pod's sort key in the scheduler's queue: priority, then age."""
    created = pod.metadata.creation_timestamp
    return PrioritySort().key(pod.spec.priority or 0, LATEST if created is None else epoch_ms(created))


class Rescheduler:
    """Reschedules pods in a sandbox, and the pods that they preempt."""

    __slots__ = ("_alike", "_count", "_results", "_sandbox", "_unschedulable", "_waiting")

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._waiting: list[tuple[tuple[int, int], int, int, Pod, str, str]] = []
        self._count = 0
        self._alike: dict[PodClass, int] = {}
        """The order in which classes first appeared."""
        self._results: dict[str, Rescheduled] = {}
        self._unschedulable: dict[PodClass, str] = {}
        """Classes that fit nowhere, with the message. Later pods have no higher priority, so until a pod is evicted,
        preemption cannot help them either."""

    def reschedule(self, pods: Iterable[Pod]) -> list[Rescheduled]:
        """Reschedule pods that were evicted, given as they were on their nodes. Returns them in scheduling order."""
        for pod in pods:
            self._enqueue(pod, pod.spec.node_name, "")
        while self._waiting:
            _, _, _, pod, before, by = heapq.heappop(self._waiting)
            placed = self._place(pod, before, by)
            self._results.pop(placed.key, None)  # rescheduled once and preempted again
            self._results[placed.key] = placed
        return list(self._results.values())

    def _enqueue(self, pod: Pod, before: str, by: str) -> None:
        made = pod if not pod.spec.node_name else recreated(pod)  # a pending pod keeps its age
        alike = self._alike.setdefault(self._sandbox.kind_of(made), len(self._alike))
        heapq.heappush(self._waiting, (queue_key(made), alike, self._count, recreated(made), before, by))
        self._count += 1

    def _place(self, pod: Pod, before: str, by: str) -> Rescheduled:
        sandbox, key = self._sandbox, key_of(pod.metadata)
        row = sandbox.choose(pod)
        if row != NOWHERE:
            sandbox.bind(pod, row)
            return Rescheduled(key, before, sandbox.name(row), evicted_by=by)
        kind = sandbox.kind_of(pod)
        if kind in self._unschedulable:
            return Rescheduled(key, before, message=self._unschedulable[kind], evicted_by=by)
        decision = sandbox.decide(pod)
        remedy = decision.post_filter
        if remedy is not None and remedy.released is not None:
            sandbox.release(remedy.released)  # as the scheduler does, before it tries the pod again
            return self._place(pod, before, by)
        if remedy is None or remedy.node_row is None:
            self._unschedulable[kind] = decision.message
            return Rescheduled(key, before, message=decision.message, evicted_by=by)
        self._unschedulable.clear()
        for victim in remedy.victims:
            self._preempt(victim.key, key)
        for leaving in sandbox.pods_on(sandbox.name(remedy.node_row)):
            if sandbox.pods[leaving].metadata.deletion_timestamp is not None:
                sandbox.evict(leaving)  # preemption counted on its resources
        sandbox.bind(pod, remedy.node_row)
        evicts = tuple(victim.key for victim in remedy.victims)
        return Rescheduled(key, before, sandbox.name(remedy.node_row), "", evicts, by)

    def _preempt(self, key: str, by: str) -> None:
        was = self._sandbox.pods[key]
        self._sandbox.evict(key)
        known = self._results.get(key)
        before = was.spec.node_name if known is None else known.before  # it may have moved before
        if _ALL_GO.judge(was).outcome is EvictionOutcome.MOVES:
            self._enqueue(was, before, by)
        else:
            self._results[key] = Rescheduled(key, before, message=FORCED.why, evicted_by=by)
