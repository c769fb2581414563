"""Admission of new pods: priority and default tolerations. Objects are dicts with Kubernetes' names and are not changed
in place."""

from collections.abc import Mapping, Sequence
from typing import Any

from situate.core.model.priority import PriorityClasses
from situate.core.model.stored import Raw
from situate.core.model.tolerations import NO_EXECUTE

TOLERATION_SECONDS = 300
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


class AdmissionError(ValueError):
    """The object is rejected; Kubernetes responds with 403."""


def with_pod_priority(spec: Raw, classes: PriorityClasses) -> Raw:
    """The spec with the priority of its class, of the default class, or 0."""
    name = spec.get("priorityClassName") or ""
    found = classes.by_name.get(name) if name else classes.default
    if name and found is None:
        raise AdmissionError(f"no PriorityClass with name {name} was found")
    value = 0 if found is None else found.value
    policy = "PreemptLowerPriority" if found is None else found.preemption_policy
    asked = spec.get("priority")
    if asked is not None and asked != value:
        raise AdmissionError(
            f"the integer value of priority ({asked}) must not be provided in pod spec; priority admission controller "
            f"computed {value} from the given PriorityClass name"
        )
    said = spec.get("preemptionPolicy")
    if said is not None and said != policy:
        raise AdmissionError(
            f"the string value of PreemptionPolicy ({said}) must not be provided in pod spec; priority admission "
            f"controller computed {policy} from the given PriorityClass name"
        )
    added: dict[str, Any] = {"priority": value, "preemptionPolicy": policy}
    if found is not None:
        added["priorityClassName"] = found.metadata.name
    return {**spec, **added}


def with_default_tolerations(spec: Raw, seconds: int = TOLERATION_SECONDS) -> Raw:
    """The spec with tolerations, for a time, of a node that is not ready or unreachable."""
    held: Sequence[Mapping[str, Any]] = spec.get("tolerations") or ()
    added = [
        {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": seconds}
        for key in (NOT_READY, UNREACHABLE)
        if not any(_covers(each, key) for each in held)
    ]
    return {**spec, "tolerations": [*held, *added]} if added else spec


def _covers(toleration: Mapping[str, Any], key: str) -> bool:
    return (toleration.get("key") or "") in ("", key) and (toleration.get("effect") or "") in ("", NO_EXECUTE)
