"""The type of an object: a dict with the fields of its JSON."""

from typing import Any, Final, TypeAlias

Object: TypeAlias = dict[str, Any]
"""An object under Kubernetes' field names. A function that stores one must not change it."""


def shown_name(obj: Object) -> str:
    """The name for a message; of an object that has none yet, its generateName."""
    metadata = obj.get("metadata", {})
    return str(metadata.get("name") or metadata.get("generateName") or "")


_GO_TYPES: Final = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def go_type(value: object) -> str:
    """The type of a value of JSON, as Go names it in messages."""
    return _GO_TYPES.get(type(value), "<nil>")
