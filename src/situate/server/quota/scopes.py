"""Which quotas an object counts in: the scopes of a quota. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from situate.server.requests import Object
from situate.server.resources import Resource

_AFFINITY: Final = ("podAffinity", "podAntiAffinity")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def in_scope(quota: Object, resource: Resource, obj: Object) -> bool:
    spec = quota.get("spec", {})
    selectors = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    selectors += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_matches(one, resource, obj) for one in selectors)


def _matches(selector: Mapping[str, Any], resource: Resource, obj: Object) -> bool:
    spec, scope = obj.get("spec") or {}, selector.get("scopeName")
    if resource.group or resource.plural not in ("pods", "persistentvolumeclaims"):
        return False
    if resource.plural == "persistentvolumeclaims":
        chosen = spec.get("volumeAttributesClassName") or ""
        return scope == "VolumeAttributesClass" and _selected(selector, chosen)
    if scope == "PriorityClass":
        return _selected(selector, spec.get("priorityClassName") or "")
    question = _OF_PODS.get(scope or "")
    return question is not None and question(spec)


def _ends(spec: Mapping[str, Any]) -> bool:
    limit = spec.get("activeDeadlineSeconds")
    return limit is not None and limit >= 0


def is_best_effort(spec: Mapping[str, Any]) -> bool:
    """Whether no container, nor the pod as a whole, asks for CPU or memory."""
    for one in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()), spec):
        resources = one.get("resources") or {}
        for side in ("requests", "limits"):
            if any(
                name in ("cpu", "memory") and raw not in (0, "0") for name, raw in (resources.get(side) or {}).items()
            ):
                return False
    return True


def _selected(selector: Mapping[str, Any], value: str) -> bool:
    values = selector.get("values") or ()
    match selector.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return bool(value)
        case "DoesNotExist":
            return not value
        case _:
            return False


def _affinity_terms(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    affinity = spec.get("affinity") or {}
    for kind in _AFFINITY:
        terms = affinity.get(kind) or {}
        yield from terms.get(_REQUIRED) or ()
        for weighted in terms.get(_PREFERRED) or ():
            yield weighted.get("podAffinityTerm") or {}


def _names_namespaces(term: Mapping[str, Any]) -> bool:
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None


def _crosses_namespaces(spec: Mapping[str, Any]) -> bool:
    return any(_names_namespaces(term) for term in _affinity_terms(spec))


_OF_PODS: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "Terminating": _ends,
    "NotTerminating": lambda spec: not _ends(spec),
    "BestEffort": is_best_effort,
    "NotBestEffort": lambda spec: not is_best_effort(spec),
    "CrossNamespacePodAffinity": _crosses_namespaces,
}
