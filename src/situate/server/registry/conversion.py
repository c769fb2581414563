"""Converts between the stored version of a kind and the versions served.

Events are stored as core/v1, PodGroups as scheduling.k8s.io/v1beta1, HorizontalPodAutoscalers as autoscaling/v2; every
other kind has one version. Conversion makes
new objects. A version does not show a field that it lacks, and a write in that version loses the field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from situate.server.kinds.autoscaling.horizontalpodautoscaler import as_v2
from situate.server.kinds.autoscaling.versions import to_v1
from situate.server.requests import Object
from situate.server.resources import Resource

encode: Final = msgspec.json.Encoder().encode
Convert: TypeAlias = Callable[[Object], Object]

# core/v1 to events.k8s.io/v1
_EVENT_NAMES: Final = {
    "involvedObject": "regarding",
    "source": "deprecatedSource",
    "message": "note",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_ALWAYS: Final = ("reportingComponent", "reportingInstance")
"""Fields that core/v1 shows even if they are empty, and events.k8s.io/v1 does not."""
_CORE_EVENT_NAMES: Final = {new: old for old, new in _EVENT_NAMES.items()}

# The disruption mode is a string in scheduling.k8s.io/v1alpha2 and an object with one field in v1beta1
_MODES: Final = {"Pod": "single", "PodGroup": "all"}
_MODE_WORDS: Final = {field: word for word, field in _MODES.items()}


def from_stored(resource: Resource) -> Convert | None:
    """Converts from the stored version to this one; None: they are the same."""
    return _FROM.get(resource.api_version) if resource.stored_as in _SEVERAL else None


def to_stored(resource: Resource) -> Convert | None:
    """Converts from this version to the stored one; None: they are the same."""
    return _TO.get(resource.api_version) if resource.stored_as in _SEVERAL else None


def _event(obj: Object) -> Object:
    return {_EVENT_NAMES.get(name, name): value for name, value in obj.items() if value or name not in _ALWAYS}


def _core_event(obj: Object) -> Object:
    return {_CORE_EVENT_NAMES.get(name, name): value for name, value in obj.items()}


def _alpha_group(obj: Object) -> Object:
    spec: dict[str, Any] = dict(obj.get("spec", {}))
    for name in ("parentCompositePodGroupName", "preemptionPolicy"):
        spec.pop(name, None)
    if (reference := spec.pop("workloadRef", None)) is not None:
        named = {
            "workloadName": reference.get("workloadName", ""),
            "podGroupTemplateName": reference.get("templateName", ""),
        }
        spec["podGroupTemplateRef"] = {"workload": named}
    if (mode := spec.pop("disruptionMode", None)) is not None:
        spec["disruptionMode"] = _MODE_WORDS["all" if "all" in mode else "single"]
    return {**obj, "spec": spec}


def _beta_group(obj: Object) -> Object:
    spec: dict[str, Any] = dict(obj.get("spec", {}))
    if (reference := spec.pop("podGroupTemplateRef", None)) is not None and (named := reference.get("workload")):
        spec["workloadRef"] = {
            "workloadName": named.get("workloadName", ""),
            "templateName": named.get("podGroupTemplateName", ""),
        }
    if (mode := spec.pop("disruptionMode", None)) in _MODES:
        spec["disruptionMode"] = {_MODES[mode]: {}}
    return {**obj, "spec": spec}


_SEVERAL: Final = ("/events", "scheduling.k8s.io/podgroups", "autoscaling/horizontalpodautoscalers")
_FROM: Final[dict[str, Convert]] = {
    "events.k8s.io/v1": _event,
    "scheduling.k8s.io/v1alpha2": _alpha_group,
    "autoscaling/v1": to_v1,
}
_TO: Final[dict[str, Convert]] = {
    "events.k8s.io/v1": _core_event,
    "scheduling.k8s.io/v1alpha2": _beta_group,
    "autoscaling/v1": as_v2,
}
