"""The goals of a defragmentation, one more pod or an empty node, and what each node lacks for them.

A target is a node that could be freed. At least `least` pods must leave it: exact for what can be counted (resources,
and pods that have to go), and 1 if something other than resources is in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from situate.core.model.pod import Pod
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import fits_at, run_filters
from situate.core.plan.disruptions import Allowances
from situate.core.plan.eviction_rules import DrainRules, EvictionOutcome
from situate.core.plan.sandbox import Sandbox
from situate.core.state.view import View

COVERS: Final = 64
"""How many choices of pods to try for one node and one number of pods."""
COMBINATIONS: Final = 20_000
"""How many combinations to enumerate for those."""

Sizes = Mapping[int, int]
"""Amounts by resource column."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that may be moved, and its requests. Pods of one kind on one node are interchangeable."""

    key: str
    kind: int
    holds: Sizes


@dataclass(frozen=True, slots=True)
class DefragTarget:
    """A node that could be freed."""

    row: int
    name: str
    least: int
    victims: tuple[Victim, ...]
    lacks: Sizes
    """The amounts to free, by resource column; empty if resources are not in the way."""
    all_go: bool
    """Whether every victim has to leave."""


class Goal(Protocol):
    """What the defragmentation is for."""

    def targets(self, sandbox: Sandbox, movable: MovablePods) -> list[DefragTarget]:
        """The candidate nodes, in node order."""

    def reached(self, sandbox: Sandbox, target: DefragTarget) -> bool:
        """Whether the goal is reached now."""

    def may_do(self, sandbox: Sandbox, target: DefragTarget, leaving: Sequence[Victim]) -> bool:
        """Whether the goal may be reached if these pods leave; a check before anything moves."""


class MovablePods:
    """Which pods may be moved, and why the others may not. Cached by pod."""

    __slots__ = ("_allowances", "_evictions", "_rules", "_sandbox")

    def __init__(self, sandbox: Sandbox, rules: DrainRules) -> None:
        self._sandbox = sandbox
        self._rules = rules
        self._allowances = Allowances(sandbox.cluster.objects.budgets.values())
        self._evictions: dict[str, tuple[EvictionOutcome, str]] = {}

    def judge(self, key: str) -> tuple[EvictionOutcome, str]:
        """A pod's outcome and, if it may not be moved, why. Moves are sequential, so a budget must allow only one."""
        found = self._evictions.get(key)
        if found is None:
            pod = self._sandbox.pods[key]
            judged = self._rules.judge(pod)
            refusal = self._allowances.refusal(pod) if judged.outcome is EvictionOutcome.MOVES else ""
            found = self._evictions[key] = (
                (EvictionOutcome.REFUSED, refusal) if refusal else (judged.outcome, judged.why)
            )
        return found

    def on(self, name: str) -> list[str]:
        """The pods on a node that may be moved."""
        return [key for key in self._sandbox.pods_on(name) if self.judge(key)[0] is EvictionOutcome.MOVES]

    def stuck(self, name: str) -> list[tuple[str, str]]:
        """The pods on a node that should move and may not, and why."""
        judged = [(key, *self.judge(key)) for key in self._sandbox.pods_on(name)]
        return [
            (key, why) for key, outcome, why in judged if outcome in (EvictionOutcome.REFUSED, EvictionOutcome.ENDS)
        ]


def victim(sandbox: Sandbox, key: str) -> Victim:
    pods = sandbox.cluster.pods
    kind = pods.kind(pods.rows[key])
    return Victim(key, kind.id, dict(kind.takes))


# -- one more pod of a shape -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShapeGoal:
    """One more of this pod fits."""

    pod: Pod

    def targets(self, sandbox: Sandbox, movable: MovablePods) -> list[DefragTarget]:
        profile = sandbox.framework(self.pod).profile
        view, kind = View(sandbox.cluster), sandbox.cluster.class_of(self.pod)
        filtered = run_filters(profile, kind, view)
        helps = diagnose(profile, kind, view, filtered).eviction_helps
        found = []
        for row in np.flatnonzero(filtered.feasible | helps).tolist():
            lacks = shortage(sandbox, kind.asks, row)
            name = sandbox.name(row)
            if filtered.feasible[row]:
                found.append(DefragTarget(row, name, 0, (), {}, all_go=False))
                continue
            victims = [victim(sandbox, key) for key in movable.on(name)]
            least = fewest(victims, lacks)
            if least is not None:
                found.append(DefragTarget(row, name, least, tuple(victims), lacks, all_go=False))
        return found

    def reached(self, sandbox: Sandbox, target: DefragTarget) -> bool:
        return bool(sandbox.feasible(self.pod)[target.row])

    def may_do(self, sandbox: Sandbox, target: DefragTarget, leaving: Sequence[Victim]) -> bool:
        cluster = sandbox.cluster
        gone = [cluster.pods.bound(cluster.pods.rows[one.key]) for one in leaving]
        filters = sandbox.framework(self.pod).profile.filters
        return fits_at(filters, cluster.class_of(self.pod), View(cluster).without(gone), target.row)


