"""Searches for the fewest moves that make room for a pod or empty a node, from a lower bound upwards.

For each number of moves, the search tries every node that could be freed with that many: with every choice of its pods
and, if those find no node, with other pods moving first. The first plan found has the fewest moves of those tried.
Every plan reaches the goal, and every move is valid when it is made. Finally `rehearsed` carries the plan out, with
nodes cordoned, to find which other nodes must be cordoned for the scheduler to choose the intended ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from situate.core.place.selecting import NOWHERE
from situate.core.plan.eviction_rules import DrainRules
from situate.core.plan.goals import DefragTarget, Goal, MovablePods, Victim, VictimChoices, room_of
from situate.core.plan.repack import TRIES, Move, NodeChoice, Repack
from situate.core.plan.sandbox import Sandbox

EXTRA: Final = 3
"""How many moves may be of pods on other nodes than the freed one."""
EFFORT: Final = 6_000
"""How many placements each part of the search may try."""
MAX_MOVES: Final = 250
"""The maximum number of moves of a plan."""
SLACK: Final = 8
"""How many moves above the bound to try while no plan is known."""
MAX_CORDONS: Final = 64
"""How many nodes may be cordoned for one move."""


@dataclass(slots=True)
class DefragPlan:
    """The result. Without a node, no plan was found."""

    node: str = ""
    moves: tuple[Move, ...] = ()
    bound: int = 0
    """No plan has fewer moves."""
    attempts: int = 0
    effort: int = EFFORT
    """The remaining effort."""
    complete: bool = True
    """Whether the search finished within its limits."""
    stuck: list[tuple[str, str]] = field(default_factory=list)
    """If there is no plan: pods that would have to move and may not, and why."""

    @property
    def found(self) -> bool:
        return bool(self.node)

    @property
    def fewest(self) -> bool:
        """Whether this is proven to be the minimum."""
        return self.found and len(self.moves) == self.bound


def defrag(sandbox: Sandbox, goal: Goal, rules: DrainRules, only: str = "") -> DefragPlan:
    """Search for a plan, on any node or on `only`. Leaves the sandbox unchanged."""
    movable = MovablePods(sandbox, rules)
    found = [one for one in goal.targets(sandbox, movable) if only in ("", one.name)]
    targets = sorted(found, key=lambda one: (one.least, one.row))
    if not targets:
        return DefragPlan(stuck=_stuck(goal, movable))
    plan = DefragPlan(bound=targets[0].least)
    if not targets[0].least:
        plan.node = targets[0].name
        return plan
    # 1. With the lower bound of moves: this usually succeeds.
    if _search(sandbox, goal, movable, targets, plan.bound, 0, plan):
        return plan
    # 2. Any plan at all.
    _any_plan(sandbox, goal, movable, targets, plan)
    # 3. Shorter ones: first with pods of the node alone, then with other pods making room.
    most = len(plan.moves) if plan.found else min(plan.bound + SLACK, MAX_MOVES)
    for extras in (range(1), range(1, EXTRA + 1)):
        plan.effort = EFFORT
        for total in range(plan.bound, most):
            if any(_search(sandbox, goal, movable, targets, total - extra, extra, plan) for extra in extras):
                most = total
                break
    return plan


def _any_plan(
    sandbox: Sandbox, goal: Goal, movable: MovablePods, targets: Sequence[DefragTarget], plan: DefragPlan
) -> None:
    """The shortest plan from greedy moves in a few orders."""
    for way in NodeChoice:
        for largest in (True, False):
            for target in targets:
                most = len(plan.moves) - 1 if plan.found else MAX_MOVES
                if target.least > most:
                    break
                weight = VictimChoices(target, 0, room_of(sandbox, target.row)).weight
                sign = -1 if largest else 1
                leaving = sorted(target.victims, key=lambda one: (sign * weight(one), one.key))
                mark = sandbox.savepoint()
                repack = Repack(sandbox, goal, target, movable)
                try:
                    found = repack.in_turns(leaving, most, way)
                finally:
                    sandbox.rollback(mark)
                plan.attempts += 1
                moves = rehearsed(sandbox, target.name, repack.moves) if found else None
                if moves is not None:
                    plan.node, plan.moves = target.name, moves


def _stuck(goal: Goal, movable: MovablePods) -> list[tuple[str, str]]:
    name = getattr(goal, "name", "")
    return movable.stuck(name) if name else []


def _search(
    sandbox: Sandbox,
    goal: Goal,
    movable: MovablePods,
    targets: Sequence[DefragTarget],
    size: int,
    extra: int,
    plan: DefragPlan,
) -> bool:
    """Try every target with `size` of its own pods and `extra` others; whether one succeeds."""
    if size < 1:
        return False
    for target in targets:
        if target.least > size:
            break
        covers = VictimChoices(target, size, room_of(sandbox, target.row))
        for leaving in covers.found():
            if not goal.may_do(sandbox, target, leaving):
                continue
            if plan.effort <= 0:
                plan.complete = False
                return False
            plan.attempts += 1
            moves = _attempt(sandbox, goal, movable, target, leaving, extra, plan)
            if moves is not None:
                plan.node, plan.moves = target.name, moves
                return True
        plan.complete &= covers.complete
    return False


def _attempt(
    sandbox: Sandbox,
    goal: Goal,
    movable: MovablePods,
    target: DefragTarget,
    leaving: Sequence[Victim],
    extra: int,
    plan: DefragPlan,
) -> tuple[Move, ...] | None:
    mark = sandbox.savepoint()
    tries = min(TRIES, plan.effort)
    repack = Repack(sandbox, goal, target, movable, tries)
    try:
        found = repack.run(leaving, extra)
    finally:
        sandbox.rollback(mark)
    plan.effort -= tries - repack.tries
    plan.complete &= repack.tries > 0
    return rehearsed(sandbox, target.name, repack.moves) if found else None


# -- as it would be carried out ----------------------------------------------------------------------------------------


def rehearsed(sandbox: Sandbox, freed: str, moves: Sequence[Move]) -> tuple[Move, ...] | None:
    """The moves, with the nodes to cordon for each; None if a move is impossible that way.

    The freed node stays cordoned throughout, and each pod's own node while it moves.
    """
    mark = sandbox.savepoint()
    try:
        sandbox.cordon(freed)
        done = []
        for move in moves:
            held = _step(sandbox, move)
            if held is None:
                return None
            done.append(held)
        return tuple(done)
    finally:
        sandbox.rollback(mark)


def _step(sandbox: Sandbox, move: Move) -> Move | None:
    """Make one move, cordoning just enough nodes for the scheduler to choose the intended one."""
    pod = sandbox.evict(move.key)
    to = sandbox.row(move.to)
    if not sandbox.feasible(pod)[to]:
        return None
    held: list[str] = []
    while (chosen := sandbox.choose(pod)) != to:
        if chosen == NOWHERE or len(held) >= MAX_CORDONS:
            return None
        rank = sandbox.verdicts(pod).rank
        better = [sandbox.name(row) for row in np.flatnonzero(rank >= rank[to]).tolist() if row != to]
        for name in better[: MAX_CORDONS - len(held)]:
            if sandbox.node(name).spec.unschedulable:
                return None  # already cordoned, and the pod tolerates it
            sandbox.cordon(name)
            held.append(name)
    for name in held:
        sandbox.uncordon(name)
    sandbox.bind(pod, to)
    return replace(move, holds=tuple(held))
