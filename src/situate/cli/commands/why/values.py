"""The explanation of a pod as plain values for programs. docs/guides/why.md lists the keys."""

from typing import Any

import msgspec

from situate.cli.commands.why.waiting import Waiting
from situate.core.explain.detail import VerdictDetail
from situate.core.explain.explanation import Explanation, NodeExplanation, NodeScores, Verdict
from situate.core.explain.suggestions import Suggestion


def as_values(explanation: Explanation, waiting: Waiting, unserved: str = "") -> dict[str, Any]:
    """Every key is always there; what does not apply is null or empty."""
    meta, spec = explanation.pod.metadata, explanation.pod.spec
    return {
        "pod": f"{meta.namespace}/{meta.name}",
        "standing": explanation.state.value,
        "message": explanation.message,
        "schedulerName": spec.scheduler_name,
        "profile": explanation.profile,
        "unserved": unserved or None,
        "priority": spec.priority or 0,
        "node": explanation.node or None,
        "rank": explanation.rank or None,
        "nodes": explanation.node_count,
        "feasible": explanation.feasible,
        "waiting": waiting_values(waiting),
        "waitingClaims": list(explanation.waiting_claims),
        "verdicts": [_verdict(one) for one in explanation.verdicts],
        "scores": [_scores(one) for one in explanation.scores],
        "preemption": None
        if explanation.preemption is None
        else {"node": explanation.preemption.node, "victims": list(explanation.preemption.victims)},
        "wakesOn": [{"change": change, "plugins": list(plugins)} for change, plugins in explanation.wakes],
        "ways": [_way(one) for one in explanation.suggestions],
        "oneNode": None if explanation.one is None else _one(explanation.one),
    }


def waiting_values(waiting: Waiting) -> dict[str, Any]:
    return {
        "since": waiting.since or None,
        "refusedSince": waiting.refused_since or None,
        "reason": waiting.reason or None,
        "recordedMessage": waiting.recorded or None,
        "attempts": waiting.attempts or None,
        "attemptsFrom": waiting.attempts_from or None,
        "lastTry": waiting.last_try or None,
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
