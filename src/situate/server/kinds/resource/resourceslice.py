"""ResourceSlice: the devices that a node, or several nodes, offer."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.core.pod.volumes import csi_driver
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, subdomain
from situate.server.kinds.node_selectors import node_selector
from situate.server.kinds.resource.policies import request_policy
from situate.server.kinds.resource.resourceclaim import binding_conditions, pool_name
from situate.server.kinds.resource.taints import check_taint, stamp_taint
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

MAX_DEVICES: Final = 128
MAX_ADVANCED_DEVICES: Final = 64
"""If one has taints, consumes counters or has lists as attributes."""
MAX_COUNTER_SETS: Final = 8
MAX_COUNTERS: Final = 32
MAX_CONSUMPTIONS: Final = 2
MAX_TAINTS: Final = 16
MAX_ATTRIBUTES: Final = 32
MAX_TEXT: Final = 64


ONE_PLACE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


ONE_TERM: Final = "must have exactly one node selector term"
ONE_DEVICE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required"
    " when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
NO_DEVICE_PLACE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set"
    " if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)


_VALUES: Final = {
    "int": "IntValue",
    "bool": "BoolValue",
    "string": "StringValue",
    "version": "VersionValue",
    "ints": "IntValues",
    "bools": "BoolValues",
    "strings": "StringValues",
    "versions": "VersionValues",
}
_IS_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
).fullmatch


def _stamp_taints(new: Object, _old: Object | None, now: str) -> None:
    for device in new.get("spec", {}).get("devices") or ():
        for taint in device.get("taints") or ():
            stamp_taint(taint, now)


def _validate_slice(obj: Object, causes: Causes) -> None:
    _slice(obj.get("spec", {}), None, causes)


def _validate_slice_update(new: Object, old: Object, causes: Causes) -> None:
    _slice(new.get("spec", {}), old.get("spec", {}), causes)


def _slice(spec: Mapping[str, Any], was: Mapping[str, Any] | None, causes: Causes) -> None:
    csi_driver(spec.get("driver", ""), "spec.driver", causes)
    _pool(spec.get("pool", {}), causes)
    if was is not None:
        causes.immutable(spec.get("pool", {}).get("name"), was.get("pool", {}).get("name"), "spec.pool.name")
        for name in ("driver", "nodeName"):
            causes.immutable(spec.get(name), was.get(name), f"spec.{name}")
    _place(spec, causes)
    if "sharedCounters" in spec and "devices" in spec:
        causes.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    devices = spec.get("devices", ())
    causes.at_most(MAX_ADVANCED_DEVICES if any(map(_is_advanced, devices)) else MAX_DEVICES, devices, "spec.devices")
    seen: set[str] = set()
    for index, device in enumerate(devices):
        at, name = f"spec.devices[{index}]", device.get("name", "")
        _device(device, at, causes)
        _device_place(device, at, causes, each=bool(spec.get("perDeviceNodeSelection")))
        causes.unique(name, seen, at)
    _counter_sets(spec.get("sharedCounters", ()), causes)


def _is_advanced(device: Mapping[str, Any]) -> bool:
    lists = ("ints", "bools", "strings", "versions")
    return bool(
        device.get("taints")
        or device.get("consumesCounters")
        or any(one.get(name) is not None for one in device.get("attributes", {}).values() for name in lists)
    )


def _counter_sets(sets: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    path, seen = "spec.sharedCounters", set[str]()
    causes.at_most(MAX_COUNTER_SETS, sets, path)
    for index, one in enumerate(sets):
        at, counters = f"{path}[{index}]", one.get("counters", {})
        causes.require_valid(dns_label, one.get("name", ""), f"{at}.name")
        causes.require(counters, f"{at}.counters")
        causes.at_most(MAX_COUNTERS, counters, f"{at}.counters")
        for name in sorted(counters):
            causes.check(dns_label, name, f"{at}.counters")
        causes.unique(one.get("name", ""), seen, at)


def _device_place(device: Mapping[str, Any], path: str, causes: Causes, *, each: bool) -> None:
    """`each`: every device says where it is."""
    if not each:
        if any(name in device for name in ("nodeName", "nodeSelector", "allNodes")):
            causes.invalid(path, None, NO_DEVICE_PLACE)
        return
    given = []
    if "nodeName" in device:
        if device["nodeName"]:
            given.append("`nodeName`")
            causes.check(subdomain, device["nodeName"], f"{path}.nodeName")
        else:
            causes.invalid(f"{path}.nodeName", "", "must not be empty")
    if "nodeSelector" in device:
        given.append("`nodeSelector`")
        node_selector(device["nodeSelector"], f"{path}.nodeSelector", causes)
    if device.get("allNodes"):
        given.append("`allNodes`")
    elif "allNodes" in device:
        causes.invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    if not given:
        causes.required(path, ONE_DEVICE_PLACE)
    elif len(given) > 1:
        causes.invalid(path, f"{{{', '.join(given)}}}", ONE_DEVICE_PLACE)


def _pool(pool: Mapping[str, Any], causes: Causes) -> None:
    at = "spec.pool"
    pool_name(pool.get("name", ""), f"{at}.name", causes)
    if pool.get("resourceSliceCount", 0) <= 0:
        value = pool.get("resourceSliceCount", 0)
        causes.invalid(f"{at}.resourceSliceCount", value, "must be greater than zero")
    if pool.get("generation", 0) < 0:
        causes.invalid(f"{at}.generation", pool["generation"], "must be greater than or equal to zero")


def _place(spec: Mapping[str, Any], causes: Causes) -> None:
    given = []
    if "nodeName" in spec:
        if spec["nodeName"]:
            given.append("`nodeName`")
            causes.check(subdomain, spec["nodeName"], "spec.nodeName")
        else:
            causes.invalid("spec.nodeName", "", "must be either unset or set to a non-empty string")
    if "nodeSelector" in spec:
        given.append("`nodeSelector`")
        node_selector(spec["nodeSelector"], "spec.nodeSelector", causes)
        terms = spec["nodeSelector"].get("nodeSelectorTerms") or []
        if len(terms) != 1:
            causes.invalid("spec.nodeSelector.nodeSelectorTerms", [_go_term(one) for one in terms] or None, ONE_TERM)
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name):
            given.append(f"`{name}`")
        elif name in spec:
            causes.invalid(f"spec.{name}", False, "must be either unset or set to true")
    if not given:
        causes.required("spec", ONE_PLACE)
    elif len(given) > 1:
        causes.invalid("spec", f"{{{', '.join(given)}}}", f"{ONE_PLACE}, but multiple fields are set")


def _go_term(term: Mapping[str, Any]) -> dict[str, Any]:
    """A term of a node selector, as kube-apiserver shows it."""
    return {
        name: [
            {"Key": one.get("key", ""), "Operator": one.get("operator", ""), "Values": one.get("values")}
            for one in term.get(field, ())
        ]
        or None
        for name, field in (("MatchExpressions", "matchExpressions"), ("MatchFields", "matchFields"))
    }


def _device(device: Mapping[str, Any], path: str, causes: Causes) -> None:
    causes.check(dns_label, device.get("name", ""), f"{path}.name")
    attributes, capacity = device.get("attributes", {}), device.get("capacity", {})
    total = len(attributes) + len(capacity)
    if total > MAX_ATTRIBUTES:
        causes.invalid(path, total, f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}")
    for name, value in sorted(attributes.items()):
        causes.check(qualified_name_problems, name, f"{path}.attributes")
        _attribute(value, f"{path}.attributes[{name}]", causes)
    for name in sorted(capacity):
        causes.check(qualified_name_problems, name, f"{path}.capacity")
        policy, at = capacity[name].get("requestPolicy"), f"{path}.capacity[{name}].requestPolicy"
        if policy is not None and not device.get("allowMultipleAllocations"):
            causes.forbidden(at, "allowMultipleAllocations must be true")
        elif policy is not None:
            request_policy(policy, capacity[name].get("value", "0"), at, causes)
    causes.at_most(MAX_TAINTS, device.get("taints", ()), f"{path}.taints")
    for index, one in enumerate(device.get("taints", ())):
        check_taint(one, f"{path}.taints[{index}]", causes)
    _consumptions(device.get("consumesCounters", ()), f"{path}.consumesCounters", causes)
    binding_conditions(device, path, causes)


def _consumptions(these: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    seen: set[str] = set()
    causes.at_most(MAX_CONSUMPTIONS, these, path)
    for index, one in enumerate(these):
        at, counters = f"{path}[{index}]", one.get("counters", {})
        causes.require_valid(dns_label, one.get("counterSet", ""), f"{at}.counterSet")
        causes.require(counters, f"{at}.counters")
        causes.at_most(MAX_COUNTERS, counters, f"{at}.counters")
        for name in sorted(counters):
            causes.check(dns_label, name, f"{at}.counters")
        causes.unique(one.get("counterSet", ""), seen, at)


def _attribute(value: Mapping[str, Any], path: str, causes: Causes) -> None:
    text, version = value.get("string"), value.get("version")
    if text is not None and len(text) > MAX_TEXT:
        causes.too_long(f"{path}.string", MAX_TEXT)
    if version is not None and not _IS_VERSION(version):
        causes.invalid(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0")
    given = [name for name in _VALUES if value.get(name) is not None]
    if not given:
        causes.invalid(path, "", "exactly one value must be specified")
    elif len(given) > 1:
        shown = {word: value.get(name) for name, word in _VALUES.items()}
        causes.invalid(path, shown, "exactly one value must be specified")


def _slice_selectable(obj: Object) -> Mapping[str, str]:
    spec = obj.get("spec", {})
    return {"spec.nodeName": spec.get("nodeName", ""), "spec.driver": spec.get("driver", "")}


KIND: Final = Kind(
    "resource.k8s.io/v1 resourceslices ResourceSlice C - -",
    strategy=Strategy(
        stamp=_stamp_taints,
        validate=_validate_slice,
        validate_update=_validate_slice_update,
        selectable=_slice_selectable,
        counts_generation=True,
    ),
    columns="Name!, Node = spec.nodeName, Driver = spec.driver, Pool = spec.pool.name, Age",
    description="ResourceSlice lists the devices of one or several nodes.",
)
