"""What happened to a placement, in one line: read off a PlacementDecision as it was and as it is. Pure.

A decision is written in the transaction of its pod, so each revision of it is something that happened, and nothing that
happens to a placement is without one. What tells nothing new, as a pod that waits on for the same reason, is no event.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from situate.server.placing.decisions import PlacementDecision
from situate.server.placing.phases import Phase
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import BY_KIND, Resource

__all__ = ["EVENTS", "PLACEMENT_EVENTS", "PlacementEvent", "event_between", "stored_event", "with_reason"]

PLACEMENT_EVENTS: Final[Resource] = BY_KIND["situate.dev/v1alpha1", "PlacementEvent"]

EventKind: TypeAlias = Literal[
    "waiting",
    "placed",
    "bound",
    "running",
    "repaired",
    "succeeded",
    "failed",
    "evicted",
    "rebinding",
    "gone",
]
EVENTS: Final[Mapping[Phase, EventKind]] = {
    "pending": "waiting",
    "reserved": "placed",
    "bound": "bound",
    "running": "running",
    "succeeded": "succeeded",
    "failed": "failed",
    "evicted": "evicted",
    "rebinding": "rebinding",
}
FROM_THE_POD: Final = ("failed", "evicted", "gone")
"""Events whose reason only the pod knows."""


class _Pod(Struct, frozen=True, gc=False):
    name: str
    uid: str


class PlacementEvent(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One thing that happened to one placement."""

    event: EventKind
    phase: Phase
    """Of the binding, from here on; of one that is gone, its last."""
    pod: _Pod
    was: Phase | None = None
    """The phase before; None: nothing was ever decided about this pod."""
    time: str = ""
    """When the phase began, by the server's clock, to the second; of one that is gone, when it was asked to go."""
    node: str = ""
    binding_version: int = 0
    scheduler: str = ""
    reason: str = ""
    message: str = ""


class _Meta(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    name: str
    namespace: str
    creation_timestamp: str | None = None


_encode: Final = msgspec.json.Encoder().encode


def event_between(before: PlacementDecision | None, after: PlacementDecision | None) -> PlacementEvent | None:
    """What one revision of a decision tells; None: nothing new."""
    one = after or before
    if one is None or one.phase is None:
        return None
    pod = _Pod(one.metadata.name, one.spec.pod_uid)
    spec, status, phase = one.spec, one.status, one.phase
    if after is None:
        return PlacementEvent("gone", phase, pod, phase, "", spec.node, spec.binding_version, spec.scheduler)
    same_pod = before is not None and before.spec.pod_uid == spec.pod_uid
    if before is not None and same_pod and _same(before, after):
        return None
    event: EventKind = EVENTS[phase]
    was = before.phase if before is not None and same_pod else None
    if event == "running" and spec.binding_version > 1 and was in ("bound", None):
        event = "repaired"
    told = phase in ("pending", "reserved", "rebinding")
    return PlacementEvent(
        event,
        phase,
        pod,
        was,
        status.phases[-1].at if status.phases else "",
        spec.node,
        spec.binding_version,
        spec.scheduler,
        status.reason if told else "",
        status.message if told else "",
    )


def _same(before: PlacementDecision, after: PlacementDecision) -> bool:
    """Whether nothing happened but that it was tried again, or explained anew."""
    if (before.phase, before.spec.node, before.spec.binding_version) != (
        after.phase,
        after.spec.node,
        after.spec.binding_version,
    ):
        return False
    waits = after.phase in ("pending", "rebinding")
    return not waits or (before.status.reason, before.status.message) == (after.status.reason, after.status.message)


def with_reason(event: PlacementEvent, pod: Mapping[str, Any]) -> PlacementEvent:
    """The event with what the pod says of it, at that revision or, of one that is gone, just before."""
    status = pod.get("status", {})
    conditions = status.get("conditions") or ()
    marked: Mapping[str, Any] = next((one for one in conditions if one.get("type") == "DisruptionTarget"), {})
    if event.event == "failed" or not marked:
        ended = _ended(status)
        reason = status.get("reason") or ended.get("reason", "")
        message = status.get("message") or ended.get("message", "")
    else:
        reason, message = marked.get("reason", ""), marked.get("message", "")
    return msgspec.structs.replace(event, reason=reason, message=message, time=event.time or _asked_to_go(pod))


def _asked_to_go(pod: Mapping[str, Any]) -> str:
    """When it was asked to go; empty for one that was not given time for it."""
    meta = pod.get("metadata", {})
    due, grace_s = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds", 0)
    if not due:
        return ""
    return (datetime.fromisoformat(due) - timedelta(seconds=grace_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ended(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the first container that failed ended."""
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        ended: Mapping[str, Any] = one.get("state", {}).get("terminated") or {}
        if ended.get("exitCode"):
            return ended
    return {}


def stored_event(event: PlacementEvent, namespace: str, revision: int) -> StoredObject:
    """The event as an object, in stored form."""
    name = f"{event.pod.name}.{revision}"
    value = _encode({"metadata": _Meta(name, namespace, event.time or None), **msgspec.to_builtins(event)})
    return StoredObject(f"{namespace}/{name}", namespace, name, revision, value, "", {}, ())
