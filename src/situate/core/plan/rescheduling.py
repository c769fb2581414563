"""Several pods look for a node at once: one after another, preempting as the scheduler would.

The more important go first. Those of one priority come as their controllers make them again: alike after alike.
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
"""When a pod that does not say when it was created began to wait: after all that do."""
_ALL_GO: Final = DrainRules(force=True, delete_emptydir_data=True)


@dataclass(frozen=True, slots=True)
class Rescheduled:
    """What became of one pod: its node, or kube-scheduler's message."""

    key: str
    before: str
    """The node it was on; empty if on none."""
    node: str = ""
    message: str = ""
    evicts: tuple[str, ...] = ()
    evicted_by: str = ""
    """It was in nobody's way but this pod's, which is more important."""


def queue_key(pod: Pod) -> tuple[int, int]:
    """Where a pod stands in the scheduler's queue: by priority, then by age."""
    created = pod.metadata.creation_timestamp
    return PrioritySort().key(pod.spec.priority or 0, LATEST if created is None else epoch_ms(created))


class Rescheduler:
    """Places pods on a sandbox, and whoever they drive out."""

    __slots__ = ("_alike", "_count", "_in_vain", "_sandbox", "_settled", "_waiting")

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._waiting: list[tuple[tuple[int, int], int, int, Pod, str, str]] = []
        self._count = 0
        self._alike: dict[PodClass, int] = {}
        """In which order classes of pods came up."""
        self._settled: dict[str, Rescheduled] = {}
        self._in_vain: dict[PodClass, str] = {}
        """Who fits nowhere, with the message. Those after it in the queue are no more important, so until somebody is
        evicted there is nothing more that preemption could do for it."""

    def reschedule(self, pods: Iterable[Pod]) -> list[Rescheduled]:
        """Place pods that were taken off their nodes, given as they were there; the order told is that of asking."""
        for pod in pods:
            self._enqueue(pod, pod.spec.node_name, "")
        while self._waiting:
            _, _, _, pod, before, by = heapq.heappop(self._waiting)
            told = self._place(pod, before, by)
            self._settled.pop(told.key, None)  # one that settled and was driven out again
            self._settled[told.key] = told
        return list(self._settled.values())

    def _enqueue(self, pod: Pod, before: str, by: str) -> None:
        made = pod if not pod.spec.node_name else recreated(pod)  # one that has waited goes on waiting
        alike = self._alike.setdefault(self._sandbox.cluster.class_of(made), len(self._alike))
        heapq.heappush(self._waiting, (queue_key(made), alike, self._count, recreated(made), before, by))
        self._count += 1

    def _place(self, pod: Pod, before: str, by: str) -> Rescheduled:
        sandbox, key = self._sandbox, key_of(pod.metadata)
        row = sandbox.choose(pod)
        if row != NOWHERE:
            sandbox.bind(pod, row)
            return Rescheduled(key, before, sandbox.name(row), evicted_by=by)
        kind = sandbox.cluster.class_of(pod)
        if kind in self._in_vain:
            return Rescheduled(key, before, message=self._in_vain[kind], evicted_by=by)
        decision = sandbox.decide(pod)
        remedy = decision.post_filter
        if remedy is None or remedy.node_row is None:
            self._in_vain[kind] = decision.message
            return Rescheduled(key, before, message=decision.message, evicted_by=by)
        self._in_vain.clear()
        for victim in remedy.victims:
            self._drive_out(victim.key, key)
        for leaving in sandbox.pods_on(sandbox.name(remedy.node_row)):
            if sandbox.pods[leaving].metadata.deletion_timestamp is not None:
                sandbox.evict(leaving)  # the room that it leaves was counted on
        sandbox.bind(pod, remedy.node_row)
        evicts = tuple(victim.key for victim in remedy.victims)
        return Rescheduled(key, before, sandbox.name(remedy.node_row), "", evicts, by)

    def _drive_out(self, key: str, by: str) -> None:
        was = self._sandbox.pods[key]
        self._sandbox.evict(key)
        known = self._settled.get(key)
        before = was.spec.node_name if known is None else known.before  # it may have moved once already
        if _ALL_GO.judge(was).outcome is EvictionOutcome.MOVES:
            self._enqueue(was, before, by)
        else:
            self._settled[key] = Rescheduled(key, before, message=FORCED.why, evicted_by=by)
