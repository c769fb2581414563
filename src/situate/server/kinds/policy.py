"""policy/v1: PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from situate.server.errors import Cause
from situate.server.kinds.conditions import conditions
from situate.server.kinds.naming import path_segment
from situate.server.kinds.portions import at_most_all, portion
from situate.server.kinds.states import counts, reset_status
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.kinds.validating import Causes, invalid, label_selector, not_supported
from situate.server.requests import Object

__all__ = ["STRATEGIES"]

_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_UNHEALTHY: Final = ("AlwaysAllow", "IfHealthyBudget")


def _validate(obj: Object) -> list[Cause]:
    causes: Causes = []
    spec = obj.get("spec", {})
    if "minAvailable" in spec and "maxUnavailable" in spec:
        text = "minAvailable and maxUnavailable cannot be both set"
        causes.append(invalid("spec", _shown(spec), text))
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            portion(spec[name], f"spec.{name}", causes)
            at_most_all(spec[name], f"spec.{name}", causes)
    label_selector(spec.get("selector"), "spec.selector", causes)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _UNHEALTHY:
        causes.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _UNHEALTHY))
    return causes


def _shown(spec: Mapping[str, Any]) -> dict[str, Any]:
    names = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
    return {name[0].upper() + name[1:]: spec.get(name) for name in names}


def _validate_update(new: Object, _old: Object) -> list[Cause]:
    return _validate(new)


def _validate_status(new: Object, _old: Object) -> list[Cause]:
    causes: Causes = []
    status = new.get("status", {})
    conditions(status.get("conditions", ()), "status.conditions", causes)
    counts(status, _COUNTS, causes)
    return causes


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "policy/PodDisruptionBudget": Strategy(
        prepare_create=reset_status(*_COUNTS),
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        name_rule=path_segment,
        counts_generation=True,
        unconditional_update=False,
    )
}
