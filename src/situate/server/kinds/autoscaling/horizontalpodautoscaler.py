"""HorizontalPodAutoscaler: how many pods a workload has, by what they use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from situate.server.kinds.autoscaling.versions import V1, keep_status_annotations, to_v2
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, path_segment
from situate.server.kinds.quantities import container_resource_name, nanos, text_of
from situate.server.kinds.status import reset_status
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object

_Source: TypeAlias = Mapping[str, Any]
_CheckSource: TypeAlias = Callable[[_Source, str, Causes], None]

MOST_PERIOD_S: Final = 1_800
MOST_WINDOW_S: Final = 3_600
DEFAULT_UTILIZATION: Final = 80
V2: Final = "autoscaling/v2"
_reset: Final = reset_status("desiredReplicas")
_POLICIES: Final = ("Percent", "Pods")
_SELECTED: Final = ("Disabled", "Max", "Min")
_TARGETS: Final = ("Utilization", "Value", "AverageValue")
_UP: Final[dict[str, Any]] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Final[dict[str, Any]] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def as_v2(obj: Object) -> Object:
    """The same in autoscaling/v2, with the defaults of that version."""
    if obj.get("apiVersion") != V1:
        return obj
    made = {**to_v2(obj), "apiVersion": V2}
    _default(made)
    return made


def _default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if obj.get("apiVersion") == V1:
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        for name, rules in (("scaleUp", _UP), ("scaleDown", _DOWN)):
            given = behavior.get(name) or {}
            behavior[name] = {**rules, "policies": [*rules["policies"]], **given}


def _prepare_create(obj: Object) -> None:
    _reset(obj)
    if obj.get("apiVersion") == V1:
        keep_status_annotations(obj, None)


def _prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    if new.get("apiVersion") == V1:
        keep_status_annotations(new, old)


# -- validation --------------------------------------------------------------------------------------------------------


def _validate(obj: Object, causes: Causes) -> None:
    spec = as_v2(obj).get("spec", {})
    _validate_spec(spec, causes, least=1, any_target=False, any_object=False)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    """What was wrong before may stay so."""
    spec, was = as_v2(new).get("spec", {}), as_v2(old).get("spec", {})
    target, before = spec.get("scaleTargetRef", {}), was.get("scaleTargetRef", {})
    same = all(target.get(name) == before.get(name) for name in ("apiVersion", "kind"))
    objects = [one["object"].get("describedObject", {}) for one in was.get("metrics", ()) if "object" in one]
    _validate_spec(
        spec,
        causes,
        least=0 if was.get("minReplicas") == 0 else 1,
        any_target=same,
        any_object=any(_version_problem(one.get("apiVersion", ""), groupless=True) for one in objects),
    )


def _validate_spec(spec: Mapping[str, Any], causes: Causes, *, least: int, any_target: bool, any_object: bool) -> None:
    fewest, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if fewest is not None and fewest < least:
        causes.invalid("spec.minReplicas", fewest, f"must be greater than or equal to {least}")
    if most == 0:
        causes.required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        causes.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if fewest is not None and most < fewest:
        causes.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = spec.get("scaleTargetRef", {})
    groupless = target.get("kind") == "ReplicationController"
    _reference(target, "spec.scaleTargetRef", causes, any_version=any_target, groupless=groupless)
    metrics = spec.get("metrics", ())
    for at, metric in enumerate(metrics):
        _metric(metric, f"spec.metrics[{at}]", causes, any_object=any_object)
    if fewest == 0 and not any(one.get("type") in ("Object", "External") for one in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        causes.forbidden("spec.metrics", why)
    for name in ("scaleUp", "scaleDown"):
        if (rules := spec.get("behavior", {}).get(name)) is not None:
            _rules(rules, f"spec.behavior.{name}", causes)


def _reference(
    found: Mapping[str, Any], path: str, causes: Causes, *, any_version: bool = False, groupless: bool = False
) -> None:
    for name in ("kind", "name"):
        causes.require_valid(path_segment, found.get(name, ""), f"{path}.{name}")
    version = found.get("apiVersion", "")
    if not any_version and (problem := _version_problem(version, groupless=groupless)):
        causes.invalid(f"{path}.apiVersion", version, problem)


def _version_problem(version: str, *, groupless: bool) -> str:
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    group = version.partition("/")[0] if "/" in version else ""
    return "" if group or groupless else "apiVersion must specify API group"


def _metric(metric: Mapping[str, Any], path: str, causes: Causes, *, any_object: bool) -> None:
    kind = metric.get("type", "")
    if not kind:
        causes.required(f"{path}.type", "must specify a metric source type")
    if kind not in _SOURCES:
        causes.not_supported(f"{path}.type", kind, sorted(_SOURCES))
    present = [name for name in _CHECKED if name in metric]
    if present:
        first = present[0]
        if first == "object":
            where = f"{path}.object.describedObject"
            described = metric["object"].get("describedObject", {})
            _reference(described, where, causes, any_version=any_object, groupless=True)
        _CHECKED[first](metric[first], f"{path}.{first}", causes)
    expected = _SOURCES.get(kind, "")
    if not expected:
        causes.not_supported(f"{path}.type", kind, sorted(_SOURCES))
    elif expected not in metric:
        causes.required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(present) != 1:
        for name in sorted(present):
            if name != expected:
                causes.forbidden(f"{path}.{name}", "must populate the given metric source only")


def _object(source: _Source, path: str, causes: Causes) -> None:
    _identifier(source, path, causes)
    target = _target(source, path, causes)
    if not {"value", "averageValue"} & target.keys():
        causes.required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _external(source: _Source, path: str, causes: Causes) -> None:
    _identifier(source, path, causes)
    target = _target(source, path, causes)
    if not {"value", "averageValue"} & target.keys():
        why = "must set either a target value for metric or a per-pod target"
        causes.required(f"{path}.target.averageValue", why)
    if {"value", "averageValue"} <= target.keys():
        causes.forbidden(f"{path}.target.value", "may not set both a target value for metric and a per-pod target")


def _pods(source: _Source, path: str, causes: Causes) -> None:
    _identifier(source, path, causes)
    if "averageValue" not in _target(source, path, causes):
        causes.required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _resource(source: _Source, path: str, causes: Causes) -> None:
    causes.require(source.get("name"), f"{path}.name", "must specify a resource name")
    _usage(source, path, causes)


def _container_resource(source: _Source, path: str, causes: Causes) -> None:
    name, container = source.get("name", ""), source.get("container", "")
    if not name:
        causes.required(f"{path}.name", "must specify a resource name")
    else:
        container_resource_name(name, f"{path}.name", causes)
    if not container:
        causes.required(f"{path}.container", "must specify a container")
    else:
        causes.check(dns_label, container, f"{path}.container")
    _usage(source, path, causes)


def _usage(source: _Source, path: str, causes: Causes) -> None:
    target = _target(source, path, causes)
    names = {"averageUtilization", "averageValue"}
    if not names & target.keys():
        why = "must set either a target raw value or a target utilization"
        causes.required(f"{path}.target.averageUtilization", why)
    if names <= target.keys():
        causes.forbidden(f"{path}.target.averageValue", "may not set both a target raw value and a target utilization")


def _identifier(source: _Source, path: str, causes: Causes) -> None:
    name = source.get("metric", {}).get("name", "")
    if not name:
        causes.required(f"{path}.metric.name", "must specify a metric name")
    else:
        causes.check(path_segment, name, f"{path}.metric.name")


def _target(source: _Source, path: str, causes: Causes) -> Mapping[str, Any]:
    target: Mapping[str, Any] = source.get("target", {})
    kind, where = target.get("type", ""), f"{path}.target"
    if not kind:
        causes.required(f"{where}.type", "must specify a metric target type")
    if kind not in _TARGETS:
        causes.invalid(f"{where}.type", kind, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        if name in target and nanos(target[name]) <= 0:
            causes.invalid(f"{where}.{name}", text_of(target[name]), "must be positive")
    if target.get("averageUtilization", 1) < 1:
        causes.invalid(f"{where}.averageUtilization", target["averageUtilization"], "must be greater than 0")
    return target


_CHECKED: Final[Mapping[str, _CheckSource]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}
"""In this order; only the first one that is there is checked."""
_SOURCES: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
"""The field of each type."""


def _rules(rules: Mapping[str, Any], path: str, causes: Causes) -> None:
    window = rules.get("stabilizationWindowSeconds", 0)
    where = f"{path}.stabilizationWindowSeconds"
    if window < 0:
        causes.invalid(where, window, "must be greater than or equal to zero")
    if window > MOST_WINDOW_S:
        causes.invalid(where, window, f"must be less than or equal to {MOST_WINDOW_S}")
    if rules.get("selectPolicy", "Max") not in _SELECTED:
        causes.not_supported(f"{path}.selectPolicy", rules["selectPolicy"], _SELECTED)
    if not rules.get("policies"):
        causes.required(f"{path}.policies", "must specify at least one Policy")
    for at, policy in enumerate(rules.get("policies", ())):
        _policy(policy, f"{path}.policies[{at}]", causes)
    if nanos(rules.get("tolerance", 0)) < 0:
        causes.invalid(f"{path}.tolerance", text_of(rules["tolerance"]), "must be greater than or equal to 0")


def _policy(policy: Mapping[str, Any], path: str, causes: Causes) -> None:
    kind = policy.get("type", "")
    if kind not in _POLICIES:
        causes.not_supported(f"{path}.type", kind, _POLICIES)
    for name in ("value", "periodSeconds"):
        if policy.get(name, 0) <= 0:
            causes.invalid(f"{path}.{name}", policy.get(name, 0), "must be greater than zero")
    period = policy.get("periodSeconds", 0)
    if period > MOST_PERIOD_S:
        causes.invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {MOST_PERIOD_S}")


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    status = new.get("status", {})
    for name in ("currentReplicas", "desiredReplicas"):
        causes.at_least_zero(status.get(name, 0), f"status.{name}")


# -- what kubectl prints -----------------------------------------------------------------------------------------------

_SHOWN: Final = 2
_UNKNOWN: Final = "<unknown>"


def _reference_cell(obj: Object) -> str:
    target = obj.get("spec", {}).get("scaleTargetRef", {})
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets_cell(obj: Object) -> str:
    obj = as_v2(obj)
    metrics = obj.get("spec", {}).get("metrics", ())
    found = obj.get("status", {}).get("currentMetrics") or ()
    if not metrics:
        return "<none>"
    cells = [_metric_cell(metric, found[at] if at < len(found) else {}) for at, metric in enumerate(metrics[:_SHOWN])]
    more = len(metrics) - _SHOWN
    return ", ".join(cells) + (f" + {more} more..." if more > 0 else "")


def _metric_cell(metric: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    kind = metric.get("type", "")
    field = _SOURCES.get(kind)
    if field is None:
        return "<unknown type>"
    source, current = metric.get(field, {}), status.get(field, {}).get("current", {})
    target = source.get("target", {})
    if kind in ("Resource", "ContainerResource"):
        if "averageValue" in target:
            return f"{source.get('name')}: {_text(current, 'averageValue')}/{text_of(target['averageValue'])}"
        wanted = f"{target['averageUtilization']}%" if "averageUtilization" in target else "<auto>"
        return f"{source.get('name')}: {_text(current, 'averageUtilization', '%')}/{wanted}"
    if kind == "Pods":
        return f"{_text(current, 'averageValue')}/{_text(target, 'averageValue')}"
    if "averageValue" in target:
        return f"{_text(current, 'averageValue')}/{text_of(target['averageValue'])} (avg)"
    return f"{_text(current, 'value')}/{_text(target, 'value')}"


def _text(values: Mapping[str, Any], name: str, unit: str = "") -> str:
    return f"{text_of(values[name])}{unit}" if name in values else _UNKNOWN


KIND: Final = Kind(
    "autoscaling/v2,v1 horizontalpodautoscalers HorizontalPodAutoscaler N hpa all | status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
    ),
    columns="""
        Name!, Reference, Targets, MinPods = text(spec.minReplicas)|<unset>, MaxPods = spec.maxReplicas|0,
        Replicas = status.currentReplicas|0, Age
        """,
    cells={"Reference": _reference_cell, "Targets": _targets_cell},
    description="HorizontalPodAutoscaler adapts the number of a workload's pods to what they use.",
)
