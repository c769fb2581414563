"""A rehearsal as plain values for programs: what `-o json` and `-o yaml` print. docs/COMMANDS.md lists the keys."""

from __future__ import annotations

from typing import Any

from situate.cli.commands.place.rehearsal import Outcome, Placement, Rehearsed
from situate.cli.commands.place.summary import Finding, NodeRefused, Ranked, Refused
from situate.cli.output import money


def as_values(rehearsed: Rehearsed) -> dict[str, Any]:
    """Every key is always there; what does not apply is null or empty."""
    placements = rehearsed.placements
    counts = {outcome.value: sum(one.outcome is outcome for one in placements) for outcome in Outcome}
    evicted = sum(len(one.evicted) for one in placements)
    spent = None
    if rehearsed.money is not None:
        spent = dict(zip(("before", "after"), map(money.as_values, rehearsed.money), strict=True))
    summary = {"nodes": rehearsed.node_count, "pods": len(placements), **counts, "evicted": evicted, "money": spent}
    return {
        "summary": summary,
        "pods": [_pod(placement) for placement in placements],
    }


def _pod(placement: Placement) -> dict[str, Any]:
    pod, finding = placement.pod, placement.finding
    ranked = finding.chosen if finding is not None else None
    values: dict[str, Any] = {
        "pod": placement.key,
        "schedulerName": pod.spec.scheduler_name,
        "priority": pod.spec.priority or 0,
        "outcome": placement.outcome.value,
        "node": placement.node or None,
        "score": None if ranked is None else ranked.total,
        "scores": None if ranked is None else dict(ranked.scores),
        "runnerUp": None,
        "feasible": None,
        "refusals": [],
        "evicted": list(placement.evicted),
        "message": placement.message,
    }
    if placement.annotations:
        values["annotations"] = dict(placement.annotations)
    if finding is not None:
        values |= _found(finding)
    return values


def _found(finding: Finding) -> dict[str, Any]:
    values: dict[str, Any] = {
        "runnerUp": None if finding.runner_up is None else _ranked(finding.runner_up),
        "feasible": finding.feasible,
        "refusals": [_refused(one) for one in finding.refused],
    }
    if finding.every_node is not None:
        values["nodes"] = [_ranked(one) if isinstance(one, Ranked) else _node(one) for one in finding.every_node]
    return values


def _ranked(ranked: Ranked) -> dict[str, Any]:
    return {"node": ranked.node, "score": ranked.total, "scores": dict(ranked.scores)}


def _refused(refused: Refused) -> dict[str, Any]:
    return {
        "reason": refused.reason,
        "plugin": refused.plugin or None,
        "code": refused.code,
        "count": refused.count,
        "examples": list(refused.examples),
    }


def _node(refused: NodeRefused) -> dict[str, Any]:
    return {
        "node": refused.node,
        "plugin": refused.plugin or None,
        "code": refused.code,
        "reasons": list(refused.reasons),
    }
