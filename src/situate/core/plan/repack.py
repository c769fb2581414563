"""Finds new nodes for pods that must leave a node, with few other moves.

It tries the scheduler's own choice first, then the fullest nodes. If a pod fits nowhere, one other pod may move first
to make room, if one more move is allowed. It leaves the sandbox as after the moves it found, or unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

import numpy as np

from situate.core.model.pod import Pod
from situate.core.place.selecting import NOWHERE
from situate.core.plan.goals import DefragTarget, Goal, MovablePods, Victim, shortage, victim
from situate.core.plan.sandbox import Sandbox

WIDTH: Final = 4
"""How many nodes to try for one pod besides the scheduler's choice."""
ROOMS: Final = 32
"""On how many nodes to make room for a pod that fits nowhere."""
TRIES: Final = 400
"""How many placements to try for one choice of pods."""


@dataclass(frozen=True, slots=True)
class Move:
    """A pod moves from one node to another."""

    key: str
    source: str
    to: str
    holds: tuple[str, ...] = ()
    """Nodes to cordon meanwhile, or the scheduler would choose one of those."""


@unique
class NodeChoice(Enum):
    """Which feasible node a pod goes to."""

    FIRST = "the first"
    FULLEST = "the fullest"
    CHOSEN = "the scheduler's choice"


@dataclass(frozen=True, slots=True)
class _Pending:
    """A pod to move: to one row only, or to any but one."""

    key: str
    only: int = NOWHERE
    not_to: int = NOWHERE


