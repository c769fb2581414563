"""StatefulSets: defaults, preparation and validation."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.apps.pod_template import default_pods, pod_warnings, spec_of
from situate.server.kinds.core.persistentvolumeclaim import default_claim_spec, validate_claim_spec
from situate.server.kinds.core.podtemplate import require_restart_always, validate_template
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.label_selectors import template_labels, validate_own_selector
from situate.server.kinds.metadata import validate_annotations
from situate.server.kinds.names import dns_label
from situate.server.kinds.status import MORE_THAN_ALL, check_at_most, check_not_decreased, reset_status
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object
from situate.server.tables.cells import ready_of_desired

_SPEC: Final = FieldChecks("apps.v1.StatefulSetSpec")
_ORDINALS: Final = FieldChecks("apps.v1.StatefulSetOrdinals")
_ROLLING: Final = FieldChecks("apps.v1.RollingUpdateStatefulSetStrategy")
_STATUS: Final = FieldChecks("apps.v1.StatefulSetStatus")
ROLLING, ON_DELETE = "RollingUpdate", "OnDelete"
ORDERED, PARALLEL = "OrderedReady", "Parallel"
RETAIN, DELETE = "Retain", "Delete"
HISTORY: Final = 10
_MAY_CHANGE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
FORBIDDEN_CHANGE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _default(obj: Object) -> None:
    spec = spec_of(obj)
    default_pods(spec)
    spec.setdefault("podManagementPolicy", ORDERED)
    spec.setdefault("serviceName", "")
    strategy = spec.setdefault("updateStrategy", {})
    if "type" not in strategy:
        strategy["type"] = ROLLING
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == ROLLING and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    kept = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    kept.setdefault("whenDeleted", RETAIN)
    kept.setdefault("whenScaled", RETAIN)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", HISTORY)
    for claim in spec.get("volumeClaimTemplates", ()):
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        default_claim_spec(claim.setdefault("spec", {}))
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _without_batches(obj: Object) -> None:
    """The MaxUnavailableStatefulSet feature gate is off by default."""
    obj.get("spec", {}).get("updateStrategy", {}).get("rollingUpdate", {}).pop("maxUnavailable", None)


def _prepare_create(obj: Object) -> None:
    reset_status("replicas", "availableReplicas")(obj)
    _without_batches(obj)


def _prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    _without_batches(new)


def _validate(obj: Object, causes: Causes) -> None:
    _validate_spec(obj.get("spec", {}), causes, new=True)


def _validate_spec(spec: Mapping[str, Any], causes: Causes, *, new: bool, pods: bool = True) -> None:
    """An update does not check again what cannot change."""
    policy = spec.get("podManagementPolicy", "")
    if policy not in (ORDERED, PARALLEL):
        causes.invalid("spec.podManagementPolicy", policy, f"must be '{ORDERED}' or '{PARALLEL}'")
    _strategy(spec.get("updateStrategy", {}), "spec.updateStrategy", causes)
    for when, what in spec.get("persistentVolumeClaimRetentionPolicy", {}).items():
        causes.one_of(what, (RETAIN, DELETE), f"spec.persistentVolumeClaimRetentionPolicy.{when}")
    if new:
        for index, claim in enumerate(spec.get("volumeClaimTemplates", ())):
            validate_claim_spec(claim.get("spec", {}), f"spec.volumeClaimTemplates[{index}].spec", causes)
    _SPEC.check(spec, "spec", causes)
    _ORDINALS.check(spec.get("ordinals", {}), "spec.ordinals", causes)
    if new and spec.get("serviceName"):
        causes.check(dns_label, spec["serviceName"], "spec.serviceName")
    if validate_own_selector(spec, "spec", "statefulset", "", causes):
        _template(spec, "spec.template", causes, pods=pods)
    require_restart_always(spec, "spec", "StatefulSet", causes)


def _strategy(strategy: Mapping[str, Any], path: str, causes: Causes) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    shown = None
    if rolling is not None:
        shown = {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
    if kind == ROLLING:
        _ROLLING.check(rolling or {}, f"{path}.rollingUpdate", causes)
    elif kind == ON_DELETE:
        if rolling is not None:
            causes.invalid(f"{path}.rollingUpdate", shown, f"only allowed for updateStrategy '{ROLLING}'")
    elif not kind:
        causes.required(path)
    else:
        causes.invalid(path, {"Type": kind, "RollingUpdate": shown}, f"must be '{ROLLING}' or '{ON_DELETE}'")


def _template(spec: Mapping[str, Any], path: str, causes: Causes, *, pods: bool) -> None:
    template = spec.get("template", {})
    if pods:
        validate_template(_as_made(spec, template), path, causes)
    # kube-apiserver checks these twice.
    causes.labels(template_labels(template) or {}, f"{path}.labels")
    validate_annotations(template.get("metadata", {}).get("annotations", {}), f"{path}.annotations", causes)


def _as_made(spec: Mapping[str, Any], template: dict[str, Any]) -> dict[str, Any]:
    """The template as the controller completes it: a volume for each claim, and its own hostname and subdomain."""
    pod = {key: value for key, value in template.get("spec", {}).items() if key not in ("hostname", "subdomain")}
    claims = {claim.get("metadata", {}).get("name", ""): None for claim in spec.get("volumeClaimTemplates", ())}
    if claims:
        held = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        pod["volumes"] = held + [one for one in pod.get("volumes", ()) if one.get("name") not in claims]
    return {**template, "spec": pod}


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    spec, was = new.get("spec", {}), old.get("spec", {})
    before = Causes()
    _validate_spec(was, before, new=False)
    # A template that is stored already is not refused now.
    _validate_spec(spec, causes, new=False, pods=not before)
    if any(spec.get(key) != was.get(key) for key in {**spec, **was} if key not in _MAY_CHANGE):
        causes.forbidden("spec", FORBIDDEN_CHANGE)


def _validate_status(new: Object, old: Object, causes: Causes) -> None:
    status = new.get("status", {})
    _STATUS.check(status, "status", causes)
    within = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    check_at_most(status, within, "replicas", MORE_THAN_ALL, causes)
    check_at_most(
        status, ("availableReplicas",), "readyReplicas", "cannot be greater than status.readyReplicas", causes
    )
    check_not_decreased(status, old.get("status", {}), "collisionCount", causes)


def _warnings(obj: Object) -> list[str]:
    found = pod_warnings(obj)
    if obj.get("spec", {}).get("revisionHistoryLimit", 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        found.append(f"spec.revisionHistoryLimit: {text}")
    return found


KIND: Final = Kind(
    "apps/v1 statefulsets StatefulSet N sts all | scale status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        warnings=_warnings,
        name_rule=dns_label,
        counts_generation=True,
    ),
    columns="Name!, Ready, Age, +Containers, +Images",
    cells={"Ready": ready_of_desired},
    description="StatefulSet runs pods with stable names and storage, in order.",
)
