"""Placement events: derived from a PlacementDecision before and after a change. Pure.

A decision is written in the transaction of its pod, so every step of a placement is a revision of it. A revision
without news, such as a pod that is still pending for the same reason, is no event.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from situate.core.model.duration import MAX_SECONDS
from situate.server.placing.decisions import PlacementDecision
from situate.server.placing.phases import Phase
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import BY_KIND, Resource

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
"""Events whose reason is in the pod."""


class _Pod(Struct, frozen=True, gc=False):
    name: str
    uid: str


class PlacementEvent(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One event of one placement."""

    event: EventKind
    phase: Phase
    """Of the binding, from here on; for `gone`, its last."""
    pod: _Pod
    was: Phase | None = None
    """The phase before; None: there was no decision about this pod."""
    time: str = ""
    """When the phase started, by the server's clock, to the second; for `gone`, when the deletion was requested."""
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
    """The event of one revision of a decision; None: nothing new."""
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
    """Whether only the attempts or the explanation changed."""
    if (before.phase, before.spec.node, before.spec.binding_version) != (
        after.phase,
        after.spec.node,
        after.spec.binding_version,
    ):
        return False
    waits = after.phase in ("pending", "rebinding")
    return not waits or (before.status.reason, before.status.message) == (after.status.reason, after.status.message)


def with_reason(event: PlacementEvent, pod: Mapping[str, Any]) -> PlacementEvent:
    """The event with the reason in the pod, at that revision or, for `gone`, just before."""
    status = pod.get("status", {})
    conditions = status.get("conditions") or ()
    marked: Mapping[str, Any] = next((one for one in conditions if one.get("type") == "DisruptionTarget"), {})
    if event.event == "failed" or not marked:
        ended = _termination(status)
        reason = status.get("reason") or ended.get("reason", "")
        message = status.get("message") or ended.get("message", "")
    else:
        reason, message = marked.get("reason", ""), marked.get("message", "")
    return msgspec.structs.replace(event, reason=reason, message=message, time=event.time or _deletion_requested(pod))


def _deletion_requested(pod: Mapping[str, Any]) -> str:
    """When the deletion was requested; "" if it was immediate."""
    meta = pod.get("metadata", {})
    due, grace_s = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds", 0)
    if not due:
        return ""
    return (datetime.fromisoformat(due) - timedelta(seconds=min(grace_s, MAX_SECONDS))).strftime("%Y-%m-%dT%H:%M:%SZ")


def _termination(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The termination of the first container that failed."""
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
