"""ResourceSlice: the devices that a node, or several nodes, offer."""

import re
from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.core.pod.volumes import csi_driver
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, subdomain
from situate.server.kinds.node_selectors import node_selector
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

MAX_DEVICES: Final = 128
MAX_POOL_NAME: Final = 253
MAX_ATTRIBUTES: Final = 32
MAX_TEXT: Final = 64


ONE_PLACE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"


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
    causes.at_most(MAX_DEVICES, devices, "spec.devices")
    seen: set[str] = set()
    for index, device in enumerate(devices):
        at, name = f"spec.devices[{index}]", device.get("name", "")
        _device(device, at, causes)
        causes.unique(name, seen, at)


def _pool(pool: Mapping[str, Any], causes: Causes) -> None:
    name, at = pool.get("name", ""), "spec.pool"
    if not name:
        causes.required(f"{at}.name")
    else:
        if len(name) > MAX_POOL_NAME:
            causes.too_long(f"{at}.name", MAX_POOL_NAME)
        for part in name.split("/"):
            causes.check(subdomain, part, f"{at}.name")
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
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name):
            given.append(f"`{name}`")
        elif name in spec:
            causes.invalid(f"spec.{name}", False, "must be either unset or set to true")
    if not given:
        causes.required("spec", ONE_PLACE)
    elif len(given) > 1:
        causes.invalid("spec", f"{{{', '.join(given)}}}", f"{ONE_PLACE}, but multiple fields are set")


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
        validate=_validate_slice,
        validate_update=_validate_slice_update,
        selectable=_slice_selectable,
        counts_generation=True,
    ),
    columns="Name!, Node = spec.nodeName, Driver = spec.driver, Pool = spec.pool.name, Age",
    description="ResourceSlice lists the devices of one or several nodes.",
)
