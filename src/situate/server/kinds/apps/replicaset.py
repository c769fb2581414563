"""ReplicaSets: defaults, preparation and validation."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.apps.pod_template import default_pods, name_and_pod_warnings, spec_of
from situate.server.kinds.core.podtemplate import require_restart_always, validate_template
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.label_selectors import validate_own_selector
from situate.server.kinds.status import reset_status, within_replicas
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object

_SPEC: Final = FieldChecks("apps.v1.ReplicaSetSpec")
_STATUS: Final = FieldChecks("apps.v1.ReplicaSetStatus")


def _default(obj: Object) -> None:
    spec = spec_of(obj)
    default_pods(spec)
    spec.setdefault("replicas", 1)


def validate_pods(spec: Mapping[str, Any], causes: Causes) -> None:
    """Check the selector and the template. Deployments use it, too."""
    if validate_own_selector(spec, "spec", "deployment", "invalid label selector", causes):
        validate_template(spec.get("template", {}), "spec.template", causes)
        require_restart_always(spec, "spec", "ReplicaSet", causes)


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    _SPEC.check(spec, "spec", causes)
    validate_pods(spec, causes)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _validate(new, causes)
    causes.immutable(new.get("spec", {}).get("selector"), old.get("spec", {}).get("selector"), "spec.selector")


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    status = new.get("status", {})
    _STATUS.check(status, "status", causes)
    within_replicas(status, causes)


def _selectable(obj: Object) -> Mapping[str, str]:
    return {"status.replicas": str(obj.get("status", {}).get("replicas", 0))}


KIND: Final = Kind(
    "apps/v1 replicasets ReplicaSet N rs all | scale status",
    strategy=Strategy(
        default=_default,
        prepare_create=reset_status("replicas"),
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        selectable=_selectable,
        warnings=name_and_pod_warnings,
        counts_generation=True,
    ),
    columns="""
        Name!, Desired# = spec.replicas, Current# = status.replicas, Ready# = status.readyReplicas, Age,
        +Containers, +Images, +Selector
        """,
    description="ReplicaSet keeps a number of identical pods running. Deployments create ReplicaSets.",
)
