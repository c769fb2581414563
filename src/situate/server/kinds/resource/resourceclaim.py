"""ResourceClaim: a request for devices. Also the rules that templates and device classes share.

CEL expressions, tolerations, counters and the results of an allocation are stored as they are written.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.server.kinds.core.pod.volumes import csi_driver
from situate.server.kinds.field_errors import IMMUTABLE, Causes
from situate.server.kinds.go_structs import CLAIM, go_struct
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, subdomain
from situate.server.kinds.node_selectors import node_selector
from situate.server.kinds.status import reset_status
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.objects import Object

ALL, EXACT = "All", "ExactCount"
MAX_REQUESTS: Final = 32
MAX_SUB_REQUESTS: Final = 8
MAX_SELECTORS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_CONFIGS: Final = 32
MAX_EXPRESSION: Final = 10 * 1024
MAX_RESERVED: Final = 256


ONE_KIND: Final = "exactly one of `exactly` or `firstAvailable` is required"


NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def _default_claim(obj: Object) -> None:
    default_claim_spec(obj.setdefault("spec", {}))


def default_claim_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("devices", {})
    for request in spec["devices"].get("requests", ()):
        if "exactly" in request:
            _default_request(request["exactly"])
        for one in request.get("firstAvailable", ()):
            _default_request(one)


def _default_request(request: dict[str, Any]) -> None:
    if request.setdefault("allocationMode", EXACT) == EXACT and not request.get("count"):
        request["count"] = 1


def _validate_claim(obj: Object, causes: Causes) -> None:
    validate_devices(obj.get("spec", {}).get("devices", {}), "spec.devices", causes)


def validate_devices(devices: Mapping[str, Any], path: str, causes: Causes) -> None:
    requests = devices.get("requests", ())
    _each_once(requests, MAX_REQUESTS, f"{path}.requests", causes)
    known = set()
    for request in requests:
        name = request.get("name", "")
        known.add(name)
        known.update(f"{name}/{one.get('name', '')}" for one in request.get("firstAvailable", ()))
    for kind, limit in (("constraints", MAX_CONSTRAINTS), ("config", MAX_CONFIGS)):
        these = devices.get(kind, ())
        causes.at_most(limit, these, f"{path}.{kind}")
        for index, one in enumerate(these):
            _references(one.get("requests", ()), known, f"{path}.{kind}[{index}].requests", causes)
            if kind == "config":
                config_problems(one, f"{path}.config[{index}]", causes)


def _each_once(requests: Sequence[Mapping[str, Any]], limit: int, path: str, causes: Causes) -> None:
    causes.at_most(limit, requests, path)
    seen: set[str] = set()
    for index, request in enumerate(requests):
        at, name = f"{path}[{index}]", request.get("name", "")
        _request(request, at, causes)
        causes.unique(name, seen, at)


def _request(request: Mapping[str, Any], path: str, causes: Causes) -> None:
    causes.check(dns_label, request.get("name", ""), f"{path}.name")
    exact, some = request.get("exactly"), request.get("firstAvailable")
    if exact is None and not some:
        causes.required(path, ONE_KIND)
    elif exact is not None and some:
        causes.invalid(path, None, f"{ONE_KIND}, but multiple fields are set")
    elif exact is not None:
        _devices(exact, f"{path}.exactly", causes)
    elif some:
        _sub_requests(some, f"{path}.firstAvailable", causes)


def _sub_requests(these: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    causes.at_most(MAX_SUB_REQUESTS, these, path)
    seen: set[str] = set()
    for index, one in enumerate(these):
        at, name = f"{path}[{index}]", one.get("name", "")
        causes.check(dns_label, name, f"{at}.name")
        _devices(one, at, causes)
        causes.unique(name, seen, at)


def _devices(request: Mapping[str, Any], path: str, causes: Causes) -> None:
    causes.require_valid(subdomain, request.get("deviceClassName", ""), f"{path}.deviceClassName")
    selector_problems(request.get("selectors", ()), f"{path}.selectors", causes)
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == ALL:
        if count:
            causes.invalid(f"{path}.count", count, f"must not be specified when allocationMode is '{ALL}'")
    elif mode == EXACT:
        if count <= 0:
            causes.invalid(f"{path}.count", count, "must be greater than zero")
    else:
        causes.not_supported(f"{path}.allocationMode", mode, [ALL, EXACT])


def selector_problems(these: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    causes.at_most(MAX_SELECTORS, these, path)
    for index, one in enumerate(these):
        if one.get("cel") is None:
            causes.required(f"{path}[{index}].cel")
        elif len(one["cel"].get("expression", "")) > MAX_EXPRESSION:
            causes.too_long(f"{path}[{index}].cel.expression", MAX_EXPRESSION)


def _references(names: Sequence[str], known: set[str], path: str, causes: Causes) -> None:
    for index, name in enumerate(names):
        if name.count("/") < 2:
            for part in name.split("/"):
                causes.check(dns_label, part, f"{path}[{index}]")
        if name not in known:
            causes.invalid(f"{path}[{index}]", name, NO_REQUEST)


def config_problems(config: Mapping[str, Any], path: str, causes: Causes) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        causes.required(f"{path}.opaque")
        return
    csi_driver(opaque.get("driver", ""), f"{path}.opaque.driver", causes)
    if opaque.get("parameters") is None:
        causes.required(f"{path}.opaque.parameters")


def _validate_claim_update(new: Object, old: Object, causes: Causes) -> None:
    if new.get("spec") != old.get("spec"):
        causes.invalid("spec", go_struct(new.get("spec"), CLAIM), IMMUTABLE)


def _validate_claim_status(new: Object, old: Object, causes: Causes) -> None:
    status, was = new.get("status", {}), old.get("status", {})
    holders, at = status.get("reservedFor", ()), "status.reservedFor"
    causes.at_most(MAX_RESERVED, holders, at)
    seen: set[str] = set()
    for index, one in enumerate(holders):
        for name in ("resource", "name", "uid"):
            causes.require(one.get(name), f"{at}[{index}].{name}")
        if one.get("uid", "") in seen:
            causes.duplicate(f"{at}[{index}]", one.get("uid", ""))
        seen.add(one.get("uid", ""))
    allocation = status.get("allocation")
    if holders and allocation is None:
        causes.forbidden(at, "may not be specified when `allocated` is not set")
    added = any(one not in was.get("reservedFor", ()) for one in holders)
    if added and allocation is not None and new.get("metadata", {}).get("deletionTimestamp"):
        text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        causes.forbidden(at, text)
    if allocation is not None and was.get("allocation") is not None:
        causes.immutable(allocation, was["allocation"], "status.allocation")
    elif allocation is not None and "nodeSelector" in allocation:
        node_selector(allocation["nodeSelector"], "status.allocation.nodeSelector", causes)


def _state(obj: Object) -> str:
    status = obj.get("status") or {}
    states = ["deleted"] if obj["metadata"].get("deletionTimestamp") else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return ",".join(states) or "pending"


KIND: Final = Kind(
    "resource.k8s.io/v1 resourceclaims ResourceClaim N - - | status",
    strategy=Strategy(
        default=_default_claim,
        prepare_create=reset_status(),
        prepare_update=keep_status,
        validate=_validate_claim,
        validate_update=_validate_claim_update,
        validate_status=_validate_claim_status,
    ),
    columns="Name!, State, Age",
    cells={"State": _state},
    description="ResourceClaim asks for devices.",
)
