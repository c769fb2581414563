"""ReplicationControllers: the selector and the template default each other."""

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.names import subdomain_problems
from situate.server.kinds.core.podtemplate import (
    default_template,
    require_restart_always,
    template_warnings,
    validate_template,
)
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.status import within_replicas
from situate.server.kinds.strategy import Strategy, again, drop_status, keep_status
from situate.server.objects import Object

_SPEC: Final = FieldChecks("core.v1.ReplicationControllerSpec")
_STATUS: Final = FieldChecks("core.v1.ReplicationControllerStatus")


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
    _SPEC.check(spec, "spec", causes, "minReadySeconds")
    selector = spec.get("selector", {})
    causes.require(selector, "spec.selector")
    _SPEC.check(spec, "spec", causes, "replicas")
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
    require_restart_always({"template": template}, "spec", "ReplicationController", causes)


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    status = new.get("status", {})
    _STATUS.check(status, "status", causes)
    within_replicas(status, causes)


def _selectable(controller: Object) -> Mapping[str, str]:
    return {"status.replicas": str(controller.get("status", {}).get("replicas", 0))}


def _warnings(controller: Object) -> list[str]:
    template = controller.get("spec", {}).get("template")
    return [] if template is None else template_warnings(template, "spec.template")


KIND: Final = Kind(
    "v1 replicationcontrollers ReplicationController N rc all | scale status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=keep_status,
        validate=_validate,
        validate_update=again(_validate),
        validate_status=_validate_status,
        selectable=_selectable,
        warnings=_warnings,
        name_rule=subdomain_problems,  # counts bytes, as kube-apiserver's newer validations do
        counts_generation=True,
    ),
    columns="""
        Name!, Desired# = spec.replicas, Current# = status.replicas, Ready# = status.readyReplicas, Age,
        +Containers, +Images, +Selector = labels(spec.selector)
        """,
    description="ReplicationController keeps a number of identical pods running. Prefer Deployment.",
)
