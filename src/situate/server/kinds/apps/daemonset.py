"""DaemonSets: defaults, preparation and validation."""

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.integers import next_int64, parse_count
from situate.server.kinds.apps.pod_template import default_pods, pod_warnings, spec_of
from situate.server.kinds.core.podtemplate import require_restart_always, validate_template
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.go_structs import UPDATE_STRATEGY, go_struct
from situate.server.kinds.int_or_percent import check_at_most_100_percent, check_int_or_percent, number_in
from situate.server.kinds.kind import Kind
from situate.server.kinds.label_selectors import DOES_NOT_MATCH, is_empty, matches, template_labels, validate_selector
from situate.server.kinds.status import check_not_decreased, reset_status
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object

_SPEC: Final = FieldChecks("apps.v1.DaemonSetSpec")
_STATUS: Final = FieldChecks("apps.v1.DaemonSetStatus")
ROLLING, ON_DELETE = "RollingUpdate", "OnDelete"
HISTORY: Final = 10
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""An annotation that replaces a former field of the spec. It counts changes of the template."""

_ZEROS: Final = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


def _default(obj: Object) -> None:
    spec = spec_of(obj)
    default_pods(spec)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", ROLLING) == ROLLING:
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", HISTORY)
    # managedFields attribute this annotation to the client that writes the DaemonSet.
    _set_template_generation(obj, _template_generation(obj))


def _template_generation(obj: Object) -> int:
    text = obj.get("metadata", {}).get("annotations", {}).get(TEMPLATE_GENERATION, "")
    return parse_count(text) or 0


def _set_template_generation(obj: Object, generation: int) -> None:
    meta = obj.setdefault("metadata", {})
    meta["annotations"] = {**meta.get("annotations", {}), TEMPLATE_GENERATION: str(generation)}


def _prepare_create(obj: Object) -> None:
    reset_status(*_ZEROS)(obj)
    _set_template_generation(obj, max(_template_generation(obj), 1))


def _prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    number = _template_generation(old)
    changed = new.get("spec", {}).get("template") != old.get("spec", {}).get("template")
    _set_template_generation(new, next_int64(number) if changed else number)


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    selector, template = spec.get("selector"), spec.get("template", {})
    found = template_labels(template)
    if validate_selector(selector, "spec.selector", causes) and not matches(selector, found or {}):
        causes.invalid("spec.template.metadata.labels", found, DOES_NOT_MATCH)
    if is_empty(selector):
        causes.invalid("spec.selector", selector, "empty selector is invalid for daemonset")
    validate_template(template, "spec.template", causes)
    require_restart_always(spec, "spec", "DaemonSet", causes)
    _SPEC.check(spec, "spec", causes, "minReadySeconds")
    _strategy(spec.get("updateStrategy", {}), "spec.updateStrategy", causes)
    _SPEC.check(spec, "spec", causes, "revisionHistoryLimit")


def _strategy(strategy: Mapping[str, Any], path: str, causes: Causes) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == ROLLING:
        _rolling(rolling or {}, f"{path}.rollingUpdate", causes)
    elif kind != ON_DELETE:
        causes.not_supported(path, go_struct(strategy, UPDATE_STRATEGY), [ROLLING, ON_DELETE])


def _rolling(rolling: Mapping[str, Any], path: str, causes: Causes) -> None:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    for check in (check_int_or_percent, check_at_most_100_percent):
        check(unavailable, f"{path}.maxUnavailable", causes)
        check(surge, f"{path}.maxSurge", causes)
    if number_in(unavailable) and number_in(surge):
        causes.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not number_in(unavailable) and not number_in(surge):
        causes.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    causes.immutable(new.get("spec", {}).get("selector"), old.get("spec", {}).get("selector"), "spec.selector")
    _validate(new, causes)


def _validate_status(new: Object, old: Object, causes: Causes) -> None:
    _STATUS.check(new.get("status", {}), "status", causes)
    check_not_decreased(new.get("status", {}), old.get("status", {}), "collisionCount", causes)


KIND: Final = Kind(
    "apps/v1 daemonsets DaemonSet N ds all | status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        warnings=pod_warnings,
        counts_generation=True,
    ),
    columns="""
        Name!, Desired# = status.desiredNumberScheduled, Current# = status.currentNumberScheduled,
        Ready# = status.numberReady, Up-to-date# = status.updatedNumberScheduled,
        Available# = status.numberAvailable, Node Selector = labels(spec.template.spec.nodeSelector), Age,
        +Containers, +Images, +Selector
        """,
    description="DaemonSet runs one pod on every suitable node.",
)
