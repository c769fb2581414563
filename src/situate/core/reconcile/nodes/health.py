"""One node: its conditions if it is silent, and the taints of its conditions."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from situate.core.model.managed_node import ManagedNode, TimedTaint
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition
from situate.core.reconcile.api_values import format_time
from situate.core.reconcile.effects import PatchStatus, ReconcileResult, RecordEvent, ResultBuilder, UpdateObject
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.taints import is_up, ready_report, wanted_taints
from situate.core.reconcile.objects import ref_of, to_json

UNKNOWN = "Unknown"
STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
_SPOKEN_FOR = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""Conditions that become Unknown when the agent is silent. Others are not the agent's."""


def reconcile_node(one: ManagedNode, heartbeats: Heartbeats, now: Millis) -> ReconcileResult:
    """Set a silent node to Unknown; its taints follow its conditions."""
    result, profile = ResultBuilder(), heartbeats.profile
    patience = profile.startup_ms if ready_report(one) is None else profile.grace_ms
    due = heartbeats.silent_at(one.metadata.name, patience)
    if due is not None and due > now:
        result.requeue(due)
    elif due is not None:
        reports = silenced(one, now)
        if reports != one.status.conditions:
            _fall_silent(one, reports, result)
            return result.done()  # the taints follow when this is stored
    taints = wanted_taints(one, now)
    if taints != one.spec.taints:
        result.effects.append(retainted(one, taints))
    return result.done()


def silenced(one: ManagedNode, now: Millis) -> tuple[Condition, ...]:
    """The conditions of a silent node."""
    reports = [_unknown(report, now) if report.type in _SPOKEN_FOR else report for report in one.status.conditions]
    had = [report.type for report in reports]
    reason, message = NEVER
    reports += [
        Condition(
            type=kind,
            status=UNKNOWN,
            last_heartbeat_time=one.metadata.creation_timestamp,
            last_transition_time=format_time(now),
            reason=reason,
            message=message,
        )
        for kind in _SPOKEN_FOR
        if kind not in had
    ]
    return tuple(reports)


def _unknown(report: Condition, now: Millis) -> Condition:
    if report.status == UNKNOWN:
        return report
    reason, message = STOPPED
    return replace(report, status=UNKNOWN, reason=reason, message=message, last_transition_time=format_time(now))


def _fall_silent(one: ManagedNode, reports: tuple[Condition, ...], result: ResultBuilder) -> None:
    conditions = [to_json(report) for report in reports]
    result.effects.append(PatchStatus(ref_of(one), one.metadata.resource_version, {"conditions": conditions}))
    if is_up(one):
        text = f"Node {one.metadata.name} status is now: NodeNotReady"
        result.effects.append(RecordEvent(ref_of(one), "Normal", "NodeNotReady", text))


def retainted(one: ManagedNode, taints: tuple[TimedTaint, ...]) -> UpdateObject:
    """Replace the taints of a node."""
    body: list[dict[str, Any]] = [to_json(taint) for taint in taints]
    return UpdateObject(ref_of(one), one.metadata.resource_version, {"spec": {"taints": body or None}})
