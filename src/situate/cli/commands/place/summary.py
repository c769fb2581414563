"""A short summary of one pod's decision, without its columns: thousands of those would not fit in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

import numpy as np

from situate.core.contract import status_code
from situate.core.engine.decision import Decision
from situate.core.explain.explanation import NodeScores
from situate.core.place.diagnosis import Diagnosis

EXAMPLES: Final = 3
"""How many nodes are named that were refused for the same reason."""


@dataclass(frozen=True, slots=True)
class RefusalSummary:
    """The nodes that one plugin refused for one reason. A node that lacks two things is in two of these."""

    reason: str
    plugin: str
    """Empty for nodes that were ruled out before any plugin ran."""
    code: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusedNode:
    """A node that does not fit: which plugin refused it first, and why."""

    node: str
    plugin: str
    code: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodSummary:
    """Which nodes fit, which is best, and why the others are refused."""

    node_count: int
    feasible: int
    chosen: NodeScores | None
    runner_up: NodeScores | None
    refused: tuple[RefusalSummary, ...]
    """Empty, too, at a lower level of detail."""
    message: str
    """The text of the FailedScheduling event; empty if a node fits."""
    remedy: str
    """What preemption found: the end of the message."""
    every_node: tuple[NodeScores | RefusedNode, ...] | None
    """In node order; None at a lower level of detail."""


@unique
class DetailLevel(Enum):
    """How much of a decision the summary has: more takes time on thousands of nodes."""

    PLACE = 0
    REASONS = 1
    EVERY_NODE = 2


def summarise(decision: Decision, names: Sequence[str], row: int | None, detail: DetailLevel) -> PodSummary:
    """`names` are the node names by row; `row` is the node that the pod takes, if one fits."""
    feasible = np.flatnonzero(decision.filtered.feasible).tolist()
    return PodSummary(
        node_count=decision.diagnosis.node_count,
        feasible=len(feasible),
        chosen=None if row is None else _ranked(decision, names, row),
        runner_up=None if row is None else _runner_up(decision, names, row),
        refused=() if detail is DetailLevel.PLACE else _refused(decision.diagnosis, names),
        message=decision.message,
        remedy="" if decision.post_filter is None else decision.post_filter.message,
        every_node=_every_node(decision, names, feasible) if detail is DetailLevel.EVERY_NODE else None,
    )


def _ranked(decision: Decision, names: Sequence[str], row: int) -> NodeScores:
    scored = decision.scored
    if scored is None:
        raise LookupError(f"node row {row} has no score")
    scores = {plugin: int(column[row]) for plugin, column in scored.by_plugin.items()}
    return NodeScores(names[row], int(scored.total[row]), scores)


def _runner_up(decision: Decision, names: Sequence[str], row: int) -> NodeScores | None:
    """The best of the others, the first in node order among equals."""
    others = decision.filtered.feasible.copy()
    others[row] = False
    if decision.scored is None or not others.any():
        return None
    rows = np.flatnonzero(others)
    return _ranked(decision, names, int(rows[decision.scored.total[rows].argmax()]))


def _refused(diagnosis: Diagnosis, names: Sequence[str]) -> tuple[RefusalSummary, ...]:
    """By reason, the most frequent first."""
    helps = diagnosis.eviction_helps
    rejections = [(one.plugin, one.text, one.rows) for one in diagnosis.rejections]
    if diagnosis.absent_text:
        rejections.append(("", diagnosis.absent_text, diagnosis.absent))
    found = [
        RefusalSummary(
            text, plugin, status_code(may_help), len(rows), tuple(names[row] for row in rows[:EXAMPLES].tolist())
        )
        for plugin, text, mask in rejections
        for may_help in (True, False)
        if (rows := np.flatnonzero(mask & (helps if may_help else ~helps))).size
    ]
    return tuple(sorted(found, key=lambda one: (-one.count, one.plugin, one.reason, one.code)))


def _every_node(decision: Decision, names: Sequence[str], feasible: list[int]) -> tuple[NodeScores | RefusedNode, ...]:
    diagnosis = decision.diagnosis
    found: dict[int, NodeScores | RefusedNode] = {row: _ranked(decision, names, row) for row in feasible}
    for row, refusal in diagnosis.refusals.items():
        found[row] = RefusedNode(names[row], refusal.plugin, refusal.code, refusal.reasons)
    for row in np.flatnonzero(diagnosis.absent).tolist():
        code = status_code(eviction_helps=False)
        found[row] = RefusedNode(names[row], "", code, (diagnosis.absent_text,))
    return tuple(found[row] for row in sorted(found))
