"""ResourceQuotas: the amounts that a namespace, or its pods in a scope, may use."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from situate.server.kinds.field_errors import IMMUTABLE, Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.quantities import amount, is_quota_name, quota_resource_name, round_amounts
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object

_POD_SCOPES: Final = ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity")
SCOPES: Final = (*_POD_SCOPES, "BestEffort", "VolumeAttributesClass")
_OF_PODS: Final = frozenset(("pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"))
_EXISTS_ONLY: Final = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_EXISTS_TEXT: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_PAIRS: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def _default(quota: Object) -> None:
    round_amounts(quota.get("spec", {}).get("hard"))
    round_amounts(quota.get("status", {}).get("hard"))
    round_amounts(quota.get("status", {}).get("used"))


def _prepare_create(quota: Object) -> None:
    quota["status"] = {}


def _fits(scope: str, name: str) -> bool:
    if scope in _POD_SCOPES:
        return name in _OF_PODS
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return True


def _validate(quota: Object, causes: Causes) -> None:
    spec = quota.get("spec", {})
    hard = spec.get("hard", {})
    _amounts(hard, "spec.hard", causes)
    scopes = spec.get("scopes", [])
    for scope in scopes:
        if scope not in SCOPES:
            causes.invalid("spec.scopes", scopes, "unsupported scope")
        for name in sorted(hard):
            if is_quota_name(name) and not _fits(scope, name):
                causes.invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    for pair in _PAIRS:
        if all(one in scopes for one in pair):
            causes.invalid("spec.scopes", scopes, "conflicting scopes")
    if "scopeSelector" in spec:
        _selector(spec, hard, causes)


def _amounts(found: Mapping[str, Any], path: str, causes: Causes) -> None:
    for name, raw in found.items():
        quota_resource_name(name, f"{path}[{name}]", causes)
        amount(name, raw, f"{path}[{name}]", causes)


def _selector(spec: Mapping[str, Any], hard: Mapping[str, Any], causes: Causes) -> None:
    path, scopes = "spec.scopeSelector.matchExpressions", []
    expressions = spec["scopeSelector"].get("matchExpressions", ())
    for one in expressions:
        scope, operator, values = one.get("scopeName", ""), one.get("operator", ""), one.get("values", [])
        if scope not in SCOPES:
            causes.invalid(f"{path}.scopeName", scope, "unsupported scope")
        for name in sorted(hard):
            if is_quota_name(name) and not _fits(scope, name):
                shown = {"MatchExpressions": [_shown(each) for each in expressions]}
                causes.invalid(path, shown, "unsupported scope applied to resource")
        if scope in _EXISTS_ONLY and operator != "Exists":
            causes.invalid(f"{path}.operator", operator, _EXISTS_TEXT)
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                causes.required(f"{path}.values", detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                causes.invalid(f"{path}.values", values, detail)
        else:
            causes.invalid(f"{path}.operator", operator, "not a valid selector operator")
        scopes.append(scope)
    for pair in _PAIRS:
        if all(one in scopes for one in pair):
            causes.invalid(path, spec.get("scopes"), "conflicting scopes")


def _shown(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"ScopeName": one.get("scopeName", ""), "Operator": one.get("operator", ""), "Values": one.get("values")}


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _validate(new, causes)
    scopes = new.get("spec", {}).get("scopes", [])
    if set(scopes) != set(old.get("spec", {}).get("scopes", [])):
        causes.invalid("spec.scopes", scopes or None, IMMUTABLE)


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    for key in ("hard", "used"):
        _amounts(new.get("status", {}).get(key, {}), f"status.{key}", causes)


def _used(limits: bool, obj: Object) -> str:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    return ", ".join(
        [f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard) if name.startswith("limits.") == limits]
    )


KIND: Final = Kind(
    "v1 resourcequotas ResourceQuota N quota - | status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
    ),
    columns="Name!, Request, Limit, Age",
    cells={"Request": partial(_used, False), "Limit": partial(_used, True)},
    description="ResourceQuota limits the total resources of a namespace.",
)
