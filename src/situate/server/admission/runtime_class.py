"""RuntimeClass: gives a new pod the overhead and the scheduling of its runtime class, and refuses pods whose class is
missing or says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.server.errors import StatusError, forbidden
from situate.server.kinds.quantities import nanos
from situate.server.objects import shown_name
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

CLASS: Final = BY_KIND["node.k8s.io/v1", "RuntimeClass"]
POD: Final = BY_KIND["v1", "Pod"]
MISSING: Final = 'pod rejected: RuntimeClass "{}" not found'
DIFFERS: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
UNASKED: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
CONFLICT: Final = (
    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {theirs}; pod.spec.nodeSelector[{key}] = {own}"
)
_EVERYTHING: Final = ("", "Exists")
MOST_COMPARED: Final = 500
"""Tolerations of a pod that are compared with each other. Of more, only equal ones are left out, which changes nothing
in what the pod tolerates."""

Toleration = Mapping[str, Any]


class RuntimeClasses:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None or old is not None or target.resource is not POD or target.subresource:
            return
        spec = new.setdefault("spec", {})
        found = self._class_of(new)
        if found is None:
            return
        if "overhead" in found:
            overhead = found["overhead"].get("podFixed") or {}
            if spec.get("overhead") and not _same(spec["overhead"], overhead):
                raise _refused(new, DIFFERS)
            spec.pop("overhead", None)
            if overhead:
                spec["overhead"] = dict(overhead)
        if "scheduling" in found:
            _schedule(new, spec, found["scheduling"])

    async def check(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        """Nothing that was asked after it has changed the overhead."""
        if new is None or old is not None or target.resource is not POD or target.subresource:
            return
        overhead = new.get("spec", {}).get("overhead")
        found = self._class_of(new)
        if found is None or "overhead" not in found:
            if overhead is not None:
                raise _refused(new, UNASKED)
        elif not _same(overhead or {}, found["overhead"].get("podFixed") or {}):
            raise _refused(new, DIFFERS)

    def version(self, target: Target) -> int | None:
        return self._cache.of(CLASS).last_change if target.resource is POD else None

    def _class_of(self, pod: Object) -> Object | None:
        name = pod.get("spec", {}).get("runtimeClassName")
        if name is None:
            return None
        found = self._cache.get(CLASS, "", name)
        if found is None:
            raise _refused(pod, MISSING.format(name))
        return found.object(CLASS)


def _refused(pod: Object, why: str) -> StatusError:
    return forbidden("pods", "", shown_name(pod), why)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(nanos(one[name]) == nanos(other[name]) for name in one)


def _schedule(pod: Object, spec: dict[str, Any], scheduling: Mapping[str, Any]) -> None:
    own = spec.get("nodeSelector") or {}
    wanted = scheduling.get("nodeSelector") or {}
    for key in sorted(wanted):
        if own.get(key, wanted[key]) != wanted[key]:
            raise _refused(pod, CONFLICT.format(key=key, theirs=wanted[key], own=own[key]))
    if own or wanted:
        spec["nodeSelector"] = {**own, **wanted}
    if merged := merged_tolerations([*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())]):
        spec["tolerations"] = merged


def merged_tolerations(every: Sequence[Toleration]) -> list[Toleration]:
    """Without those that another one includes; of equal ones, the first."""
    first: dict[tuple[tuple[str, Any], ...], Toleration] = {}
    for one in every:
        first.setdefault(tuple(sorted(one.items())), one)
    every = list(first.values())
    if len(every) > MOST_COMPARED:
        return every
    kept: list[Toleration] = []
    for at, one in enumerate(every):
        if not any(_includes(other, one) for other in (*kept, *every[at + 1 :])):
            kept.append(one)
    return kept


def _includes(one: Toleration, other: Toleration) -> bool:
    """Whether what tolerates `other` is tolerated by `one` in any case."""
    if one == other:
        return True
    key, operator, effect = one.get("key", ""), one.get("operator", ""), one.get("effect", "")
    if other.get("key", "") != key and (key, operator) != _EVERYTHING:
        return False
    if effect not in ("", other.get("effect", "")):
        return False
    seconds = one.get("tolerationSeconds")
    if effect == "NoExecute" and seconds is not None:
        theirs = other.get("tolerationSeconds")
        if theirs is None or theirs > seconds:
            return False
    if operator in ("", "Equal"):
        return other.get("operator") == "Equal" and other.get("value", "") == one.get("value", "")
    return bool(operator == "Exists")