class Repack:
    """One attempt to move some pods off a target."""

    __slots__ = ("_goal", "_movable", "_moved", "_sandbox", "_target", "moves", "tries")

    def __init__(
        self, sandbox: Sandbox, goal: Goal, target: DefragTarget, movable: MovablePods, tries: int = TRIES
    ) -> None:
        self._sandbox = sandbox
        self._goal = goal
        self._target = target
        self._movable = movable
        self._moved: dict[str, None] = {}
        self.moves: list[Move] = []
        self.tries = tries
        """The remaining tries."""

    def run(self, leaving: Sequence[Victim], extra: int) -> bool:
        """Whether the pods can leave, in this order, with `extra` other moves."""
        for one in leaving:
            self._moved[one.key] = None
        return self._go([_Pending(one.key) for one in leaving], extra)

    def in_turns(self, leaving: Sequence[Victim], most: int, way: NodeChoice) -> bool:
        """Greedy: move one pod after another, each to one node. Whether that reaches the goal."""
        waiting = list(leaving)
        before = len(waiting) + 1
        while waiting and len(waiting) < before:  # a pod that fits nowhere may fit after others have moved
            before = len(waiting)
            waiting = [one for one in waiting if not self._left(one, most, way)]
        return self._goal.reached(self._sandbox, self._target)

    def _left(self, one: Victim, most: int, way: NodeChoice) -> bool:
        sandbox = self._sandbox
        if len(self.moves) >= most or self._goal.reached(sandbox, self._target):
            return False
        source = sandbox.pods[one.key].spec.node_name
        mark = sandbox.savepoint()
        pod = sandbox.evict(one.key)
        row = self._one_place(pod, source, way)
        if row == NOWHERE:
            sandbox.rollback(mark)
            return False
        sandbox.bind(pod, row)
        self.moves.append(Move(one.key, source, sandbox.name(row)))
        return True

    def _one_place(self, pod: Pod, source: str, way: NodeChoice) -> int:
        away = [self._target.row, self._sandbox.row(source)]
        if way is NodeChoice.CHOSEN:
            return self._sandbox.choose(pod, away)
        fits = self._sandbox.feasible(pod).copy()
        fits[away] = False
        rows = np.flatnonzero(fits).tolist()
        if not rows:
            return NOWHERE
        return self._fullest(rows)[0] if way is NodeChoice.FULLEST else int(rows[0])

    def _go(self, pending: Sequence[_Pending], extra: int) -> bool:
        if not pending:
            return self._goal.reached(self._sandbox, self._target)
        if self.tries <= 0:
            return False
        self.tries -= 1
        first, rest = pending[0], pending[1:]
        sandbox = self._sandbox
        source = sandbox.pods[first.key].spec.node_name
        mark = sandbox.savepoint()
        pod = sandbox.evict(first.key)
        for row in self._destinations(pod, source, first):
            placed = sandbox.savepoint()
            sandbox.bind(pod, row)
            self.moves.append(Move(first.key, source, sandbox.name(row)))
            if self._go(rest, extra):
                return True
            self.moves.pop()
            sandbox.rollback(placed)
        sandbox.rollback(mark)
        return extra > 0 and first.only == NOWHERE and self._make_room(first, rest, extra)

    def _destinations(self, pod: Pod, source: str, one: _Pending) -> Iterator[int]:
        """The rows that the evicted pod fits now."""
        sandbox = self._sandbox
        away = [self._target.row, sandbox.row(source)]
        if one.not_to != NOWHERE:
            away.append(one.not_to)
        if one.only != NOWHERE:
            if sandbox.feasible(pod)[one.only]:
                yield one.only
            return
        natural = sandbox.choose(pod, away)
        if natural == NOWHERE:
            return
        yield natural
        fits = sandbox.feasible(pod).copy()
        fits[[*away, natural]] = False
        yield from self._fullest(np.flatnonzero(fits).tolist())[:WIDTH]

    def _fullest(self, rows: list[int]) -> list[int]:
        """The rows sorted by free capacity, fullest first: the others stay free for larger pods."""
        nodes = self._sandbox.cluster.nodes
        allocatable = np.maximum(nodes.allocatable[:2, rows], 1)
        free = ((allocatable - nodes.requested[:2, rows]) / allocatable).sum(axis=0)
        return [rows[at] for at in np.argsort(free, kind="stable").tolist()]

    # -- room for one that fits nowhere --------------------------------------------------------------------------

    def _make_room(self, stuck: _Pending, rest: Sequence[_Pending], extra: int) -> bool:
        for key, row in self._in_the_way(stuck):
            if self.tries <= 0:
                return False
            self._moved[key] = None
            pending = [_Pending(key, not_to=row), _Pending(stuck.key, only=row), *rest]
            if self._go(pending, extra - 1):
                return True
            del self._moved[key]
        return False

    def _in_the_way(self, stuck: _Pending) -> list[tuple[str, int]]:
        """Single pods whose move would make room for this one, and their rows; smallest shortage first."""
        sandbox = self._sandbox
        cluster = sandbox.cluster
        pod_row = cluster.pods.rows[stuck.key]
        asks = cluster.pods.kind(pod_row).takes
        nodes = cluster.nodes
        columns = [column for column, _ in asks]
        wanted = np.array([amount for _, amount in asks], np.int64)[:, None]
        lacking = wanted - (nodes.allocatable[columns, : nodes.size] - nodes.requested[columns, : nodes.size])
        share = (np.maximum(lacking, 0) / np.maximum(wanted, 1)).max(axis=0)
        away = (self._target.row, cluster.pods.node_rows[pod_row], stuck.not_to)
        order = [
            row
            for row in np.argsort(share, kind="stable").tolist()
            if nodes.present[row] and not nodes.unschedulable[row] and share[row] > 0 and row not in away
        ]
        found: dict[tuple[int, int], tuple[str, int]] = {}
        for row in order[:ROOMS]:
            lacks = shortage(sandbox, asks, row)
            for key in self._movable.on(sandbox.name(row)):
                one = victim(sandbox, key)
                if key not in self._moved and all(one.holds.get(column, 0) >= short for column, short in lacks.items()):
                    found.setdefault((row, one.kind), (key, row))
        return list(found.values())
