"""The core/v1 Event of a controller's RecordEvent. Pure."""

from __future__ import annotations

from typing import Any

from situate.core.reconcile.effects import RecordEvent


def space_of(event: RecordEvent) -> str:
    """The namespace of the object; `default` if it has none."""
    return event.ref.namespace or "default"


def event_name(event: RecordEvent, now_ns: int, count: int) -> str:
    """`count` tells events of one moment apart."""
    return f"{event.ref.name}.{now_ns:x}{count % 4096:03x}"


def event_body(event: RecordEvent, name: str, now: str, component: str = "") -> dict[str, Any]:
    """`component`: the reporter, if that is not the controller of the object's kind."""
    ref = event.ref
    involved = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": ref.uid}
    if ref.namespace:
        involved["namespace"] = ref.namespace
    component = component or f"{ref.kind.lower()}-controller"
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
