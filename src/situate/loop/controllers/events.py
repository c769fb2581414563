"""The Event of core/v1 that a controller's RecordEvent comes to, whoever keeps it. Pure."""

from __future__ import annotations

from typing import Any

from situate.core.reconcile.effects import RecordEvent

__all__ = ["event_body", "event_name", "space_of"]


def space_of(event: RecordEvent) -> str:
    """Where it is kept: beside the object, or, if that has no namespace, in the default one."""
    return event.ref.namespace or "default"


def event_name(event: RecordEvent, now_ns: int, count: int) -> str:
    """Of several in one moment, `count` tells them apart."""
    return f"{event.ref.name}.{now_ns:x}{count % 4096:03x}"


def event_body(event: RecordEvent, name: str, now: str) -> dict[str, Any]:
    ref = event.ref
    involved = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": ref.uid}
    if ref.namespace:
        involved["namespace"] = ref.namespace
    component = f"{ref.kind.lower()}-controller"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": space_of(event)},
        "involvedObject": involved,
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
