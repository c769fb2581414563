"""How long a pod has waited, and how often it was tried: read off its conditions, events and decision as written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

SCHEDULED: Final = "PodScheduled"
FAILED: Final = ("FailedScheduling",)


@dataclass(frozen=True, slots=True)
class Waited:
    """What is not known is empty, or 0."""

    since: str = ""
    """When it was created."""
    refused_since: str = ""
    """When its condition PodScheduled last changed."""
    reason: str = ""
    """That of the condition: Unschedulable, SchedulingGated, SchedulerError."""
    recorded: str = ""
    """The message of the condition, or of the last event: what its scheduler said then."""
    attempts: int = 0
    attempts_from: str = ""
    """Where that number is from: `PlacementDecision` counts attempts, `events` only those that were told."""
    last_try: str = ""


def waited(written: Iterable[Mapping[str, Any]], namespace: str, name: str) -> Waited:
    """From the pod, its events and its decision, as they are written."""
    told = list(written)
    pods = [one for one in told if one.get("kind") == "Pod" and _is(one, namespace, name)]
    pod = pods[0] if pods else {}
    condition = next((one for one in _dicts(pod, "status", "conditions") if one.get("type") == SCHEDULED), {})
    events = [one for one in told if one.get("kind") == "Event" and _about(one, namespace, name)]
    last = max(events, key=_when, default={})
    decision = next((one for one in told if one.get("kind") == "PlacementDecision" and _is(one, namespace, name)), {})
    counted = sum(_count(event) for event in events)
    attempts = _number(_at(decision, "status", "attempts"))
    return Waited(
        since=_text(_at(pod, "metadata", "creationTimestamp")),
        refused_since=_text(condition.get("lastTransitionTime")) if condition.get("status") == "False" else "",
        reason=_text(condition.get("reason")) if condition.get("status") == "False" else "",
        recorded=_text(condition.get("message")) or _text(last.get("message")),
        attempts=attempts or counted,
        attempts_from="PlacementDecision" if attempts else "events" if counted else "",
        last_try=_when(last),
    )


def _is(one: Mapping[str, Any], namespace: str, name: str) -> bool:
    return _at(one, "metadata", "name") == name and (_at(one, "metadata", "namespace") or "default") == namespace


def _about(event: Mapping[str, Any], namespace: str, name: str) -> bool:
    whom = event.get("involvedObject") or event.get("regarding")
    if not isinstance(whom, Mapping) or event.get("reason") not in FAILED:
        return False
    return (whom.get("kind"), whom.get("name"), whom.get("namespace") or "default") == ("Pod", name, namespace)


def _count(event: Mapping[str, Any]) -> int:
    counts = (event.get("count"), _at(event, "series", "count"), event.get("deprecatedCount"))
    return next((_number(one) for one in counts if _number(one)), 1)


def _when(event: Mapping[str, Any]) -> str:
    times = (_at(event, "series", "lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((_text(one) for one in times if one), "")


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _dicts(value: Any, *path: str) -> list[Mapping[str, Any]]:
    found = _at(value, *path)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
