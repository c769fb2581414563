"""ReplicationControllers: a count, a selector and a template, which give each other defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.names import subdomain_problems
from situate.server.kinds.core.podtemplate import default_template, template_warnings, validate_template
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again, drop_status, keep_status
from situate.server.objects import Object
from situate.server.tables.columns import table

__all__ = ["KIND"]

_COUNTS: Final = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


def _default(controller: Object) -> None:
    spec = controller.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template = spec.get("template")
    if template is None:
        return
    default_template(template)
    found = template.get("metadata", {}).get("labels")
    if found:
        if not spec.get("selector"):
            spec["selector"] = dict(found)
        meta = controller.setdefault("metadata", {})
        if not meta.get("labels"):
            meta["labels"] = dict(found)


def _prepare_create(controller: Object) -> None:
    drop_status(controller)
    controller["status"] = {"replicas": 0}


def _validate(controller: Object, causes: Causes) -> None:
    spec = controller.get("spec", {})
    causes.at_least_zero(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
    selector = spec.get("selector", {})
    causes.require(selector, "spec.selector")
    causes.at_least_zero(spec.get("replicas", 0), "spec.replicas")
    template = spec.get("template")
    if template is None:
        causes.required("spec.template")
    else:
        _template(template, selector, causes)


def _template(template: Mapping[str, Any], selector: Mapping[str, str], causes: Causes) -> None:
    found = template.get("metadata", {}).get("labels", {})
    if any(found.get(key) != value for key, value in selector.items()):
        causes.invalid("spec.template.metadata.labels", found or None, "`selector` does not match template `labels`")
    validate_template(template, "spec.template", causes)
    spec = template.get("spec", {})
    if spec.get("restartPolicy") != "Always":
        where = "spec.template.spec.restartPolicy"
        causes.not_supported(where, spec.get("restartPolicy", ""), ("Always",))
    if "activeDeadlineSeconds" in spec:
        detail = "activeDeadlineSeconds in ReplicationController is not Supported"
        causes.forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    status = new.get("status", {})
    for key in _COUNTS:
        causes.at_least_zero(status.get(key, 0), f"status.{key}")
    total, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
    for key in _COUNTS[1:4]:
        if status.get(key, 0) > total:
            causes.invalid(f"status.{key}", status.get(key, 0), "cannot be greater than status.replicas")
    if status.get("availableReplicas", 0) > ready:
        detail = "cannot be greater than readyReplicas"
        causes.invalid("status.availableReplicas", status.get("availableReplicas", 0), detail)


def _selectable(controller: Object) -> Mapping[str, str]:
    return {"status.replicas": str(controller.get("status", {}).get("replicas", 0))}


def _warnings(controller: Object) -> list[str]:
    template = controller.get("spec", {}).get("template")
    return [] if template is None else template_warnings(template, "spec.template")


KIND: Final = Kind(
    name="ReplicationController",
    short_names=("rc",),
    categories=("all",),
    subresources=("scale", "status"),
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=keep_status,
        validate=_validate,
        validate_update=again(_validate),
        validate_status=_validate_status,
        selectable=_selectable,
        warnings=_warnings,
        name_rule=subdomain_problems,  # which counts in bytes, as the newer of the API server's validations do
        counts_generation=True,
    ),
    table=table(
        """
        Name!, Desired# = spec.replicas, Current# = status.replicas, Ready# = status.readyReplicas, Age,
        +Containers, +Images, +Selector = labels(spec.selector)
        """
    ),
    description="ReplicationController keeps a number of equal pods running. Prefer Deployment.",
)
