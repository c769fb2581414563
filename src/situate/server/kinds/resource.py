"""resource.k8s.io/v1: claims on devices, classes of them, and what nodes offer.

Names, modes, counts and what may not change are checked as kube-apiserver does. Expressions (CEL), tolerations,
counters and the results of an allocation are kept as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.errors import Cause
from situate.server.kinds.internals import CLAIM, inside
from situate.server.kinds.naming import MAX_SUBDOMAIN, dns_label, subdomain, too_long_text
from situate.server.kinds.selecting import node_selector
from situate.server.kinds.states import reset_status
from situate.server.kinds.storage import driver_name
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.kinds.validating import (
    IMMUTABLE,
    Causes,
    check,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from situate.server.requests import Object

__all__ = ["STRATEGIES"]

ALL, EXACT = "All", "ExactCount"
MAX_REQUESTS: Final = 32
MAX_SUB_REQUESTS: Final = 8
MAX_SELECTORS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_CONFIGS: Final = 32
MAX_EXPRESSION: Final = 10 * 1024
MAX_RESERVED: Final = 256
MAX_DEVICES: Final = 128
MAX_POOL_NAME: Final = 253
MAX_ATTRIBUTES: Final = 32
MAX_TEXT: Final = 64
ONE_KIND: Final = "exactly one of `exactly` or `firstAvailable` is required"
ONE_PLACE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
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


# ── ResourceClaim, and templates of them ────────────────────────────────────────────────────────────────────────────


def _default_claim(obj: Object) -> None:
    _default_claim_spec(obj.setdefault("spec", {}))


def _default_template(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("metadata", {})
    _default_claim_spec(spec.setdefault("spec", {}))


def _default_claim_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("devices", {})
    for request in spec["devices"].get("requests", ()):
        if "exactly" in request:
            _default_request(request["exactly"])
        for one in request.get("firstAvailable", ()):
            _default_request(one)


def _default_request(request: dict[str, Any]) -> None:
    if request.setdefault("allocationMode", EXACT) == EXACT and not request.get("count"):
        request["count"] = 1


def _validate_claim(obj: Object) -> list[Cause]:
    causes: Causes = []
    _claim(obj.get("spec", {}).get("devices", {}), "spec.devices", causes)
    return causes


def _validate_template(obj: Object) -> list[Cause]:
    causes: Causes = []
    _claim(obj.get("spec", {}).get("spec", {}).get("devices", {}), "spec.spec.devices", causes)
    return causes


def _claim(devices: Mapping[str, Any], path: str, causes: Causes) -> None:
    requests = devices.get("requests", ())
    _each_once(requests, MAX_REQUESTS, f"{path}.requests", causes)
    known = set()
    for request in requests:
        name = request.get("name", "")
        known.add(name)
        known.update(f"{name}/{one.get('name', '')}" for one in request.get("firstAvailable", ()))
    for kind, limit in (("constraints", MAX_CONSTRAINTS), ("config", MAX_CONFIGS)):
        these = devices.get(kind, ())
        if len(these) > limit:
            causes.append(too_many(f"{path}.{kind}", len(these), limit))
        for index, one in enumerate(these):
            _references(one.get("requests", ()), known, f"{path}.{kind}[{index}].requests", causes)
            if kind == "config":
                _config(one, f"{path}.config[{index}]", causes)


def _each_once(requests: Sequence[Mapping[str, Any]], limit: int, path: str, causes: Causes) -> None:
    if len(requests) > limit:
        causes.append(too_many(path, len(requests), limit))
    seen: set[str] = set()
    for index, request in enumerate(requests):
        at, name = f"{path}[{index}]", request.get("name", "")
        _request(request, at, causes)
        if name in seen:
            causes.append(duplicate(at, name))
        seen.add(name)


def _request(request: Mapping[str, Any], path: str, causes: Causes) -> None:
    check(dns_label, request.get("name", ""), f"{path}.name", causes)
    exact, some = request.get("exactly"), request.get("firstAvailable")
    if exact is None and not some:
        causes.append(required(path, ONE_KIND))
    elif exact is not None and some:
        causes.append(invalid(path, None, f"{ONE_KIND}, but multiple fields are set"))
    elif exact is not None:
        _devices(exact, f"{path}.exactly", causes)
    elif some:
        _sub_requests(some, f"{path}.firstAvailable", causes)


def _sub_requests(these: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    if len(these) > MAX_SUB_REQUESTS:
        causes.append(too_many(path, len(these), MAX_SUB_REQUESTS))
    seen: set[str] = set()
    for index, one in enumerate(these):
        at, name = f"{path}[{index}]", one.get("name", "")
        check(dns_label, name, f"{at}.name", causes)
        _devices(one, at, causes)
        if name in seen:
            causes.append(duplicate(at, name))
        seen.add(name)


def _devices(request: Mapping[str, Any], path: str, causes: Causes) -> None:
    if request.get("deviceClassName"):
        check(subdomain, request["deviceClassName"], f"{path}.deviceClassName", causes)
    else:
        causes.append(required(f"{path}.deviceClassName"))
    _selectors(request.get("selectors", ()), f"{path}.selectors", causes)
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == ALL:
        if count:
            causes.append(invalid(f"{path}.count", count, f"must not be specified when allocationMode is '{ALL}'"))
    elif mode == EXACT:
        if count <= 0:
            causes.append(invalid(f"{path}.count", count, "must be greater than zero"))
    else:
        causes.append(not_supported(f"{path}.allocationMode", mode, [ALL, EXACT]))


def _selectors(these: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    if len(these) > MAX_SELECTORS:
        causes.append(too_many(path, len(these), MAX_SELECTORS))
    for index, one in enumerate(these):
        if one.get("cel") is None:
            causes.append(required(f"{path}[{index}].cel"))
        elif len(one["cel"].get("expression", "")) > MAX_EXPRESSION:
            causes.append(too_long(f"{path}[{index}].cel.expression", MAX_EXPRESSION))


def _references(names: Sequence[str], known: set[str], path: str, causes: Causes) -> None:
    for index, name in enumerate(names):
        if name.count("/") < 2:
            for part in name.split("/"):
                causes.extend(invalid(f"{path}[{index}]", part, problem) for problem in dns_label(part))
        if name not in known:
            causes.append(invalid(f"{path}[{index}]", name, NO_REQUEST))


def _config(config: Mapping[str, Any], path: str, causes: Causes) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        causes.append(required(f"{path}.opaque"))
        return
    driver_name(opaque.get("driver", ""), f"{path}.opaque.driver", causes)
    if opaque.get("parameters") is None:
        causes.append(required(f"{path}.opaque.parameters"))


def _validate_claim_update(new: Object, old: Object) -> list[Cause]:
    if new.get("spec") == old.get("spec"):
        return []
    return [invalid("spec", inside(new.get("spec"), CLAIM), IMMUTABLE)]


def _validate_template_update(new: Object, old: Object) -> list[Cause]:
    if new.get("spec") == old.get("spec"):
        return []
    spec = new.get("spec", {})
    return [invalid("spec", {**spec.get("metadata", {}), "Spec": inside(spec.get("spec"), CLAIM)}, IMMUTABLE)]


def _validate_claim_status(new: Object, old: Object) -> list[Cause]:
    causes: Causes = []
    status, was = new.get("status", {}), old.get("status", {})
    holders, at = status.get("reservedFor", ()), "status.reservedFor"
    if len(holders) > MAX_RESERVED:
        causes.append(too_many(at, len(holders), MAX_RESERVED))
    seen: set[str] = set()
    for index, one in enumerate(holders):
        for name in ("resource", "name", "uid"):
            if not one.get(name):
                causes.append(required(f"{at}[{index}].{name}"))
        if one.get("uid", "") in seen:
            causes.append(duplicate(f"{at}[{index}]", one.get("uid", "")))
        seen.add(one.get("uid", ""))
    allocation = status.get("allocation")
    if holders and allocation is None:
        causes.append(forbidden(at, "may not be specified when `allocated` is not set"))
    added = any(one not in was.get("reservedFor", ()) for one in holders)
    if added and allocation is not None and new.get("metadata", {}).get("deletionTimestamp"):
        text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        causes.append(forbidden(at, text))
    if allocation is not None and was.get("allocation") is not None:
        immutable(allocation, was["allocation"], "status.allocation", causes)
    elif allocation is not None and "nodeSelector" in allocation:
        node_selector(allocation["nodeSelector"], "status.allocation.nodeSelector", causes)
    return causes


# ── DeviceClass ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _default_class(obj: Object) -> None:
    obj.setdefault("spec", {})


def _class_name(name: str) -> tuple[str, ...]:
    """As everywhere, but that its length is told in bytes."""
    long = too_long_text(MAX_SUBDOMAIN)
    return tuple(f"must be no more than {MAX_SUBDOMAIN} bytes" if one == long else one for one in subdomain(name))


def _validate_class(obj: Object) -> list[Cause]:
    causes: Causes = []
    spec = obj.get("spec", {})
    _selectors(spec.get("selectors", ()), "spec.selectors", causes)
    configs = spec.get("config", ())
    if len(configs) > MAX_CONFIGS:
        causes.append(too_many("spec.config", len(configs), MAX_CONFIGS))
    for index, config in enumerate(configs):
        _config(config, f"spec.config[{index}]", causes)
    return causes


def _validate_class_update(new: Object, _old: Object) -> list[Cause]:
    return _validate_class(new)


# ── ResourceSlice ───────────────────────────────────────────────────────────────────────────────────────────────────


def _validate_slice(obj: Object) -> list[Cause]:
    return _slice(obj.get("spec", {}), None)


def _validate_slice_update(new: Object, old: Object) -> list[Cause]:
    return _slice(new.get("spec", {}), old.get("spec", {}))


def _slice(spec: Mapping[str, Any], was: Mapping[str, Any] | None) -> list[Cause]:
    causes: Causes = []
    driver_name(spec.get("driver", ""), "spec.driver", causes)
    _pool(spec.get("pool", {}), causes)
    if was is not None:
        immutable(spec.get("pool", {}).get("name"), was.get("pool", {}).get("name"), "spec.pool.name", causes)
        for name in ("driver", "nodeName"):
            immutable(spec.get(name), was.get(name), f"spec.{name}", causes)
    _place(spec, causes)
    if "sharedCounters" in spec and "devices" in spec:
        causes.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    devices = spec.get("devices", ())
    if len(devices) > MAX_DEVICES:
        causes.append(too_many("spec.devices", len(devices), MAX_DEVICES))
    seen: set[str] = set()
    for index, device in enumerate(devices):
        at, name = f"spec.devices[{index}]", device.get("name", "")
        _device(device, at, causes)
        if name in seen:
            causes.append(duplicate(at, name))
        seen.add(name)
    return causes


def _pool(pool: Mapping[str, Any], causes: Causes) -> None:
    name, at = pool.get("name", ""), "spec.pool"
    if not name:
        causes.append(required(f"{at}.name"))
    else:
        if len(name) > MAX_POOL_NAME:
            causes.append(too_long(f"{at}.name", MAX_POOL_NAME))
        for part in name.split("/"):
            check(subdomain, part, f"{at}.name", causes)
    if pool.get("resourceSliceCount", 0) <= 0:
        value = pool.get("resourceSliceCount", 0)
        causes.append(invalid(f"{at}.resourceSliceCount", value, "must be greater than zero"))
    if pool.get("generation", 0) < 0:
        causes.append(invalid(f"{at}.generation", pool["generation"], "must be greater than or equal to zero"))


def _place(spec: Mapping[str, Any], causes: Causes) -> None:
    given = []
    if "nodeName" in spec:
        if spec["nodeName"]:
            given.append("`nodeName`")
            check(subdomain, spec["nodeName"], "spec.nodeName", causes)
        else:
            causes.append(invalid("spec.nodeName", "", "must be either unset or set to a non-empty string"))
    if "nodeSelector" in spec:
        given.append("`nodeSelector`")
        node_selector(spec["nodeSelector"], "spec.nodeSelector", causes)
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name):
            given.append(f"`{name}`")
        elif name in spec:
            causes.append(invalid(f"spec.{name}", False, "must be either unset or set to true"))
    if not given:
        causes.append(required("spec", ONE_PLACE))
    elif len(given) > 1:
        causes.append(invalid("spec", f"{{{', '.join(given)}}}", f"{ONE_PLACE}, but multiple fields are set"))


def _device(device: Mapping[str, Any], path: str, causes: Causes) -> None:
    check(dns_label, device.get("name", ""), f"{path}.name", causes)
    attributes, capacity = device.get("attributes", {}), device.get("capacity", {})
    total = len(attributes) + len(capacity)
    if total > MAX_ATTRIBUTES:
        text = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}"
        causes.append(invalid(path, total, text))
    for name, value in sorted(attributes.items()):
        check(qualified_name_problems, name, f"{path}.attributes", causes)
        _attribute(value, f"{path}.attributes[{name}]", causes)
    for name in sorted(capacity):
        check(qualified_name_problems, name, f"{path}.capacity", causes)


def _attribute(value: Mapping[str, Any], path: str, causes: Causes) -> None:
    text, version = value.get("string"), value.get("version")
    if text is not None and len(text) > MAX_TEXT:
        causes.append(too_long(f"{path}.string", MAX_TEXT))
    if version is not None and not _IS_VERSION(version):
        causes.append(invalid(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0"))
    given = [name for name in _VALUES if value.get(name) is not None]
    if not given:
        causes.append(invalid(path, "", "exactly one value must be specified"))
    elif len(given) > 1:
        shown = {word: value.get(name) for name, word in _VALUES.items()}
        causes.append(invalid(path, shown, "exactly one value must be specified"))


def _slice_selectable(obj: Object) -> Mapping[str, str]:
    spec = obj.get("spec", {})
    return {"spec.nodeName": spec.get("nodeName", ""), "spec.driver": spec.get("driver", "")}


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "resource.k8s.io/ResourceClaim": Strategy(
        default=_default_claim,
        prepare_create=reset_status(),
        prepare_update=keep_status,
        validate=_validate_claim,
        validate_update=_validate_claim_update,
        validate_status=_validate_claim_status,
    ),
    "resource.k8s.io/ResourceClaimTemplate": Strategy(
        default=_default_template, validate=_validate_template, validate_update=_validate_template_update
    ),
    "resource.k8s.io/DeviceClass": Strategy(
        default=_default_class,
        validate=_validate_class,
        validate_update=_validate_class_update,
        name_rule=_class_name,
        counts_generation=True,
    ),
    "resource.k8s.io/ResourceSlice": Strategy(
        validate=_validate_slice,
        validate_update=_validate_slice_update,
        selectable=_slice_selectable,
        counts_generation=True,
    ),
}
