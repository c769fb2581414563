"""Nodes: what a kubelet or an operator may write."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from situate.core.model.field_errors import quoted
from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.server.kinds.addresses import cidr, is_dual_stack
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.quantities import amount, round_amounts
from situate.server.kinds.strategy import Strategy, keep_all_but_status, keep_status
from situate.server.objects import Object
from situate.server.tables.cells import NONE, condition
from situate.server.tables.durations import UNKNOWN

_TAINT: Final = FieldChecks("core.v1.Taint")
ROLE_PREFIX: Final = "node-role.kubernetes.io/"
ROLE: Final = "kubernetes.io/role"

_CIDR_FIXED: Final = 'node updates may not change podCIDR except from "" to valid'
_PROVIDER_FIXED: Final = 'node updates may not change providerID except from "" to valid'
_UNIQUE: Final = "taints must be unique by key and effect pair"
_is_feature = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*", re.ASCII).fullmatch
_MAX_FEATURE: Final = 253


def _default(node: Object) -> None:
    status = node.setdefault("status", {})
    round_amounts(status.get("capacity"))
    round_amounts(status.get("allocatable"))
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = dict(status["capacity"])
    spec = node.setdefault("spec", {})
    # podCIDR is the first of podCIDRs, and wins where they differ.
    if own := spec.get("podCIDR"):
        if spec.get("podCIDRs", ("",))[:1] != [own]:
            spec["podCIDRs"] = [own]
    elif spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]


def _prepare_create(node: Object) -> None:
    """A node reports its status when it registers."""
    node["spec"].pop("configSource", None)
    node["status"].pop("config", None)


def taints(found: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(found):
        at, key, value, effect = (
            f"{path}[{index}]",
            taint.get("key", ""),
            taint.get("value", ""),
            taint.get("effect", ""),
        )
        causes.check(qualified_name_problems, key, f"{at}.key")
        if problems := label_value_problems(value):
            causes.invalid(f"{at}.value", value, ";".join(problems))
        _TAINT.check(taint, at, causes, "effect")
        if (effect, key) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            causes.duplicate(at, shown, _UNIQUE)
        seen.add((effect, key))


def _validate(node: Object, causes: Causes) -> None:
    spec = node.get("spec", {})
    if "taints" in spec:
        taints(spec["taints"], "metadata.taints", causes)  # kube-apiserver's path
    _resources(node, causes)
    swap = node.get("status", {}).get("nodeInfo", {}).get("swap", {}).get("capacity")
    if swap is not None:
        causes.positive(swap, "metadata.nodeSwapStatus.capacity")
    _features(node, causes)
    ranges = spec.get("podCIDRs", [])
    for index, one in enumerate(ranges):
        cidr(one, f"spec.podCIDRs[{index}]", causes)
    if len(ranges) > 2 or (len(ranges) == 2 and not is_dual_stack(ranges)):
        causes.invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family")


def _resources(node: Object, causes: Causes) -> None:
    status = node.get("status", {})
    for which in ("capacity", "allocatable"):
        for name, raw in status.get(which, {}).items():
            amount(name, raw, f"status.{which}.{name}", causes)


def _features(node: Object, causes: Causes) -> None:
    """Feature names must be sorted and unique."""
    found = node.get("status", {}).get("declaredFeatures", ())
    for index, feature in enumerate(found):
        where = f"status.declaredFeatures[{index}]"
        if len(feature) > _MAX_FEATURE:
            detail = f"invalid feature name {quoted(feature)}: must be no more than {_MAX_FEATURE} characters"
            causes.invalid(where, feature, detail)
        elif not _is_feature(feature):
            detail = (
                f"invalid feature name {quoted(feature)}: must start with an UpperCamelCase segment, with subsequent "
                "segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric "
                "characters and slashes"
            )
            causes.invalid(where, feature, detail)
        if index and found[index - 1] == feature:
            causes.duplicate(where, feature)
        elif index and found[index - 1] > feature:
            causes.invalid(where, feature, "list must be sorted alphabetically")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    found = Causes()
    _validate(new, found)
    _validate_status(new, old, found)
    causes.extend(dict.fromkeys(found))


def _validate_status(new: Object, old: Object, causes: Causes) -> None:
    _resources(new, causes)
    _features(new, causes)
    seen: list[Mapping[str, Any]] = []
    for index, address in enumerate(new.get("status", {}).get("addresses", ())):
        if address in seen:
            shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            causes.duplicate(f"status.addresses[{index}]", shown)
        seen.append(address)
    spec, was = new.get("spec", {}), old.get("spec", {})
    if was.get("podCIDRs") and was["podCIDRs"] != spec.get("podCIDRs", []):
        causes.forbidden("spec.podCIDRs", _CIDR_FIXED)
    if was.get("providerID") and was["providerID"] != spec.get("providerID"):
        causes.forbidden("spec.providerID", _PROVIDER_FIXED)
    if "taints" in spec:
        taints(spec["taints"], "metadata.taints", causes)
    if spec.get("externalID", "") != was.get("externalID", ""):
        causes.forbidden("spec.externalID", "may not be updated")


def _selectable(node: Object) -> Mapping[str, str]:
    return {"spec.unschedulable": "true" if node.get("spec", {}).get("unschedulable") else "false"}


def _status_shown(obj: Object) -> str:
    ready = "Unknown"
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == "Ready":
            ready = "Ready" if one.get("status") == "True" else "NotReady"
    return f"{ready},SchedulingDisabled" if (obj.get("spec") or {}).get("unschedulable") else ready


def _roles(obj: Object) -> str:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    return ",".join(sorted((roles | {labels.get(ROLE) or ""}) - {""})) or NONE


def _address(kind: str, obj: Object) -> str:
    found = condition((obj.get("status") or {}).get("addresses"), kind)
    return found.get("address", "") if found is not None else NONE


def _kernel(obj: Object) -> str:
    info = (obj.get("status") or {}).get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    return f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel


KIND: Final = Kind(
    "v1 nodes Node C no - | proxy status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=keep_status,
        prepare_status=keep_all_but_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        selectable=_selectable,
    ),
    columns="""
        Name!, Status, Roles, Age, Version = status.nodeInfo.kubeletVersion, +Internal-IP, +External-IP,
        +OS-Image = status.nodeInfo.osImage||<unknown>, +Kernel-Version,
        +Container-Runtime = status.nodeInfo.containerRuntimeVersion||<unknown>
        """,
    cells={
        "Status": _status_shown,
        "Roles": _roles,
        "Internal-IP": partial(_address, "InternalIP"),
        "External-IP": partial(_address, "ExternalIP"),
        "Kernel-Version": _kernel,
    },
    description="Node is a machine on which pods run.",
    words={
        "NodeSpec.taints": "Repels pods that do not tolerate the taint.",
        "NodeSpec.unschedulable": "The node takes no new pods: `kubectl cordon`.",
        "NodeStatus.allocatable": "The resources for pods.",
        "NodeStatus.capacity": "The resources of the machine.",
    },
)