def shortage(sandbox: Sandbox, asks: Sequence[tuple[int, int]], row: int) -> dict[int, int]:
    """What a node is short of, by resource column."""
    nodes = sandbox.cluster.nodes
    lacks = {
        column: amount - (int(nodes.allocatable[column, row]) - int(nodes.requested[column, row]))
        for column, amount in asks
    }
    return {column: amount for column, amount in lacks.items() if amount > 0}


def fewest(victims: Sequence[Victim], lacks: Sizes) -> int | None:
    """A lower bound of how many pods must leave to free the shortage; None if all together do not suffice.

    Computed for each resource separately, from the pods that hold most of it.
    """
    least = 1
    for column, amount in lacks.items():
        left, taken = amount, 0
        for held in sorted((one.holds.get(column, 0) for one in victims), reverse=True):
            if left <= 0:
                break
            left -= held
            taken += 1
        if left > 0:
            return None
        least = max(least, taken)
    return least if len(victims) >= least else None


# -- a node without pods -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeGoal:
    """A node has only its own pods left: the named one, or any."""

    name: str = ""

    def targets(self, sandbox: Sandbox, movable: MovablePods) -> list[DefragTarget]:
        names = [self.name] if self.name else [node.metadata.name for node in sandbox.nodes()]
        found = []
        for name in names:
            if not movable.stuck(name):
                victims = tuple(victim(sandbox, key) for key in movable.on(name))
                found.append(DefragTarget(sandbox.row(name), name, len(victims), victims, {}, all_go=True))
        return found

    def reached(self, sandbox: Sandbox, target: DefragTarget) -> bool:
        gone = {one.key: None for one in target.victims}
        return not any(key in gone for key in sandbox.pods_on(target.name))

    def may_do(self, sandbox: Sandbox, target: DefragTarget, leaving: Sequence[Victim]) -> bool:
        return len(leaving) == len(target.victims)


# -- whom to move ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class VictimChoices:
    """The choices of `size` pods of a target that free the shortage, smallest total first."""

    target: DefragTarget
    size: int
    room: Mapping[int, int]
    """The node's allocatable amounts by resource column, to compare sizes."""
    complete: bool = True
    """Whether no limit cut the enumeration short."""

    def found(self) -> list[tuple[Victim, ...]]:
        ordered = sorted(self.target.victims, key=lambda one: (-self.weight(one), one.kind, one.key))
        if self.target.all_go or self.size > len(ordered):
            return [tuple(ordered)] if self.size == len(ordered) else []
        different: dict[tuple[int, ...], tuple[Victim, ...]] = {}
        for count, choice in enumerate(self._choices(ordered)):
            if count >= COMBINATIONS:
                self.complete = False
                break
            different.setdefault(tuple(sorted(one.kind for one in choice)), choice)
        thought = sorted(
            different.values(), key=lambda choice: (sum(map(self.weight, choice)), [one.key for one in choice])
        )
        self.complete &= len(thought) <= COVERS
        return thought[:COVERS]

    def weight(self, one: Victim) -> float:
        """The size of a pod: its dominant share of the node."""
        return max((held / self.room[column] for column, held in one.holds.items() if self.room.get(column)), default=0)

    def _choices(self, ordered: Sequence[Victim]) -> Iterator[tuple[Victim, ...]]:
        columns = list(self.target.lacks)
        held = [[one.holds.get(column, 0) for column in columns] for one in ordered]
        best = _best_from(held, len(columns))

        def go_on(start: int, left: int, lacks: list[int], chosen: tuple[Victim, ...]) -> Iterator[tuple[Victim, ...]]:
            if not left:
                if all(amount <= 0 for amount in lacks):
                    yield chosen
                return
            for at in range(start, len(ordered) - left + 1):
                if all(amount <= left * most for amount, most in zip(lacks, best[at], strict=True)):
                    after = [amount - one for amount, one in zip(lacks, held[at], strict=True)]
                    yield from go_on(at + 1, left - 1, after, (*chosen, ordered[at]))

        yield from go_on(0, self.size, [self.target.lacks[column] for column in columns], ())


def _best_from(held: Sequence[Sequence[int]], width: int) -> list[list[int]]:
    """For each index, the maximum that one pod from there on holds of each resource."""
    best = [[0] * width for _ in range(len(held) + 1)]
    for at in range(len(held) - 1, -1, -1):
        best[at] = [max(one, more) for one, more in zip(held[at], best[at + 1], strict=True)]
    return best


def room_of(sandbox: Sandbox, row: int) -> dict[int, int]:
    nodes = sandbox.cluster.nodes
    return {column: int(nodes.allocatable[column, row]) for column in range(len(nodes.allocatable))}
