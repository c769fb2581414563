"""PodGroup of scheduling.k8s.io, in either version: v1alpha2 has podGroupTemplateRef, v1beta1 has workloadRef.

Unlike kube-apiserver with its default feature gates, groups keep what they say about topology, disruption and priority.
"""

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.group import POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED
from situate.core.model.names import qualified_name_problems
from situate.server.errors import Cause
from situate.server.kinds.conditions import conditions
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import IMMUTABLE, Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import NameRule, dns_label, subdomain
from situate.server.kinds.status import reset_status
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object
from situate.server.tables.cells import NONE, condition

_ALPHA_SPEC: Final = FieldChecks("scheduling.v1alpha2.PodGroupSpec")
HIGHEST: Final = 1_000_000_000


MAX_TOPOLOGIES: Final = 1
MAX_CLAIMS: Final = 4


def _default_group(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("schedulingPolicy", {})
    version = obj.get("apiVersion", "")
    if version.endswith("/v1alpha2"):
        spec.setdefault("disruptionMode", "Pod")
    elif version.endswith("/v1beta1"):
        spec.setdefault("disruptionMode", {"single": {}})


def _validate_group(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    _workload(spec, causes)
    _policy(spec.get("schedulingPolicy", {}), "spec.schedulingPolicy", causes)
    _topology(spec.get("schedulingConstraints", {}).get("topology", ()), causes)
    _claims(spec.get("resourceClaims", ()), causes)
    if isinstance(spec.get("disruptionMode"), str):
        _ALPHA_SPEC.check(spec, "spec", causes, "disruptionMode")
    if spec.get("priorityClassName"):
        causes.check(subdomain, spec["priorityClassName"], "spec.priorityClassName")
    if spec.get("priority", 0) > HIGHEST:
        causes.invalid("spec.priority", spec["priority"], f"must be less than or equal to {HIGHEST}")


def _workload(spec: Mapping[str, Any], causes: Causes) -> None:
    if "podGroupTemplateRef" in spec:
        named = spec["podGroupTemplateRef"].get("workload")
        at, template = "spec.podGroupTemplateRef", "podGroupTemplateName"
        if named is None:
            causes.invalid(at, "", "must specify one of: `workload`")
            return
        _named(named, "workloadName", subdomain, f"{at}.workload", causes)
        _named(named, template, dns_label, f"{at}.workload", causes)
    elif "workloadRef" in spec:
        _named(spec["workloadRef"], "workloadName", subdomain, "spec.workloadRef", causes)
        _named(spec["workloadRef"], "templateName", dns_label, "spec.workloadRef", causes)


def _named(found: Mapping[str, Any], key: str, rule: NameRule, path: str, causes: Causes) -> None:
    if found.get(key):
        causes.check(rule, found[key], f"{path}.{key}")
    else:
        causes.required(f"{path}.{key}")


def _policy(policy: Mapping[str, Any], path: str, causes: Causes) -> None:
    given = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if not given:
        causes.invalid(path, "", "must specify one of: `basic`, `gang`")
    elif len(given) > 1:
        causes.invalid(path, "{basic, gang}", "must specify exactly one of: `basic`, `gang`")
    if "gang" in given:
        least = policy["gang"].get("minCount", 0)
        if not least:
            causes.required(f"{path}.gang.minCount")
        elif least < 1:
            causes.invalid(f"{path}.gang.minCount", least, "must be greater than or equal to 1")


def _topology(constraints: Any, causes: Causes) -> None:
    at = "spec.schedulingConstraints.topology"
    if len(constraints) > MAX_TOPOLOGIES:
        causes.too_many(at, len(constraints), MAX_TOPOLOGIES)
        return
    for index, one in enumerate(constraints):
        causes.require_valid(qualified_name_problems, one.get("key", ""), f"{at}[{index}].key")


def _claims(claims: Any, causes: Causes) -> None:
    at = "spec.resourceClaims"
    if len(claims) > MAX_CLAIMS:
        causes.too_many(at, len(claims), MAX_CLAIMS)
        return
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        name, path = claim.get("name", ""), f"{at}[{index}]"
        if name in seen:
            causes.duplicate(path, {"name": name})
        seen.add(name)
        given = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if key in claim]
        if len(given) != 1:
            words = "must specify exactly one of" if given else "must specify one of"
            shown = f"{{{', '.join(given)}}}" if given else ""
            causes.invalid(path, shown, f"{words}: `resourceClaimName`, `resourceClaimTemplateName`")
        _named(claim, "name", dns_label, path, causes)
        for key in given:
            causes.check(subdomain, claim[key], f"{path}.{key}")


def _validate_group_update(new: Object, old: Object, causes: Causes) -> None:
    """The spec of a group must not change, except, in v1beta1, the size of its gang."""
    spec, was = new.get("spec", {}), old.get("spec", {})
    growing = new.get("apiVersion", "").endswith("/v1beta1")
    for key in {**was, **spec}:
        if spec.get(key) == was.get(key):
            continue
        if growing and key == "schedulingPolicy":
            _policy_update(spec.get(key, {}), was.get(key, {}), causes)
        else:
            causes.append(Cause(f"spec.{key}", f"Invalid value: null: {IMMUTABLE}"))


def _policy_update(policy: Mapping[str, Any], was: Mapping[str, Any], causes: Causes) -> None:
    at = "spec.schedulingPolicy"
    _policy(policy, at, causes)
    if policy.get("basic") != was.get("basic"):
        causes.append(Cause(f"{at}.basic", f"Invalid value: null: {IMMUTABLE}"))
    if ("gang" in policy) != ("gang" in was):
        text = "field cannot be set once created" if "gang" in policy else "field cannot be cleared once set"
        causes.invalid(f"{at}.gang", None, text)


def _validate_group_status(new: Object, _old: Object, causes: Causes) -> None:
    status = new.get("status", {})
    conditions(status.get("conditions", ()), "status.conditions", causes)
    known = [claim.get("name") for claim in new.get("spec", {}).get("resourceClaims", ())]
    for index, one in enumerate(status.get("resourceClaimStatuses", ())):
        if one.get("name", "") not in known:
            text = "must match the name of an entry in `spec.resourceClaims`"
            causes.invalid(f"status.resourceClaimStatuses[{index}].name", one.get("name", ""), text)


def _policy_shown(obj: Object) -> str:
    gang = ((obj.get("spec") or {}).get("schedulingPolicy") or {}).get("gang")
    return "Basic" if gang is None else "Gang"


def _workload_shown(obj: Object) -> str:
    spec = obj.get("spec") or {}
    reference = spec.get("workloadRef")
    if "podGroupTemplateRef" in spec:
        reference = (spec["podGroupTemplateRef"] or {}).get("workload")
    return NONE if reference is None else reference.get("workloadName", "")


def _status_shown(obj: Object) -> str:
    conditions = (obj.get("status") or {}).get("conditions")
    scheduled = condition(conditions, POD_GROUP_INITIALLY_SCHEDULED) or condition(conditions, POD_GROUP_SCHEDULED)
    disrupted = condition(conditions, "DisruptionTarget")
    if disrupted is not None:
        return str(disrupted.get("reason", ""))
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


KIND: Final = Kind(
    "scheduling.k8s.io/v1beta1,v1alpha2 podgroups PodGroup N - - | status",
    strategy=Strategy(
        default=_default_group,
        prepare_create=reset_status(),
        prepare_update=keep_status,
        validate=_validate_group,
        validate_update=_validate_group_update,
        validate_status=_validate_group_status,
    ),
    columns="Name!, Policy, Workload, Status, Age",
    cells={"Policy": _policy_shown, "Workload": _workload_shown, "Status": _status_shown},
    description="PodGroup is a set of pods that are scheduled together, or not at all.",
)
