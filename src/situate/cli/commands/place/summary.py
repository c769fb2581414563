"""What was found about one pod, in a few words: a decision without its columns, which thousands of pods could not keep.

Reads a decision; decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

import numpy as np

from situate.core.contract import status_code
from situate.core.engine.decision import Decision
from situate.core.place.diagnosis import Diagnosis

EXAMPLES: Final = 3
"""How many of the nodes that were refused for one reason are named."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The nodes that one plugin refused for one reason. A node that lacks two things is in two of these."""

    plugin: str
    """Empty for nodes that were ruled out before anybody looked at them."""
    reason: str
    code: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A node that fits: its weighed scores by plugin, and their sum."""

    node: str
    total: int
    scores: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeRefused:
    """A node that does not: who refused it first, and why."""

    node: str
    plugin: str
    code: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Which nodes fit, which is best, and what speaks against the others."""

    node_count: int
    feasible: int
    chosen: Ranked | None
    runner_up: Ranked | None
    refused: tuple[Refused, ...]
    """Empty where nobody asked for it, too."""
    message: str
    """The text of the FailedScheduling event; empty where a node was found."""
    remedy: str
    """What preemption had to say: the end of the message."""
    every_node: tuple[Ranked | NodeRefused, ...] | None
    """In node order; None where nobody asked for it."""


@unique
class Detail(Enum):
    """How much is kept of a decision. What nobody is going to look at takes time at thousands of nodes."""

    PLACE = 0
    REASONS = 1
    EVERY_NODE = 2


def summarise(decision: Decision, names: Sequence[str], row: int | None, detail: Detail) -> Finding:
    """`names` are the node names by row, `row` that of the node that the pod takes, if one was feasible."""
    feasible = np.flatnonzero(decision.filtered.feasible).tolist()
    return Finding(
        node_count=decision.diagnosis.node_count,
        feasible=len(feasible),
        chosen=None if row is None else _ranked(decision, names, row),
        runner_up=None if row is None else _runner_up(decision, names, row),
        refused=() if detail is Detail.PLACE else _refused(decision.diagnosis, names),
        message=decision.message,
        remedy="" if decision.post_filter is None else decision.post_filter.message,
        every_node=_every_node(decision, names, feasible) if detail is Detail.EVERY_NODE else None,
    )


def _ranked(decision: Decision, names: Sequence[str], row: int) -> Ranked:
    scored = decision.scored
    if scored is None:
        raise LookupError(f"node row {row} has no score")
    scores = {plugin: int(column[row]) for plugin, column in scored.by_plugin.items()}
    return Ranked(names[row], int(scored.total[row]), scores)


def _runner_up(decision: Decision, names: Sequence[str], row: int) -> Ranked | None:
    """The best of the others, the first in node order among equals."""
    others = decision.filtered.feasible.copy()
    others[row] = False
    if decision.scored is None or not others.any():
        return None
    rows = np.flatnonzero(others)
    return _ranked(decision, names, int(rows[decision.scored.total[rows].argmax()]))


def _refused(diagnosis: Diagnosis, names: Sequence[str]) -> tuple[Refused, ...]:
    """By reason, what refuses most first."""
    helps = diagnosis.eviction_helps
    told = [(one.plugin, one.text, one.rows) for one in diagnosis.rejections]
    if diagnosis.absent_text:
        told.append(("", diagnosis.absent_text, diagnosis.absent))
    found = [
        Refused(plugin, text, status_code(may_help), len(rows), tuple(names[row] for row in rows[:EXAMPLES].tolist()))
        for plugin, text, mask in told
        for may_help in (True, False)
        if (rows := np.flatnonzero(mask & (helps if may_help else ~helps))).size
    ]
    return tuple(sorted(found, key=lambda one: (-one.count, one.plugin, one.reason, one.code)))


def _every_node(decision: Decision, names: Sequence[str], feasible: list[int]) -> tuple[Ranked | NodeRefused, ...]:
    diagnosis = decision.diagnosis
    found: dict[int, Ranked | NodeRefused] = {row: _ranked(decision, names, row) for row in feasible}
    for row, refusal in diagnosis.refusals.items():
        found[row] = NodeRefused(names[row], refusal.plugin, refusal.code, refusal.reasons)
    for row in np.flatnonzero(diagnosis.absent).tolist():
        code = status_code(eviction_helps=False)
        found[row] = NodeRefused(names[row], "", code, (diagnosis.absent_text,))
    return tuple(found[row] for row in sorted(found))
