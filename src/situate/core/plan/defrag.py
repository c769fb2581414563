"""The fewest moves that free a shape or a node: a search from the least number of moves that could do, upwards.

With each number of moves, every node that could do with so many is tried: with every choice of its pods, and, where
those find no place by themselves, with other pods moving first. What is found first is the least of what was looked at.
Nothing that does not reach the goal is offered; each step is legal when it is taken. Last, the plan is walked through
once more as it would be carried out, nodes cordoned, to see which nodes have to be held for the scheduler to agree.
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
"""How many of the moves may be of pods on other nodes than the one that is freed."""
EFFORT: Final = 6_000
"""How many times a place is looked for in each part of the search."""
MAX_MOVES: Final = 250
"""How many moves a plan has at most."""
SLACK: Final = 8
"""How many moves more than the bound are looked for, where no plan is known yet."""
MAX_CORDONS: Final = 64
"""How many nodes may have to be cordoned for one step."""


@dataclass(slots=True)
class DefragPlan:
    """What was found. Without a node there is none."""

    node: str = ""
    moves: tuple[Move, ...] = ()
    bound: int = 0
    """No plan has fewer moves."""
    attempts: int = 0
    effort: int = EFFORT
    """How much of it is left."""
    complete: bool = True
    """Whether the search ended before a limit did."""
    stuck: list[tuple[str, str]] = field(default_factory=list)
    """Where there is no plan: pods that would have to move and may not, and why."""

    @property
    def found(self) -> bool:
        return bool(self.node)

    @property
    def fewest(self) -> bool:
        """Whether it is known that no plan has fewer moves."""
        return self.found and len(self.moves) == self.bound


def defrag(sandbox: Sandbox, goal: Goal, rules: DrainRules, only: str = "") -> DefragPlan:
    """Look for a plan, on any node or on this one. The sandbox is left as it was."""
    movable = MovablePods(sandbox, rules)
    found = [one for one in goal.targets(sandbox, movable) if only in ("", one.name)]
    targets = sorted(found, key=lambda one: (one.least, one.row))
    if not targets:
        return DefragPlan(stuck=_stuck(goal, movable))
    plan = DefragPlan(bound=targets[0].least)
    if not targets[0].least:
        plan.node = targets[0].name
        return plan
    # 1. With as few moves as could do at all: mostly that is it.
    if _search(sandbox, goal, movable, targets, plan.bound, 0, plan):
        return plan
    # 2. Any plan, so that there is one.
    _any_plan(sandbox, goal, movable, targets, plan)
    # 3. Shorter ones: first with pods of the node alone, then with others making room for them.
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
    """The shortest of those that come of having pods leave one after another, in some orders."""
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
    """Try every target with so many of its own pods and so many others; whether one does."""
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
    """The moves, with the nodes that have to be held for each; None if one of them cannot be had so.

    The node that is freed is cordoned all along, and each pod's own node while it moves.
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
    """Take one step, cordoning as few nodes as it takes for the scheduler to choose the one that is meant."""
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
                return None  # it is cordoned, and the pod does not mind
            sandbox.cordon(name)
            held.append(name)
    for name in held:
        sandbox.uncordon(name)
    sandbox.bind(pod, to)
    return replace(move, holds=tuple(held))
