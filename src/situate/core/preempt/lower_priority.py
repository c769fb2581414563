"""The pods below a priority on every node: how many, what they request, and in which order they are reprieved.

The result is kept, and only the rows where a pod came or went since are computed again: evictions take time, so the
next preemptor finds mostly the same pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from situate.core.model.base import INT64_MAX
from situate.core.preempt.budgets import Budgets
from situate.core.preempt.evictable import Evictable, by_importance, lower_on
from situate.core.state.classes import PODS, PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import IdColumn, IntColumn, Mask, capacity_for, grown
from situate.core.state.view import View

TABLES: Final = 16
"""For how many priorities tables are kept. The least recently used is dropped first."""
KINDS: Final = 1 << 16
"""How many classes a table may have seen before it is built again."""
MANY: Final = 8
"""If more than one row in this many changed, all rows are counted again: that is cheaper."""


class LowerPods:
    """The pods below one priority, as of the last `refresh`."""

    __slots__ = ("_budgets", "_lists", "_position", "_taken", "priority", "ranks", "view")

    def __init__(self, view: View, priority: int) -> None:
        self.view = view
        self.priority = priority
        self._start()

    def _start(self) -> None:
        self._position = _position(self.view.cluster)
        self._taken = freed(self.view, self.priority, (PODS,))
        self._lists: dict[int, list[Evictable]] = {}
        self._budgets: Budgets | None = None
        """The budgets that the order of reprieve was computed with."""
        self.ranks = Ranks(self.view.size)

    @property
    def unstarted_in_order(self) -> bool:
        """Whether pods that have not started keep the order in which they are on their node."""
        return self.view.cluster.rules.unstarted_rank_by_position

    @property
    def counts(self) -> IntColumn:
        return self._taken[PODS]

    def taken(self, columns: Iterable[int]) -> dict[int, IntColumn]:
        missing = [column for column in columns if column not in self._taken]
        if missing:
            self._taken.update(freed(self.view, self.priority, missing))
        return {column: self._taken[column] for column in columns}

    def on(self, row: int) -> list[Evictable]:
        """Those on a node, the most important first."""
        found = self._lists.get(row)
        if found is None:
            here = lower_on(self.view, row, self.priority)
            found = self._lists[row] = by_importance(here, unstarted_in_order=self.unstarted_in_order)
        return found

    def ranked(self, rows: IdColumn, budgets: Budgets) -> tuple[IdColumn, IntColumn, IntColumn]:
        """Those on these nodes as tables with a column per node, in the order of reprieve: classes and starts. And for
        each node, how many of the first a budget protects.

        The classes are numbers in `ranks`; 0 is no pod.
        """
        ranks = self.ranks
        if budgets is not self._budgets:
            self._budgets = budgets
            ranks.filled[:] = False
        for row in rows[~ranks.filled[rows]].tolist():
            protected, others = budgets.split(self.on(row))
            ranks.fill(row, protected + others, len(protected))
        return ranks.read(rows)

    def refresh(self) -> None:
        """Bring everything up to date. Only for tables of the cluster itself: an overlay does not change."""
        cluster = self.view.cluster
        position = _position(cluster)
        size = cluster.nodes.size
        if position == self._position and size == self.view.size:
            return
        behind = position - self._position
        if size != self.view.size or self._position < cluster.touched_base or len(self.ranks.kinds) > KINDS:
            self.view = View(cluster)
            self._start()
            return
        rows = dict.fromkeys(cluster.touched[len(cluster.touched) - behind :])
        if len(rows) * MANY > size:
            self._taken = freed(self.view, self.priority, self._taken)
            for row in rows:
                self._drop(row)
        else:
            for row in rows:
                self._recount(row)
                self._drop(row)
        self._position = position

    def _drop(self, row: int) -> None:
        self._lists.pop(row, None)
        self.ranks.filled[row] = False

    def _recount(self, row: int) -> None:
        cluster = self.view.cluster
        classes = cluster.pods.classes
        sums = dict.fromkeys(self._taken, 0)
        for pod in cluster.nodes.pods[row]:
            kind = classes[pod]
            if kind is not None and kind.priority < self.priority:
                for column, amount in kind.takes:
                    if column in sums:
                        sums[column] += amount
        for column, total in sums.items():
            self._taken[column][row] = min(total, INT64_MAX)


class Ranks:
    """The pods of nodes in the order of reprieve, as tables, for the nodes that were asked about."""

    __slots__ = (
        "_amounts", "_index", "_kinds", "_priorities", "_protected", "_slots", "_started", "_used", "filled", "kinds",
    )  # fmt: skip

    def __init__(self, size: int) -> None:
        self.kinds: list[PodClass | None] = [None]
        self.filled: Mask = np.zeros(size, np.bool_)
        """Rows whose pods are in the tables as they are now."""
        self._index: dict[PodClass, int] = {}
        self._slots: IdColumn = np.full(size, -1, np.intp)
        """Row -> its column in the tables, once it has one."""
        self._used = 0
        self._kinds: IdColumn = np.zeros((1, 1), np.intp)
        self._started: IntColumn = np.zeros((1, 1), np.int64)
        self._protected: IntColumn = np.zeros(1, np.int64)
        self._priorities: IntColumn = np.zeros(0, np.int64)
        self._amounts: dict[int, IntColumn] = {}

    def fill(self, row: int, pods: list[Evictable], protected: int) -> None:
        if self._slots[row] < 0:
            self._slots[row] = self._used
            self._used += 1
        slot = self._slots[row]
        self._fit(self._used, len(pods))
        self._kinds[:, slot] = 0
        self._kinds[: len(pods), slot] = [self._number(pod.kind) for pod in pods]
        self._started[: len(pods), slot] = [pod.started for pod in pods]
        self._protected[slot] = protected
        self.filled[row] = True

    def _fit(self, slots: int, longest: int) -> None:
        length, room = self._kinds.shape
        if slots <= room and longest <= length:
            return
        shape = (max(length, longest), room if slots <= room else capacity_for(slots))
        kinds, started = np.zeros(shape, np.intp), np.zeros(shape, np.int64)
        kinds[:length, :room], started[:length, :room] = self._kinds, self._started
        self._kinds, self._started = kinds, started
        self._protected = grown(self._protected, shape[1], 0)

    def _number(self, kind: PodClass) -> int:
        found = self._index.get(kind)
        if found is None:
            found = self._index[kind] = len(self.kinds)
            self.kinds.append(kind)
        return found

    def read(self, rows: IdColumn) -> tuple[IdColumn, IntColumn, IntColumn]:
        slots = self._slots[rows]
        return self._kinds.take(slots, axis=1), self._started.take(slots, axis=1), self._protected[slots]

    def priorities(self) -> IntColumn:
        if len(self._priorities) < len(self.kinds):
            self._priorities = np.array([0 if kind is None else kind.priority for kind in self.kinds], np.int64)
        return self._priorities

    def amounts(self, column: int) -> IntColumn:
        """What a pod requests of a resource, by number of the class; 0 for no pod."""
        found = self._amounts.get(column)
        if found is None or len(found) < len(self.kinds):
            takes = [0 if kind is None else dict(kind.takes).get(column, 0) for kind in self.kinds]
            found = self._amounts[column] = np.array(takes, np.int64)
        return found


class LowerTables:
    """The tables for the priorities of preemptors on one cluster."""

    __slots__ = ("_budgets", "_budgets_read", "_cluster", "_tables")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._tables: dict[int, LowerPods] = {}
        self._budgets_read = View(cluster).budgets
        self._budgets = Budgets.of(View(cluster))

    def below(self, priority: int) -> LowerPods:
        found = self._tables.pop(priority, None)
        if found is None:
            found = LowerPods(View(self._cluster), priority)
            if len(self._tables) >= TABLES:
                del self._tables[next(iter(self._tables))]
        else:
            found.refresh()
        self._tables[priority] = found
        return found

    def budgets(self) -> Budgets:
        """The disruption budgets, compiled again only if one changed."""
        now, before = View(self._cluster).budgets, self._budgets_read
        if len(now) != len(before) or any(one is not other for one, other in zip(now, before, strict=True)):
            self._budgets_read, self._budgets = now, Budgets.of(View(self._cluster))
        return self._budgets


def _position(cluster: Cluster) -> int:
    return cluster.touched_base + len(cluster.touched)


def freed(view: View, priority: int, columns: Iterable[int]) -> dict[int, IntColumn]:
    """Resource column -> what the pods below this priority request of it, by row."""
    kinds = [kind for kind in view.cluster.classes.values() if kind.total and kind.priority < priority]
    takes = [dict(kind.takes) for kind in kinds]
    rows: list[int] = []
    counts: list[int] = []
    for kind in kinds:
        rows.extend(kind.placed)
        counts.extend(kind.placed.values())
    which = np.repeat(np.arange(len(kinds)), [len(kind.placed) for kind in kinds])
    at, times = np.array(rows, np.intp), np.array(counts, np.int64)
    found: dict[int, IntColumn] = {}
    for column in columns:
        amounts = np.array([take.get(column, 0) for take in takes], np.int64)
        found[column] = np.zeros(view.size, np.int64)
        np.add.at(found[column], at, amounts[which] * times)
        for pod in view.removed:
            kind = view.cluster.pods.kind(pod)
            if kind.priority < priority:
                found[column][view.cluster.pods.node_rows[pod]] -= dict(kind.takes).get(column, 0)
    return found
