"""HorizontalPodAutoscalers in autoscaling/v1, which has a field for the utilization of the CPU only. Whatever else a v2
object has is in annotations there, in the form that Kubernetes gave them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from situate.server.objects import Object
from situate.wire.schema import DecodeError, normalised

V1: Final = "autoscaling/v1"
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
METRICS: Final = f"{_PREFIX}metrics"
CURRENT: Final = f"{_PREFIX}current-metrics"
CONDITIONS: Final = f"{_PREFIX}conditions"
BEHAVIOR: Final = f"{_PREFIX}behavior"
ANNOTATIONS: Final = (METRICS, CURRENT, CONDITIONS, BEHAVIOR)
_OF_STATUS: Final = (CURRENT, CONDITIONS)
_CPU: Final = "cpu"
_SELECTED: Final = {"metricName": ("metric", "name"), "selector": ("metric", "selector")}
_EXTERNAL: Final = {"metricName": ("metric", "name"), "metricSelector": ("metric", "selector")}


def _resource(prefix: str, *own: str) -> Mapping[str, tuple[str, ...]]:
    inner = prefix.lower()
    return {
        **{name: (name,) for name in own},
        f"{prefix}AverageUtilization": (inner, "averageUtilization"),
        f"{prefix}AverageValue": (inner, "averageValue"),
    }


def _sources(prefix: str) -> Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]]:
    value, average = (prefix, "value"), (prefix, "averageValue")
    described = {"target": ("describedObject",), **_SELECTED, f"{prefix}Value": value, "averageValue": average}
    external = {**_EXTERNAL, f"{prefix}Value": value, f"{prefix}AverageValue": average}
    return {
        "Object": ("object", described),
        "Pods": ("pods", {**_SELECTED, f"{prefix}AverageValue": average}),
        "Resource": ("resource", _resource(prefix, "name")),
        "ContainerResource": ("containerResource", _resource(prefix, "name", "container")),
        "External": ("external", external),
    }


_SPECS: Final = _sources("target")
_STATUSES: Final = _sources("current")
"""By type: the field of the source, and where v2 has each field of v1."""
_TYPES: Final = (("averageUtilization", "Utilization"), ("averageValue", "AverageValue"), ("value", "Value"))


# -- v2 to v1 ----------------------------------------------------------------------------------------------------------


def to_v1(obj: Object) -> Object:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    current, conditions = status.pop("currentMetrics", None) or [], status.pop("conditions", None)
    utilizations = [one["resource"]["target"]["averageUtilization"] for one in metrics if _is_utilization(one)]
    if utilizations:
        spec["targetCPUUtilizationPercentage"] = utilizations[0]
    used = [_at(one, ("resource", "current", "averageUtilization")) for one in current if _is_cpu(one)]
    if used and used[-1] is not None:
        status["currentCPUUtilizationPercentage"] = used[-1]
    said = {
        METRICS: [_flat(one, _SPECS) for one in metrics if not _is_utilization(one)],
        CURRENT: [_flat(one, _STATUSES) for one in current],
        CONDITIONS: conditions,
        BEHAVIOR: None if behavior is None else _renamed(behavior, lambda name: name[:1].upper() + name[1:]),
    }
    notes = {name: msgspec.json.encode(value).decode() for name, value in said.items() if value}
    return {**obj, "metadata": _noted(obj["metadata"], notes), "spec": spec, "status": status}


def _is_cpu(metric: Mapping[str, Any]) -> bool:
    return metric.get("type") == "Resource" and _at(metric, ("resource", "name")) == _CPU


def _is_utilization(metric: Mapping[str, Any]) -> bool:
    return _is_cpu(metric) and _at(metric, ("resource", "target", "averageUtilization")) is not None


def _flat(
    metric: Mapping[str, Any], sources: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]]
) -> dict[str, Any]:
    kind = metric.get("type", "")
    if kind not in sources:
        return {"type": kind}
    field, names = sources[kind]
    source = metric.get(field) or {}
    found = {name: _at(source, path) for name, path in names.items()}
    return {"type": kind, field: {name: value for name, value in found.items() if value is not None}}


def keep_status_annotations(new: Object, old: Object | None) -> None:
    """Of two objects in v1: what the annotations say of the status is what they said before."""
    held = {} if old is None else old["metadata"].get("annotations") or {}
    notes = {name: one for name, one in (new["metadata"].get("annotations") or {}).items() if name not in _OF_STATUS}
    notes |= {name: held[name] for name in _OF_STATUS if name in held}
    new["metadata"].pop("annotations", None)
    if notes:
        new["metadata"]["annotations"] = notes


# -- v1 to v2 ----------------------------------------------------------------------------------------------------------


def to_v2(obj: Object) -> Object:
    notes = obj["metadata"].get("annotations") or {}
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    metrics = _typed("spec", "metrics", [_nested(one, _SPECS) for one in _listed(notes.get(METRICS))]) or []
    utilization = spec.pop("targetCPUUtilizationPercentage", None)
    if utilization is not None:
        target = {"type": "Utilization", "averageUtilization": utilization}
        metrics.append({"type": "Resource", "resource": {"name": _CPU, "target": target}})
    if metrics:
        spec["metrics"] = metrics
    behavior = _read(notes.get(BEHAVIOR))
    if isinstance(behavior, dict):
        behavior = _typed("spec", "behavior", _renamed(behavior, lambda name: name[:1].lower() + name[1:]))
        if behavior:
            spec["behavior"] = behavior
    used = status.pop("currentCPUUtilizationPercentage", None)
    current = _typed("status", "currentMetrics", [_nested(one, _STATUSES) for one in _listed(notes.get(CURRENT))])
    if not current and used is not None:
        current = [{"type": "Resource", "resource": {"name": _CPU, "current": {"averageUtilization": used}}}]
    if current:
        status["currentMetrics"] = current
    if conditions := _typed("status", "conditions", _listed(notes.get(CONDITIONS))):
        status["conditions"] = conditions
    made = {**obj, "metadata": _noted(obj["metadata"], {}), "spec": spec}
    return {**made, "status": status} if "status" in obj or status else made


def _nested(
    metric: Mapping[str, Any], sources: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]]
) -> dict[str, Any]:
    kind = str(metric.get("type", ""))
    if kind not in sources:
        return {"type": kind}
    field, names = sources[kind]
    given, made = metric.get(field), dict[str, Any]()
    for name, path in names.items():
        if isinstance(given, dict) and given.get(name) is not None:
            inner = made if len(path) == 1 else made.setdefault(path[0], {})
            inner[path[-1]] = given[name]
    if sources is _SPECS and isinstance(target := made.get("target"), dict):
        made["target"] = {"type": next(word for name, word in _TYPES if name in target), **target}
    return {"type": kind, field: made}


# -- what both share ---------------------------------------------------------------------------------------------------


def _noted(metadata: Mapping[str, Any], notes: Mapping[str, str]) -> dict[str, Any]:
    """The metadata with these annotations of ours, and no others."""
    kept = {name: value for name, value in (metadata.get("annotations") or {}).items() if name not in ANNOTATIONS}
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**rest, "annotations": {**kept, **notes}} if kept or notes else rest


def _read(text: object) -> Any:
    """What an annotation says; None if it cannot be read, as if it were not there."""
    try:
        return msgspec.json.decode(text) if isinstance(text, str) else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _typed(of: str, field: str, value: Any) -> Any:
    """The value as v2 reads it; None if a type in it is wrong, as if the annotation were not there."""
    try:
        return normalised("autoscaling/v2", "HorizontalPodAutoscaler", {of: {field: value}})[of].get(field)
    except DecodeError:
        return None


def _listed(text: object) -> list[dict[str, Any]]:
    found = _read(text)
    return found if isinstance(found, list) and all(isinstance(one, dict) for one in found) else []


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    """All fields, at every depth: Go wrote them without their names in JSON."""
    if isinstance(value, Mapping):
        return {rename(name): _renamed(one, rename) for name, one in value.items()}
    return [_renamed(one, rename) for one in value] if isinstance(value, list) else value
