"""The nominated pods as waiting pods see them, by priority, kept up to date as nominations come and go."""

from __future__ import annotations

from typing import Final

from situate.core.engine.in_flight import Nomination, Nominations
from situate.core.preempt.nominated import NO_NOMINATED_PODS, NominatedPods
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.cluster import Cluster

PRIORITIES: Final = 16
"""For how many priorities the sums are kept. The least recently used is dropped first."""


class NominatedByPriority:
    """What a waiting pod sees of the nominations: those of its priority or above, except its own."""

    __slots__ = ("_by_priority", "_cluster", "_nominations")

    def __init__(self, cluster: Cluster, nominations: Nominations) -> None:
        self._cluster = cluster
        self._nominations = nominations
        self._by_priority: dict[int, _Kept] = {}

    def seen_by(self, entry: QueuedPod) -> NominatedPods:
        """Valid until the next nomination, and read-only."""
        if not len(self._nominations):
            return NO_NOMINATED_PODS
        kept = self._by_priority.pop(entry.priority, None)
        if kept is None:
            kept = _Kept(entry.priority)
            if len(self._by_priority) >= PRIORITIES:
                del self._by_priority[next(iter(self._by_priority))]
        self._by_priority[entry.priority] = kept
        kept.catch_up(self._cluster, self._nominations)
        return kept.but(self._nominations.get(entry.key))


class _Kept:
    __slots__ = ("_epoch", "_position", "_priority", "_rows", "nominated")

    def __init__(self, priority: int) -> None:
        self._priority = priority
        self._epoch = -1
        self._position = 0
        self._rows: dict[Nomination, int] = {}
        """The row of each, if its node is here."""
        self.nominated = NO_NOMINATED_PODS

    def catch_up(self, cluster: Cluster, nominations: Nominations) -> None:
        moves = nominations.moves_since(self._position)
        if moves is None or self._epoch != cluster.epoch:
            self._epoch = cluster.epoch
            self._rows = {}
            self.nominated = NominatedPods(cluster.nodes.size)
            for nomination in nominations.values():
                self._add(nomination, cluster)
        else:
            for nomination, made in moves:
                if made:
                    self._add(nomination, cluster)
                else:
                    self._remove(nomination)
        self._position = self.nominated.version = nominations.position

    def but(self, own: Nomination | None) -> NominatedPods:
        row = None if own is None else self._rows.get(own)
        return self.nominated if own is None or row is None else self.nominated.without(own.kind, row)

    def _add(self, nomination: Nomination, cluster: Cluster) -> None:
        row = cluster.nodes.rows.get(nomination.node)
        if row is not None and nomination.kind.priority >= self._priority:
            self._rows[nomination] = row
            self.nominated.add(nomination.kind, row)

    def _remove(self, nomination: Nomination) -> None:
        row = self._rows.pop(nomination, None)
        if row is not None:
            self.nominated.remove(nomination.kind, row)
