"""Values as kube-apiserver prints its internal structs in error messages: with Go's field names, and every field.

A layout maps a Go field name to the name in the API, alone, with the layout of the value (or of a list's items), or
with the value to print if there is none.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Layout: TypeAlias = Mapping[str, Any]

TOLERATION: Final[Layout] = {
    "Key": ("key", ""),
    "Operator": ("operator", ""),
    "Value": ("value", ""),
    "Effect": ("effect", ""),
    "TolerationSeconds": "tolerationSeconds",
}
_EXIT_CODES: Final[Layout] = {"ContainerName": "containerName", "Operator": ("operator", ""), "Values": "values"}
_RULE: Final[Layout] = {
    "Action": ("action", ""),
    "OnExitCodes": ("onExitCodes", _EXIT_CODES),
    "OnPodConditions": ("onPodConditions", {"Type": ("type", ""), "Status": ("status", "")}),
}
FAILURE_POLICY: Final[Layout] = {"Rules": ("rules", _RULE)}
SUCCESS_POLICY: Final[Layout] = {
    "Rules": ("rules", {"SucceededIndexes": "succeededIndexes", "SucceededCount": "succeededCount"})
}

_ROLLING: Final[Layout] = {"MaxUnavailable": ("maxUnavailable", 0), "MaxSurge": ("maxSurge", 0)}
UPDATE_STRATEGY: Final[Layout] = {"Type": ("type", ""), "RollingUpdate": ("rollingUpdate", _ROLLING)}
_REQUIREMENT: Final[Layout] = {"Key": ("key", ""), "Operator": ("operator", ""), "Values": "values"}
_TERM: Final[Layout] = {
    "MatchExpressions": ("matchExpressions", _REQUIREMENT),
    "MatchFields": ("matchFields", _REQUIREMENT),
}
VOLUME_NODE_AFFINITY: Final[Layout] = {"Required": ("required", {"NodeSelectorTerms": ("nodeSelectorTerms", _TERM)})}

_SELECTOR: Final[Layout] = {"CEL": ("cel", {"Expression": ("expression", "")})}
_DEVICES: Final[Layout] = {
    "DeviceClassName": ("deviceClassName", ""),
    "Selectors": ("selectors", _SELECTOR),
    "AllocationMode": ("allocationMode", ""),
    "Count": ("count", 0),
}
_EXACTLY: Final[Layout] = {
    **_DEVICES,
    "AdminAccess": "adminAccess",
    "Tolerations": ("tolerations", TOLERATION),
    "Capacity": ("capacity", {"Requests": "requests"}),
}
_ONE_OF: Final[Layout] = {
    "Name": ("name", ""),
    **_DEVICES,
    "Tolerations": ("tolerations", TOLERATION),
    "Capacity": ("capacity", {"Requests": "requests"}),
}
_REQUEST: Final[Layout] = {
    "Name": ("name", ""),
    "Exactly": ("exactly", _EXACTLY),
    "FirstAvailable": ("firstAvailable", _ONE_OF),
}
_CONSTRAINT: Final[Layout] = {
    "Requests": "requests",
    "MatchAttribute": "matchAttribute",
    "DistinctAttribute": "distinctAttribute",
}
_CONFIG: Final[Layout] = {
    "Requests": "requests",
    "Opaque": ("opaque", {"Driver": ("driver", ""), "Parameters": "parameters"}),
}
_CLAIM: Final[Layout] = {
    "Requests": ("requests", _REQUEST),
    "Constraints": ("constraints", _CONSTRAINT),
    "Config": ("config", _CONFIG),
}
CLAIM: Final[Layout] = {"Devices": ("devices", _CLAIM)}


def go_struct(value: Any, shape: Layout) -> Any:
    """A value of the API under the names of its layout. An absent value is null."""
    if value is None:
        return None
    if isinstance(value, list):
        return [go_struct(one, shape) for one in value]
    found: dict[str, Any] = {}
    for name, known in shape.items():
        key, more = (known, None) if isinstance(known, str) else known
        held = value.get(key)
        if isinstance(more, Mapping):
            found[name] = go_struct(held, more)
        else:
            found[name] = more if held is None else held
    return found
