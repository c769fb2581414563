"""What waits: the pending pods, those of one workload with one reason in one row. The longest wait comes first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from situate.core.explain.formatting import roughly
from situate.core.gang.naming import gang_of
from situate.core.model.meta import controller_of
from situate.core.model.pod import Pod
from situate.core.model.requests import fit_requests
from situate.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from situate.web.limits import MAX_WAITING

SCHEDULED: Final = "PodScheduled"
NOT_TRIED: Final = "its scheduler has not tried it yet"
GATED: Final = "it has scheduling gates: {}"
NAMED: Final = 20
"""Pods that a row names."""


@dataclass(slots=True)
class _Row:
    pod: Pod
    message: str
    reason: str
    since: str
    names: list[str] = field(default_factory=list)
    count: int = 0
    nominated: dict[str, None] = field(default_factory=dict)


def waiting_rows(pending: Iterable[Pod]) -> dict[str, Any]:
    """The rows, and how many pods and rows there are in all."""
    rows: dict[tuple[str, str, str, str], _Row] = {}
    total = 0
    for pod in pending:
        total += 1
        meta = pod.metadata
        reason, message = why_waiting(pod)
        owner = controller_of(meta)
        name = f"{owner.kind}/{owner.name}" if owner is not None else f"Pod/{meta.name}"
        key = (meta.namespace, name, reason, message)
        row = rows.get(key)
        since = meta.creation_timestamp or ""
        if row is None:
            row = rows[key] = _Row(pod, message, reason, since)
        row.count += 1
        row.since = min(row.since, since)
        if len(row.names) < NAMED:
            row.names.append(meta.name)
        if pod.status.nominated_node_name:
            row.nominated[pod.status.nominated_node_name] = None
    ordered = sorted(rows.items(), key=lambda one: (one[1].since, one[0]))
    shown = [_value(key, row) for key, row in ordered[:MAX_WAITING]]
    return {"pods": total, "rows": shown, "more": max(0, len(ordered) - MAX_WAITING)}


def why_waiting(pod: Pod) -> tuple[str, str]:
    """The reason and the message that its scheduler wrote."""
    if pod.spec.scheduling_gates:
        return "SchedulingGated", GATED.format(", ".join(gate.name for gate in pod.spec.scheduling_gates))
    for condition in pod.status.conditions:
        if condition.type == SCHEDULED and condition.status == "False":
            return condition.reason or "Unschedulable", condition.message
    return "", NOT_TRIED


def _value(key: tuple[str, str, str, str], row: _Row) -> dict[str, Any]:
    namespace, owner, _, _ = key
    gang = gang_of(row.pod)
    return {
        "namespace": namespace,
        "owner": owner,
        "pods": row.names,
        "count": row.count,
        "since": row.since,
        "reason": row.reason,
        "message": row.message,
        "requests": amounts_of(row.pod),
        "priority": row.pod.spec.priority or 0,
        "scheduler": row.pod.spec.scheduler_name,
        "nominated": list(row.nominated)[:NAMED],
        "group": "" if gang is None else gang.name,
    }


def amounts_of(pod: Pod) -> dict[str, str]:
    """What a pod requests, as people write it."""
    asked = fit_requests(pod)
    fixed = {CPU: asked.milli_cpu, MEMORY: asked.memory, EPHEMERAL_STORAGE: asked.ephemeral_storage}
    return {name: roughly(name, amount) for name, amount in (*fixed.items(), *asked.scalar.items()) if amount}
