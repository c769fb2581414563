"""The explanation of a pod as plain values for programs. docs/WHY.md lists the keys."""

from __future__ import annotations

from typing import Any

import msgspec

from situate.cli.commands.why.waiting import Waiting
from situate.core.explain.detail import VerdictDetail
from situate.core.explain.explanation import Explanation, NodeExplanation, NodeScores, Verdict
from situate.core.explain.suggestions import Suggestion


def as_values(told: Explanation, waiting: Waiting) -> dict[str, Any]:
    """Every key is always there; what does not apply is null or empty."""
    meta, spec = told.pod.metadata, told.pod.spec
    return {
        "pod": f"{meta.namespace}/{meta.name}",
        "standing": told.state.value,
        "message": told.message,
        "schedulerName": spec.scheduler_name,
        "profile": told.profile,
        "priority": spec.priority or 0,
        "node": told.node or None,
        "rank": told.rank or None,
        "nodes": told.node_count,
        "feasible": told.feasible,
        "waiting": {
            "since": waiting.since or None,
            "refusedSince": waiting.refused_since or None,
            "reason": waiting.reason or None,
            "recordedMessage": waiting.recorded or None,
            "attempts": waiting.attempts or None,
            "attemptsFrom": waiting.attempts_from or None,
            "lastTry": waiting.last_try or None,
        },
        "verdicts": [_verdict(one) for one in told.verdicts],
        "scores": [_scores(one) for one in told.scores],
        "preemption": None
        if told.preemption is None
        else {"node": told.preemption.node, "victims": list(told.preemption.victims)},
        "wakesOn": [{"change": change, "plugins": list(plugins)} for change, plugins in told.wakes],
        "ways": [_way(one) for one in told.suggestions],
        "oneNode": None if told.one is None else _one(told.one),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "plugin": verdict.plugin,
        "reason": verdict.text,
        "nodes": verdict.count,
        "firstOn": verdict.first,
        "evictionHelpsOn": verdict.eviction_helps,
        "examples": list(verdict.nodes),
        "ofPod": verdict.of_pod,
        "details": [_detail(one) for one in verdict.details],
    }


def _detail(detail: VerdictDetail) -> dict[str, Any]:
    return {
        "text": detail.text,
        "nodes": detail.count,
        "examples": list(detail.nodes),
        "values": msgspec.to_builtins(dict(detail.values)),
    }


def _scores(scores: NodeScores) -> dict[str, Any]:
    return {"node": scores.node, "score": scores.total, "scores": dict(scores.plugins)}


def _way(way: Suggestion) -> dict[str, Any]:
    return {
        "text": way.text,
        "steps": [
            {
                "kind": step.kind.name.lower(),
                "text": step.text,
                "object": step.subject,
                "field": step.field or None,
                "value": step.value,
            }
            for step in way.actions
        ],
        "fits": way.fit_count,
        "examples": list(way.fits),
    }


def _one(one: NodeExplanation) -> dict[str, Any]:
    return {
        "node": one.node,
        "fits": not one.verdicts,
        "verdicts": [_verdict(verdict) for verdict in one.verdicts],
        "nothingAgainst": list(one.silent),
        "scores": None if one.scores is None else _scores(one.scores),
    }
