"""LimitRanger: gives the containers of a new pod their namespace's default amounts, and refuses amounts beyond its
limits. Claims are checked when they are created and when they change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from situate.core.model.amounts import Amounts, combined
from situate.core.model.quantity import NANO
from situate.server.errors import forbidden
from situate.server.kinds.quantities import is_pod_level, nanos, text_of, written
from situate.server.objects import shown_name
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

LIMIT_RANGE: Final = BY_KIND["v1", "LimitRange"]
POD: Final = BY_KIND["v1", "Pod"]
CLAIM: Final = BY_KIND["v1", "PersistentVolumeClaim"]
ANNOTATION: Final = "kubernetes.io/limit-ranger"
"""Says what was set."""
SET: Final = "LimitRanger plugin set: "


class LimitRanger:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None or target.subresource or target.resource not in (POD, CLAIM):
            return
        if target.resource is POD and old is not None:
            return
        ranges = [held.object(LIMIT_RANGE) for held in self._cache.all(LIMIT_RANGE, target.namespace)]
        if target.resource is POD:
            for one in ranges:
                _set_defaults(new, one)
        for one in ranges:
            limits = one.get("spec", {}).get("limits", ())
            found = dict.fromkeys(
                _pod_problems(new, limits) if target.resource is POD else _claim_problems(new, limits)
            )
            if found:
                why = next(iter(found)) if len(found) == 1 else f"[{', '.join(found)}]"
                raise forbidden(target.resource.plural, "", shown_name(new), why)

    def version(self, target: Target) -> int | None:
        return self._cache.of(LIMIT_RANGE).last_change if target.resource in (POD, CLAIM) else None


# -- defaults --------------------------------------------------------------------------------------------------------


def _set_defaults(pod: Object, limit_range: Object) -> None:
    wanted: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
    for limit in limit_range.get("spec", {}).get("limits", ()):
        if limit.get("type") == "Container":
            wanted["requests"].update(limit.get("defaultRequest", {}))
            wanted["limits"].update(limit.get("default", {}))
    said: list[str] = []
    spec = pod.get("spec", {})
    for prefix, field in (("container", "containers"), ("init container", "initContainers")):
        for container in spec.get(field, ()):
            said += _fill(container, wanted, prefix)
    if said:
        annotations = dict(pod["metadata"].get("annotations") or {})
        pod["metadata"]["annotations"] = {**annotations, ANNOTATION: SET + "; ".join(said)}


def _fill(container: dict[str, Any], wanted: Mapping[str, Mapping[str, Any]], prefix: str) -> Iterator[str]:
    resources = dict(container.get("resources") or {})
    for side, word in (("requests", "request"), ("limits", "limit")):
        own = resources.get(side) or {}
        missing = {name: amount for name, amount in wanted[side].items() if name not in own}
        if missing:
            resources[side] = {**own, **missing}
            yield f"{', '.join(sorted(missing))} {word} for {prefix} {container.get('name', '')}"
    if resources:
        container["resources"] = resources


# -- limits ----------------------------------------------------------------------------------------------------------


def _pod_problems(pod: Object, limits: Any) -> Iterator[str]:
    spec = pod.get("spec", {})
    containers = (*spec.get("containers", ()), *spec.get("initContainers", ()))
    for limit in limits:
        kind = limit.get("type")
        if kind == "Container":
            for container in containers:
                resources = container.get("resources") or {}
                yield from _problems(limit, resources.get("requests") or {}, resources.get("limits") or {})
        elif kind == "Pod":
            yield from _problems(limit, _total(spec, "requests"), _total(spec, "limits"))


def _claim_problems(claim: Object, limits: Any) -> Iterator[str]:
    requests = (claim.get("spec", {}).get("resources") or {}).get("requests") or {}
    for limit in limits:
        if limit.get("type") != "PersistentVolumeClaim":
            continue
        for name, least in sorted(limit.get("min", {}).items()):
            yield from _least(name, limit["type"], least, requests, {})
        for name, most in sorted(limit.get("max", {}).items()):
            start = f"maximum {name} usage per {limit['type']} is {text_of(most)}"
            if name not in requests:
                yield f"{start}.  No request is specified"
            elif nanos(requests[name]) > nanos(most):
                yield f"{start}, but request is {text_of(requests[name])}"


def _problems(limit: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    kind = limit["type"]
    for name, least in sorted(limit.get("min", {}).items()):
        yield from _least(name, kind, least, requests, limits)
    for name, most in sorted(limit.get("max", {}).items()):
        start = f"maximum {name} usage per {kind} is {text_of(most)}"
        if name not in limits:
            yield f"{start}.  No limit is specified"
        elif nanos(limits[name]) > nanos(most):
            yield f"{start}, but limit is {text_of(limits[name])}"
        elif name in requests and nanos(requests[name]) > nanos(most):
            yield f"{start}, but request is {text_of(requests[name])}"
    for name, ratio in sorted(limit.get("maxLimitRequestRatio", {}).items()):
        yield from _ratio(name, kind, ratio, requests, limits)


def _least(name: str, kind: str, least: Any, requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    start = f"minimum {name} usage per {kind} is {text_of(least)}"
    if name not in requests:
        yield f"{start}.  No request is specified"
    elif nanos(requests[name]) < nanos(least):
        yield f"{start}, but request is {text_of(requests[name])}"
    elif name in limits and nanos(limits[name]) < nanos(least):
        yield f"{start}, but limit is {text_of(limits[name])}"


def _ratio(name: str, kind: str, ratio: Any, requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    start = f"{name} max limit to request ratio per {kind} is {text_of(ratio)}"
    asked, most = nanos(requests.get(name, 0)), nanos(limits.get(name, 0))
    if not asked:
        yield f"{start}, but no request is specified or request is 0"
    elif not most:
        yield f"{start}, but no limit is specified or limit is 0"
    elif most * NANO > nanos(ratio) * asked:
        yield f"{start}, but provided ratio is {most / asked:f}"


def _total(spec: Mapping[str, Any], side: str) -> dict[str, str]:
    """Of all containers; what the pod as a whole says replaces it."""
    own = (spec.get("resources") or {}).get(side) or {}
    inits = [(_amounts(one, side), one.get("restartPolicy") == "Always") for one in spec.get("initContainers", ())]
    found = combined([(_amounts(one, side), False) for one in spec.get("containers", ())], inits)
    found.update({name: nanos(amount) for name, amount in own.items() if is_pod_level(name)})
    binary = _binary_names(spec, side)
    return {name: written(amount, binary=name in binary) for name, amount in found.items()}


def _amounts(container: Mapping[str, Any], side: str) -> Amounts:
    return {name: nanos(amount) for name, amount in ((container.get("resources") or {}).get(side) or {}).items()}


def _binary_names(spec: Mapping[str, Any], side: str) -> set[str]:
    """The resources that the pod's containers write with Ki, Mi and so on: so is their sum."""
    every = (*spec.get("containers", ()), *spec.get("initContainers", ()), spec)
    lists = [((one.get("resources") or {}).get(side) or {}) for one in every]
    return {name for each in lists for name, amount in each.items() if str(amount).endswith("i")}
