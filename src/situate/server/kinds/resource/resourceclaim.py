"""ResourceClaim: a request for devices. Also the rules that templates, device classes and slices share.

The cost of a CEL expression is not estimated.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from situate.core.cel.device_selectors import compile_selector
from situate.core.cel.errors import CompileError
from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.server.kinds.core.pod.volumes import csi_driver
from situate.server.kinds.field_errors import IMMUTABLE, Causes
from situate.server.kinds.go_structs import CLAIM, go_struct
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, subdomain
from situate.server.kinds.node_selectors import node_selector
from situate.server.kinds.status import reset_status
from situate.server.kinds.strategy import Strategy, keep_all_but_status, keep_status
from situate.server.objects import Object

ALL, EXACT = "All", "ExactCount"
MAX_REQUESTS: Final = 32
MAX_SUB_REQUESTS: Final = 8
MAX_SELECTORS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_CONFIGS: Final = 32
MAX_EXPRESSION: Final = 10 * 1024
MAX_EXPRESSIONS: Final = 16 * 1024
"""How many characters the different expressions of one object may have together. Kubernetes has no such limit. Here all
requests wait while an expression is compiled, which takes up to 20 µs a character."""
MAX_RESERVED: Final = 256
MAX_RESULTS: Final = 32
MAX_CONDITIONS: Final = 4
"""Binding conditions, and as many failure conditions."""
COMPILED: Final = 256
"""Expressions whose verdict is remembered."""
TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
TOLERATION_OPERATORS: Final = ("Equal", "Exists")
MAX_ALLOCATION_CONFIGS: Final = 2 * MAX_CONFIGS
"""Those of the classes and those of the claim."""
MAX_POOL_NAME: Final = 253
SOURCES: Final = ("FromClaim", "FromClass")
UUID_LENGTHS: Final = (32, 36, 38, 45)
"""With and without hyphens, in braces, as a URN."""
UUID_FORM: Final = (
    "uid must be in RFC 4122 normalized form,"
    " `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
)
_IS_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII).fullmatch


ONE_KIND: Final = "exactly one of `exactly` or `firstAvailable` is required"


ONE_ATTRIBUTE: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'


NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def _default_claim(obj: Object) -> None:
    default_claim_spec(obj.setdefault("spec", {}))
    allocation = (obj.get("status") or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results", ()):
        default_tolerations(result)


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
    default_tolerations(request)


def default_tolerations(one: dict[str, Any]) -> None:
    for toleration in one.get("tolerations", ()):
        toleration.setdefault("operator", "Equal")


def _validate_claim(obj: Object, causes: Causes) -> None:
    validate_devices(obj.get("spec", {}).get("devices", {}), "spec.devices", causes)


def validate_devices(devices: Mapping[str, Any], path: str, causes: Causes) -> None:
    requests = devices.get("requests", ())
    if not expressions_fit(_selectors(requests), f"{path}.requests", causes):
        return
    _each_once(requests, MAX_REQUESTS, f"{path}.requests", causes)
    known = _request_names(requests)
    for kind, limit in (("constraints", MAX_CONSTRAINTS), ("config", MAX_CONFIGS)):
        these = devices.get(kind, ())
        causes.at_most(limit, these, f"{path}.{kind}")
        for index, one in enumerate(these):
            _references(one.get("requests", ()), known, f"{path}.{kind}[{index}].requests", causes)
            if kind == "config":
                config_problems(one, f"{path}.config[{index}]", causes)
            elif one.get("matchAttribute") is None and one.get("distinctAttribute") is None:
                causes.required(f"{path}.constraints[{index}]", ONE_ATTRIBUTE)


def _request_names(requests: Sequence[Mapping[str, Any]]) -> set[str]:
    """Of requests, and of requests with their subrequests."""
    known = set()
    for request in requests:
        name = request.get("name", "")
        known.add(name)
        known.update(f"{name}/{one.get('name', '')}" for one in request.get("firstAvailable", ()))
    return known


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
    _mode(request, path, causes)
    for index, one in enumerate(request.get("tolerations", ())):
        _toleration(one, f"{path}.tolerations[{index}]", causes)


def _mode(request: Mapping[str, Any], path: str, causes: Causes) -> None:
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == ALL:
        if count:
            causes.invalid(f"{path}.count", count, f"must not be specified when allocationMode is '{ALL}'")
    elif mode == EXACT:
        if count <= 0:
            causes.invalid(f"{path}.count", count, "must be greater than zero")
    else:
        causes.not_supported(f"{path}.allocationMode", mode, [ALL, EXACT])


def _toleration(one: Mapping[str, Any], path: str, causes: Causes) -> None:
    value, operator, effect = one.get("value", ""), one.get("operator", ""), one.get("effect", "")
    if one.get("key"):
        causes.check(qualified_name_problems, one["key"], f"{path}.key")
    if operator == "Exists" and value:
        causes.invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        causes.check(label_value_problems, value, f"{path}.value")
    elif not operator:
        causes.required(f"{path}.operator")
    elif operator != "Exists":
        causes.not_supported(f"{path}.operator", operator, TOLERATION_OPERATORS)
    if effect and effect not in TAINT_EFFECTS:
        causes.not_supported(f"{path}.effect", effect, TAINT_EFFECTS)


def selector_problems(these: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    causes.at_most(MAX_SELECTORS, these, path)
    for index, one in enumerate(these):
        if one.get("cel") is None:
            causes.required(f"{path}[{index}].cel")
        elif len(one["cel"].get("expression", "")) > MAX_EXPRESSION:
            causes.too_long(f"{path}[{index}].cel.expression", MAX_EXPRESSION)
        else:
            _expression(one["cel"].get("expression", ""), f"{path}[{index}].cel.expression", causes)


def expressions_fit(these: Iterable[Mapping[str, Any]], path: str, causes: Causes) -> bool:
    """Whether the expressions of all selectors of an object are short enough to be compiled."""
    texts = {(one.get("cel") or {}).get("expression", "") for one in these}
    if sum(map(len, texts)) <= MAX_EXPRESSIONS:
        return True
    causes.forbidden(path, f"the CEL expressions may have {MAX_EXPRESSIONS} characters together")
    return False


def _selectors(requests: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for request in requests:
        for one in (request.get("exactly") or {}, *request.get("firstAvailable", ())):
            yield from one.get("selectors", ())


def _expression(text: str, path: str, causes: Causes) -> None:
    why = _compile_problem(text)
    if why:
        causes.invalid(path, text, why)


@lru_cache(maxsize=COMPILED)
def _compile_problem(expression: str) -> str:
    try:
        compile_selector(expression)
    except CompileError as error:
        return str(error)
    return ""


def _references(names: Sequence[str], known: set[str], path: str, causes: Causes) -> None:
    for index, name in enumerate(names):
        _reference(name, known, f"{path}[{index}]", causes)


def _reference(name: str, known: set[str], path: str, causes: Causes) -> None:
    if name.count("/") < 2:
        for part in name.split("/"):
            causes.check(dns_label, part, path)
    if name not in known:
        causes.invalid(path, name, NO_REQUEST)


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
    elif allocation is not None:
        known = _request_names(new.get("spec", {}).get("devices", {}).get("requests", ()))
        _allocation(allocation.get("devices") or {}, known, "status.allocation.devices", causes)
        if "nodeSelector" in allocation:
            node_selector(allocation["nodeSelector"], "status.allocation.nodeSelector", causes)


def _allocation(devices: Mapping[str, Any], known: set[str], path: str, causes: Causes) -> None:
    """A new one: a stored allocation does not change, and is not checked again."""
    results, configs = devices.get("results", ()), devices.get("config", ())
    causes.at_most(MAX_RESULTS, results, f"{path}.results")
    for index, one in enumerate(results):
        at = f"{path}.results[{index}]"
        _reference(one.get("request", ""), known, f"{at}.request", causes)
        csi_driver(one.get("driver", ""), f"{at}.driver", causes)
        pool_name(one.get("pool", ""), f"{at}.pool", causes)
        causes.check(dns_label, one.get("device", ""), f"{at}.device")
        binding_conditions(one, at, causes)
        if one.get("shareID") is not None:
            _uuid(one["shareID"], f"{at}.shareID", causes)
    causes.at_most(MAX_ALLOCATION_CONFIGS, configs, f"{path}.config")
    for index, one in enumerate(configs):
        at, source = f"{path}.config[{index}]", one.get("source", "")
        if not source:
            causes.required(f"{at}.source")
        elif source not in SOURCES:
            causes.not_supported(f"{at}.source", source, SOURCES)
        _references(one.get("requests", ()), known, f"{at}.requests", causes)
        config_problems(one, at, causes)


def pool_name(name: str, path: str, causes: Causes) -> None:
    if not name:
        causes.required(path)
        return
    if len(name) > MAX_POOL_NAME:
        causes.too_long(path, MAX_POOL_NAME)
    for part in name.split("/"):
        causes.check(subdomain, part, path)


def binding_conditions(device: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Of a device, or of a result of an allocation."""
    names = ("bindingConditions", "bindingFailureConditions")
    ready, failed = (device.get(name) or [] for name in names)
    for name, conditions in zip(names, (ready, failed), strict=True):
        causes.at_most(MAX_CONDITIONS, conditions, f"{path}.{name}")
        for index, one in enumerate(conditions):
            causes.check(qualified_name_problems, one, f"{path}.{name}[{index}]")
    for name, conditions in zip(names, (ready, failed), strict=True):
        seen: set[str] = set()
        for index, one in enumerate(conditions):
            causes.unique(one, seen, f"{path}.{name}[{index}]")
            if conditions is failed and one in ready:
                text = "bindingFailureConditions must not overlap with bindingConditions"
                causes.invalid(f"{path}.{name}[{index}]", one, text)
    for missing, given, left in ((names[0], names[1], ready), (names[1], names[0], failed)):
        if not left and device.get(given):
            causes.invalid(f"{path}.{missing}", device.get(missing), f"{missing} are required to use {given}")


def _uuid(uid: str, path: str, causes: Causes) -> None:
    if not _IS_UUID(uid):
        why = "invalid UUID format" if len(uid) in UUID_LENGTHS else f"invalid UUID length: {len(uid)}"
        causes.invalid(path, uid, f"error validating uid: {why}")
    elif uid != uid.lower():
        causes.invalid(path, uid, UUID_FORM)


def _drop_deallocated(new: Object, old: Object) -> None:
    """What drivers say about devices goes with their allocation."""
    keep_all_but_status(new, old)
    status = new.get("status") or {}
    if (old.get("status") or {}).get("allocation") is not None and status.get("allocation") is None:
        status.pop("devices", None)


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
        prepare_status=_drop_deallocated,
        validate=_validate_claim,
        validate_update=_validate_claim_update,
        validate_status=_validate_claim_status,
    ),
    columns="Name!, State, Age",
    cells={"State": _state},
    description="ResourceClaim asks for devices.",
)
