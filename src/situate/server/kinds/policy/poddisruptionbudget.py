"""PodDisruptionBudget: how many pods of a set may be evicted at once."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.conditions import conditions
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.int_or_percent import check_at_most_100_percent, check_int_or_percent
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import path_segment
from situate.server.kinds.status import reset_status
from situate.server.kinds.strategy import Strategy, again, keep_status
from situate.server.objects import Object

_SPEC: Final = FieldChecks("policy.v1.PodDisruptionBudgetSpec")
_STATUS: Final = FieldChecks("policy.v1.PodDisruptionBudgetStatus")


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    if "minAvailable" in spec and "maxUnavailable" in spec:
        causes.invalid("spec", _shown(spec), "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            check_int_or_percent(spec[name], f"spec.{name}", causes)
            check_at_most_100_percent(spec[name], f"spec.{name}", causes)
    causes.label_selector(spec.get("selector"), "spec.selector")
    _SPEC.check(spec, "spec", causes, "unhealthyPodEvictionPolicy")


def _shown(spec: Mapping[str, Any]) -> dict[str, Any]:
    names = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
    return {name[0].upper() + name[1:]: spec.get(name) for name in names}


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    status = new.get("status", {})
    conditions(status.get("conditions", ()), "status.conditions", causes)
    _STATUS.check(status, "status", causes)


KIND: Final = Kind(
    "policy/v1 poddisruptionbudgets PodDisruptionBudget N pdb - | status",
    strategy=Strategy(
        prepare_create=reset_status("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),
        prepare_update=keep_status,
        validate=_validate,
        validate_update=again(_validate),
        validate_status=_validate_status,
        name_rule=path_segment,
        counts_generation=True,
        unconditional_update=False,
    ),
    columns="""
        Name!, Min Available = text(spec.minAvailable)|N/A, Max Unavailable = text(spec.maxUnavailable)|N/A,
        Allowed Disruptions# = status.disruptionsAllowed, Age
        """,
    description="PodDisruptionBudget limits how many pods of a set may be evicted at once.",
)
