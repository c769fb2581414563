"""How long a pod has been waiting, and how often it was tried: from its conditions, events and PlacementDecision."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from situate.cli.input.manifests import at_path

SCHEDULED: Final = "PodScheduled"
FAILED: Final = ("FailedScheduling",)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is unknown is empty, or 0."""

    since: str = ""
    """When it was created."""
    refused_since: str = ""
    """When its condition PodScheduled last changed."""
    reason: str = ""
    """Of the condition: Unschedulable, SchedulingGated, SchedulerError."""
    recorded: str = ""
    """The message of the condition, or of the last event."""
    attempts: int = 0
    attempts_from: str = ""
    """Where the number is from: `PlacementDecision` counts all attempts, `events` only those with an event."""
    last_try: str = ""


def waiting_of(records: Iterable[Mapping[str, Any]], namespace: str, name: str) -> Waiting:
    """From the pod, its events and its decision, as they are stored."""
    known = list(records)
    pods = [one for one in known if one.get("kind") == "Pod" and _is(one, namespace, name)]
    pod = pods[0] if pods else {}
    condition = next((one for one in _dicts(pod, "status", "conditions") if one.get("type") == SCHEDULED), {})
    events = [one for one in known if one.get("kind") == "Event" and _about(one, namespace, name)]
    last = max(events, key=_when, default={})
    decision = next((one for one in known if one.get("kind") == "PlacementDecision" and _is(one, namespace, name)), {})
    counted = sum(_count(event) for event in events)
    attempts = _number(at_path(decision, "status", "attempts"))
    return Waiting(
        since=_text(at_path(pod, "metadata", "creationTimestamp")),
        refused_since=_text(condition.get("lastTransitionTime")) if condition.get("status") == "False" else "",
        reason=_text(condition.get("reason")) if condition.get("status") == "False" else "",
        recorded=_text(condition.get("message")) or _text(last.get("message")),
        attempts=attempts or counted,
        attempts_from="PlacementDecision" if attempts else "events" if counted else "",
        last_try=_when(last),
    )


def _is(one: Mapping[str, Any], namespace: str, name: str) -> bool:
    return (
        at_path(one, "metadata", "name") == name and (at_path(one, "metadata", "namespace") or "default") == namespace
    )


def _about(event: Mapping[str, Any], namespace: str, name: str) -> bool:
    whom = event.get("involvedObject") or event.get("regarding")
    if not isinstance(whom, Mapping) or event.get("reason") not in FAILED:
        return False
    return (whom.get("kind"), whom.get("name"), whom.get("namespace") or "default") == ("Pod", name, namespace)


def _count(event: Mapping[str, Any]) -> int:
    counts = (event.get("count"), at_path(event, "series", "count"), event.get("deprecatedCount"))
    return next((_number(one) for one in counts if _number(one)), 1)


def _when(event: Mapping[str, Any]) -> str:
    times = (at_path(event, "series", "lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((_text(one) for one in times if one), "")


def _dicts(value: Any, *path: str) -> list[Mapping[str, Any]]:
    found = at_path(value, *path)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
