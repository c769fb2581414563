"""storage.k8s.io/v1: classes, CSI drivers and nodes, capacities, attachments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.errors import Cause
from situate.server.kinds.naming import subdomain
from situate.server.kinds.resources import nanos, text_of
from situate.server.kinds.selecting import topology_selector_term
from situate.server.kinds.strategy import Strategy, keep_status
from situate.server.kinds.validating import (
    NOT_NEGATIVE,
    Causes,
    at_least_zero,
    check,
    duplicate,
    forbidden,
    immutable,
    invalid,
    label_selector,
    not_supported,
    required,
    too_long,
)
from situate.server.requests import Object

__all__ = ["STRATEGIES", "driver_name"]

MAX_PARAMETERS: Final = 512
MAX_PARAMETERS_SIZE: Final = 256 * 1024
MAX_DRIVER_NAME: Final = 63
MAX_NODE_ID: Final = 256
MAX_ERROR: Final = 1024
SHORTEST_TOKEN_S: Final = 600
LONGEST_TOKEN_S: Final = 2**32
LEAST_PERIOD_S: Final = 10
_RECLAIM: Final = ("Delete", "Retain")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
_FS_GROUP: Final = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE: Final = ("Persistent", "Ephemeral")


def _size(found: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode("utf-8", "surrogatepass")) for key, value in found.items())


def driver_name(name: str, path: str, causes: Causes) -> None:
    if not name:
        causes.append(required(path))
        return
    if len(name) > MAX_DRIVER_NAME:
        causes.append(too_long(path, MAX_DRIVER_NAME))
    causes.extend(invalid(path, name, problem) for problem in subdomain(name.lower()))


# ── StorageClass ────────────────────────────────────────────────────────────────────────────────────────────────────


def _default_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _validate_class(obj: Object) -> list[Cause]:
    causes: Causes = []
    provisioner = obj.get("provisioner", "")
    if provisioner:
        check(qualified_name_problems, provisioner.lower(), "provisioner", causes)
    else:
        causes.append(required("provisioner"))
    _parameters(obj.get("parameters", {}), causes)
    policy, mode = obj.get("reclaimPolicy"), obj.get("volumeBindingMode")
    if policy and policy not in _RECLAIM:
        causes.append(not_supported("reclaimPolicy", policy, _RECLAIM))
    if mode is None:
        causes.append(required("volumeBindingMode"))
    elif mode not in _BINDING:
        causes.append(not_supported("volumeBindingMode", mode, _BINDING))
    _topologies(obj.get("allowedTopologies", ()), causes)
    return causes


def _parameters(found: Mapping[str, str], causes: Causes) -> None:
    if len(found) > MAX_PARAMETERS:
        causes.append(too_long("parameters", MAX_PARAMETERS))
        return
    if "" in found:
        causes.append(invalid("parameters", "", "field can not be empty."))
    if _size(found) > MAX_PARAMETERS_SIZE:
        causes.append(too_long("parameters", MAX_PARAMETERS_SIZE))


def _topologies(terms: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    seen: list[dict[str, frozenset[str]]] = []
    for index, term in enumerate(terms):
        asked = topology_selector_term(term, f"allowedTopologies[{index}]", causes)
        if asked in seen:
            causes.append(duplicate(f"allowedTopologies[{index}].matchLabelExpressions", ""))
        seen.append(asked)


def _validate_class_update(new: Object, old: Object) -> list[Cause]:
    causes: Causes = []
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        immutable(new.get(name), old.get(name), name, causes)
    return causes


# ── CSIDriver ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _default_driver(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        spec.setdefault(name, False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _prepare_driver_update(new: Object, old: Object) -> None:
    """A driver is not numbered till it first changes."""
    was = old.get("metadata", {}).get("generation", 0)
    if new.get("spec") != old.get("spec"):
        new.setdefault("metadata", {})["generation"] = was + 1


def _validate_driver(obj: Object) -> list[Cause]:
    causes: Causes = []
    spec = obj.get("spec", {})
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _FS_GROUP:
        causes.append(not_supported("spec.fsGroupPolicy", policy, _FS_GROUP))
    tokens = spec.get("tokenRequests", ())
    _tokens(tokens, causes)
    for mode in spec.get("volumeLifecycleModes", ()):
        if mode not in _LIFECYCLE:
            causes.append(not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLE))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < LEAST_PERIOD_S:
        text = f"must be greater than or equal to {LEAST_PERIOD_S} seconds"
        causes.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    if "serviceAccountTokenInSecrets" in spec and not tokens:
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        value = spec["serviceAccountTokenInSecrets"]
        causes.append(invalid("spec.serviceAccountTokenInSecrets", value, text))
    return causes


def _tokens(requests: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    audiences: set[str] = set()
    for index, request in enumerate(requests):
        at, audience = f"spec.tokenRequests[{index}]", request.get("audience", "")
        if audience in audiences:
            causes.append(duplicate(f"{at}.audience", audience))
            continue
        audiences.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is None:
            continue
        if seconds < SHORTEST_TOKEN_S:
            text = "may not specify a duration less than 10 minutes"
            causes.append(invalid(f"{at}.expirationSeconds", seconds, text))
        if seconds > LONGEST_TOKEN_S:
            text = "may not specify a duration larger than 2^32 seconds"
            causes.append(invalid(f"{at}.expirationSeconds", seconds, text))


def _validate_driver_update(new: Object, old: Object) -> list[Cause]:
    causes = _validate_driver(new)
    spec, was = new.get("spec", {}), old.get("spec", {})
    immutable(spec.get("attachRequired"), was.get("attachRequired"), "spec.attachedRequired", causes)
    modes = spec.get("volumeLifecycleModes")
    immutable(modes, was.get("volumeLifecycleModes"), "spec.volumeLifecycleModes", causes)
    return causes


# ── CSINode ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _validate_node(obj: Object) -> list[Cause]:
    causes: Causes = []
    seen: set[str] = set()
    for index, driver in enumerate(obj.get("spec", {}).get("drivers") or ()):
        at, name = f"spec.drivers[{index}]", driver.get("name", "")
        driver_name(name, f"{at}.name", causes)
        _node_id(driver.get("nodeID", ""), f"{at}.nodeID", causes)
        at_least_zero(driver.get("allocatable", {}).get("count", 0), f"{at}.allocatable.count", causes)
        if name in seen:
            causes.append(duplicate(f"{at}.name", name))
        seen.add(name)
        _topology_keys(driver.get("topologyKeys") or (), at, causes)
    return causes


def _node_id(node: str, path: str, causes: Causes) -> None:
    if not node:
        causes.append(required(path))
    if len(node) > MAX_NODE_ID:
        causes.append(invalid(path, node, f"must be {MAX_NODE_ID} characters or less"))


def _topology_keys(keys: Sequence[str], path: str, causes: Causes) -> None:
    seen: set[str] = set()
    for key in keys:
        if not key:
            causes.append(required(path))
        if key in seen:
            causes.append(duplicate(path, key))
        seen.add(key)
        check(qualified_name_problems, key, path, causes)


def _validate_node_update(new: Object, old: Object) -> list[Cause]:
    causes = _validate_node(new)
    mine = [_driver(one) for one in new.get("spec", {}).get("drivers") or ()]
    for was in map(_driver, old.get("spec", {}).get("drivers") or ()):
        for one in mine:
            if one["Name"] == was["Name"]:
                immutable(one, was, "spec.drivers", causes)
    return causes


def _driver(one: Mapping[str, Any]) -> dict[str, Any]:
    """All that may not change: how many volumes it takes may."""
    name, node = one.get("name", ""), one.get("nodeID", "")
    return {"Name": name, "NodeID": node, "TopologyKeys": one.get("topologyKeys"), "Allocatable": None}


# ── CSIStorageCapacity ──────────────────────────────────────────────────────────────────────────────────────────────


def _validate_capacity(obj: Object) -> list[Cause]:
    causes: Causes = []
    label_selector(obj.get("nodeTopology"), "nodeTopology", causes)
    check(subdomain, obj.get("storageClassName", ""), "storageClassName", causes)
    if "capacity" in obj and nanos(obj["capacity"]) < 0:
        causes.append(invalid("capacity", text_of(obj["capacity"]), NOT_NEGATIVE))
    return causes


def _validate_capacity_update(new: Object, old: Object) -> list[Cause]:
    causes: Causes = []
    immutable(new.get("nodeTopology"), old.get("nodeTopology"), "nodeTopology", causes)
    immutable(new.get("storageClassName", ""), old.get("storageClassName", ""), "storageClassName", causes)
    return causes


# ── VolumeAttachment ────────────────────────────────────────────────────────────────────────────────────────────────


def _prepare_attachment(obj: Object) -> None:
    obj["status"] = {"attached": False}


def _validate_attachment(obj: Object) -> list[Cause]:
    causes: Causes = []
    spec = obj.get("spec", {})
    source, at = spec.get("source", {}), "spec.source"
    driver_name(spec.get("attacher", ""), "spec.attacher", causes)
    inline, volume = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and volume is None:
        causes.append(required(at, text))
    elif inline is not None and volume is not None:
        causes.append(forbidden(at, text))
    elif volume == "":
        causes.append(required(f"{at}.persistentVolumeName", "must specify non empty persistentVolumeName"))
    check(subdomain, spec.get("nodeName", ""), "spec.nodeName", causes)
    status = obj.get("status", {})
    if _size(status.get("attachmentMetadata", {})) > MAX_PARAMETERS_SIZE:
        causes.append(too_long("status.attachmentMetadata", MAX_PARAMETERS_SIZE))
    for name in ("attachError", "detachError"):
        _attachment_error(status.get(name, {}), f"status.{name}", causes)
    if volume is not None:
        check(subdomain, volume, "spec.source.persistentVolumeName", causes)
    return causes


def _attachment_error(error: Mapping[str, Any], path: str, causes: Causes) -> None:
    if len(error.get("message", "").encode("utf-8", "surrogatepass")) > MAX_ERROR:
        causes.append(too_long(f"{path}.message", MAX_PARAMETERS_SIZE))
    if error.get("errorCode", 0) < 0:
        text = f"must be between 0 and {2**31 - 1}, inclusive"
        causes.append(invalid(f"{path}.errorCode", error["errorCode"], text))


def _validate_attachment_update(new: Object, old: Object) -> list[Cause]:
    causes = _validate_attachment(new)
    spec, was = new.get("spec", {}), old.get("spec", {})
    if spec != was:
        source = spec.get("source", {})
        inside = {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": source.get("inlineVolumeSpec"),
        }
        shown = {"Attacher": spec.get("attacher", ""), "Source": inside, "NodeName": spec.get("nodeName", "")}
        immutable(shown, None, "spec", causes)
    return causes


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "storage.k8s.io/StorageClass": Strategy(
        default=_default_class, validate=_validate_class, validate_update=_validate_class_update
    ),
    "storage.k8s.io/CSIDriver": Strategy(
        default=_default_driver,
        prepare_update=_prepare_driver_update,
        validate=_validate_driver,
        validate_update=_validate_driver_update,
        unconditional_update=False,
    ),
    "storage.k8s.io/CSINode": Strategy(
        validate=_validate_node, validate_update=_validate_node_update, unconditional_update=False
    ),
    "storage.k8s.io/CSIStorageCapacity": Strategy(
        validate=_validate_capacity, validate_update=_validate_capacity_update, unconditional_update=False
    ),
    "storage.k8s.io/VolumeAttachment": Strategy(
        prepare_create=_prepare_attachment,
        prepare_update=keep_status,
        validate=_validate_attachment,
        validate_update=_validate_attachment_update,
        validate_status=_validate_attachment_update,
        unconditional_update=False,
    ),
}
