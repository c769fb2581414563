"""CSINode: the CSI drivers of a node."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.core.pod.volumes import csi_driver
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

_ALLOCATABLE: Final = FieldChecks("storage.v1.VolumeNodeResources")
MAX_NODE_ID: Final = 256


def _validate_node(obj: Object, causes: Causes) -> None:
    seen: set[str] = set()
    for index, driver in enumerate(obj.get("spec", {}).get("drivers") or ()):
        at, name = f"spec.drivers[{index}]", driver.get("name", "")
        csi_driver(name, f"{at}.name", causes)
        _node_id(driver.get("nodeID", ""), f"{at}.nodeID", causes)
        _ALLOCATABLE.check(driver.get("allocatable", {}), f"{at}.allocatable", causes)
        causes.unique(name, seen, f"{at}.name")
        _topology_keys(driver.get("topologyKeys") or (), at, causes)


def _node_id(node: str, path: str, causes: Causes) -> None:
    causes.require(node, path)
    if len(node) > MAX_NODE_ID:
        causes.invalid(path, node, f"must be {MAX_NODE_ID} characters or less")


def _topology_keys(keys: Sequence[str], path: str, causes: Causes) -> None:
    seen: set[str] = set()
    for key in keys:
        causes.require(key, path)
        causes.unique(key, seen, path)
        causes.check(qualified_name_problems, key, path)


def _validate_node_update(new: Object, old: Object, causes: Causes) -> None:
    _validate_node(new, causes)
    mine = [_driver(one) for one in new.get("spec", {}).get("drivers") or ()]
    for was in map(_driver, old.get("spec", {}).get("drivers") or ()):
        for one in mine:
            if one["Name"] == was["Name"]:
                causes.immutable(one, was, "spec.drivers")


def _driver(one: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that must not change. The number of volumes may."""
    name, node = one.get("name", ""), one.get("nodeID", "")
    return {"Name": name, "NodeID": node, "TopologyKeys": one.get("topologyKeys"), "Allocatable": None}


KIND: Final = Kind(
    "storage.k8s.io/v1 csinodes CSINode C - -",
    strategy=Strategy(validate=_validate_node, validate_update=_validate_node_update, unconditional_update=False),
    columns="Name!, Drivers# = count(spec.drivers), Age",
    description="CSINode says which storage drivers a node has, and how many volumes they can attach.",
)
