"""A rehearsal as plain values for programs. docs/reference/commands.md lists the keys."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from situate.cli.commands.place.rehearsal import Placement, PlacementOutcome, Rehearsed
from situate.cli.commands.place.summary import PodSummary, RefusalSummary, RefusedNode
from situate.cli.output import money
from situate.core.explain.explanation import NodeScores
from situate.core.model.devices import ResourceClaim


def as_values(rehearsed: Rehearsed) -> dict[str, Any]:
    """Every key is always there; what does not apply is null or empty."""
    placements = rehearsed.placements
    counts = {outcome.value: sum(one.outcome is outcome for one in placements) for outcome in PlacementOutcome}
    evicted = sum(len(one.evicted) for one in placements)
    spent = None
    if rehearsed.money is not None:
        spent = dict(zip(("before", "after"), map(money.as_values, rehearsed.money), strict=True))
    totals = {"nodes": rehearsed.node_count, "pods": len(placements), **counts, "evicted": evicted, "money": spent}
    return {"summary": totals, "pods": [_pod(placement) for placement in placements]}


def _pod(placement: Placement) -> dict[str, Any]:
    pod, summary = placement.pod, placement.summary
    ranked = summary.chosen if summary is not None else None
    values: dict[str, Any] = {
        "pod": placement.key,
        "schedulerName": pod.spec.scheduler_name,
        "priority": pod.spec.priority or 0,
        "outcome": placement.outcome.value,
        "node": placement.node or None,
        "score": None if ranked is None else ranked.total,
        "scores": None if ranked is None else dict(ranked.plugins),
        "runnerUp": None,
        "feasible": None,
        "refusals": [],
        "evicted": list(placement.evicted),
        "devices": device_values(placement.devices),
        "message": placement.message,
    }
    if placement.annotations:
        values["annotations"] = dict(placement.annotations)
    if summary is not None:
        values |= _found(summary)
    return values


def device_values(claims: Iterable[ResourceClaim]) -> list[dict[str, str]]:
    """The devices of some claims, one after another."""
    return [
        {
            "claim": claim.metadata.name,
            "request": one.request,
            "driver": one.driver,
            "pool": one.pool,
            "device": one.device,
        }
        for claim in claims
        if claim.status.allocation is not None
        for one in claim.status.allocation.devices.results
    ]


def _found(summary: PodSummary) -> dict[str, Any]:
    values: dict[str, Any] = {
        "runnerUp": None if summary.runner_up is None else _ranked(summary.runner_up),
        "feasible": summary.feasible,
        "refusals": [_refused(one) for one in summary.refused],
    }
    if summary.every_node is not None:
        values["nodes"] = [_ranked(one) if isinstance(one, NodeScores) else _refused(one) for one in summary.every_node]
    return values


def _ranked(ranked: NodeScores) -> dict[str, Any]:
    return {"node": ranked.node, "score": ranked.total, "scores": dict(ranked.plugins)}


def _refused(refused: RefusalSummary | RefusedNode) -> dict[str, Any]:
    return {**asdict(refused), "plugin": refused.plugin or None}
