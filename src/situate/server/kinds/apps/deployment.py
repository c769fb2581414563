"""Deployments: defaults, preparation and validation."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.apps.pod_template import default_pods, name_and_pod_warnings, spec_of
from situate.server.kinds.apps.replicaset import validate_pods
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.go_structs import UPDATE_STRATEGY, go_struct
from situate.server.kinds.int_or_percent import check_at_most_100_percent, check_int_or_percent, number_in
from situate.server.kinds.kind import Kind
from situate.server.kinds.status import MORE_THAN_ALL, check_at_most, check_not_decreased, reset_status
from situate.server.kinds.strategy import Strategy, keep_all_but_status, keep_status
from situate.server.objects import Object
from situate.server.tables.cells import ready_of_desired, selector

_SPEC: Final = FieldChecks("apps.v1.DeploymentSpec")
_STATUS: Final = FieldChecks("apps.v1.DeploymentStatus")
RECREATE, ROLLING = "Recreate", "RollingUpdate"
PROGRESS_DEADLINE_S: Final = 600
HISTORY: Final = 10
QUARTER: Final = "25%"


def _default(obj: Object) -> None:
    spec = spec_of(obj)
    default_pods(spec)
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", ROLLING) == ROLLING:
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", QUARTER)
        rolling.setdefault("maxSurge", QUARTER)
    spec.setdefault("revisionHistoryLimit", HISTORY)
    spec.setdefault("progressDeadlineSeconds", PROGRESS_DEADLINE_S)


def _prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    meta, was = new.setdefault("metadata", {}), old.get("metadata", {})
    # The controller copies annotations to ReplicaSets, so it must notice when they change.
    if meta.get("annotations") != was.get("annotations"):
        meta["generation"] = was.get("generation", 0) + 1


def _prepare_status(new: Object, old: Object) -> None:
    keep_all_but_status(new, old)
    meta, labels = new.setdefault("metadata", {}), old.get("metadata", {}).get("labels")
    if labels is None:
        meta.pop("labels", None)
    else:
        meta["labels"] = labels


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    _SPEC.check(spec, "spec", causes, "replicas")
    validate_pods(spec, causes)
    _strategy(spec.get("strategy", {}), "spec.strategy", causes)
    _SPEC.check(spec, "spec", causes, "minReadySeconds revisionHistoryLimit progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        causes.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _strategy(strategy: Mapping[str, Any], path: str, causes: Causes) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == RECREATE:
        if rolling is not None:
            causes.forbidden(f"{path}.rollingUpdate", f"may not be specified when strategy `type` is '{RECREATE}'")
    elif kind == ROLLING:
        _rolling(rolling or {}, f"{path}.rollingUpdate", causes)
    else:
        causes.not_supported(path, go_struct(strategy, UPDATE_STRATEGY), [RECREATE, ROLLING])


def _rolling(rolling: Mapping[str, Any], path: str, causes: Causes) -> None:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    check_int_or_percent(unavailable, f"{path}.maxUnavailable", causes)
    check_int_or_percent(surge, f"{path}.maxSurge", causes)
    if number_in(unavailable) == 0 and number_in(surge) == 0:
        causes.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    check_at_most_100_percent(unavailable, f"{path}.maxUnavailable", causes)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _validate(new, causes)
    causes.immutable(new.get("spec", {}).get("selector"), old.get("spec", {}).get("selector"), "spec.selector")


def _validate_status(new: Object, old: Object, causes: Causes) -> None:
    status = new.get("status", {})
    _STATUS.check(status, "status", causes)
    check_at_most(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), "replicas", MORE_THAN_ALL, causes)
    check_at_most(status, ("availableReplicas",), "readyReplicas", "cannot be greater than readyReplicas", causes)
    check_not_decreased(status, old.get("status", {}), "collisionCount", causes)


def _selector_shown(obj: Object) -> str:
    return selector((obj.get("spec") or {}).get("selector"), "")


KIND: Final = Kind(
    "apps/v1 deployments Deployment N deploy all | scale status",
    strategy=Strategy(
        default=_default,
        prepare_create=reset_status(),
        prepare_update=_prepare_update,
        prepare_status=_prepare_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        warnings=name_and_pod_warnings,
        counts_generation=True,
    ),
    columns="""
        Name!, Ready, Up-to-date = status.updatedReplicas|0, Available = status.availableReplicas|0, Age,
        +Containers, +Images, +Selector
        """,
    cells={"Ready": ready_of_desired, "Selector": _selector_shown},
    description="Deployment runs a number of identical pods, and replaces them gradually when their template changes.",
    words={
        "DeploymentSpec.replicas": "The desired number of pods. Defaults to 1.",
        "DeploymentSpec.selector": "Selects its pods. It cannot change.",
        "DeploymentSpec.strategy": "How pods are replaced: RollingUpdate or Recreate.",
        "DeploymentSpec.template": "Describes its pods.",
    },
)
