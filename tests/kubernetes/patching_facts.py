"""What kube-apiserver's OpenAPI documents say about merging a field, in the words of our table of messages."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def merge_words(schema: Json, definitions: Mapping[str, Json]) -> str:
    """As wire/schema/table.py has them, of the schema of one field."""
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    if schema.get("type") == "array":
        return _list_words(schema, strategy, definitions)
    reference = _referred(schema)
    if not reference:
        return "atomic" if schema.get("x-kubernetes-map-type") == "atomic" else ""
    definition = definitions[reference]
    untyped = definition.get("type") == "object" and "properties" not in definition
    if untyped or definition.get("x-kubernetes-map-type", schema.get("x-kubernetes-map-type")) == "atomic":
        return "atomic" + (" replaced" if strategy == "replace" else "")
    return ""


def _list_words(schema: Json, strategy: str, definitions: Mapping[str, Json]) -> str:
    merged = strategy.startswith("merge")
    key = schema.get("x-kubernetes-patch-merge-key", "")
    kind = schema.get("x-kubernetes-list-type") or (("map" if key else "set") if merged else "atomic")
    if kind == "set":
        return "set" + (" merged" if merged else "")
    if kind == "atomic":
        return f"atomic merged {key}" if merged else ""
    keys = schema.get("x-kubernetes-list-map-keys") or [key]
    if merged and keys[0] != key:
        raise ValueError(f"merged by {key}, not by the first of {keys}")
    inner = definitions[_referred(schema["items"])]
    shown = ",".join(_with_default(one, inner["properties"][one]) for one in keys)
    whole = " atomic" if inner.get("x-kubernetes-map-type") == "atomic" else ""
    return f"by {shown}" + ("" if merged else " replaced") + whole


def _referred(schema: Json) -> str:
    """The type that a schema refers to, or "" for none."""
    whole = schema if "$ref" in schema else next(iter(schema.get("allOf", ())), {})
    found: str = whole.get("$ref", "")
    return found.removeprefix("#/components/schemas/")


def _with_default(key: str, schema: Json) -> str:
    """`protocol=TCP`; and `shareID?` for a key that may be absent."""
    if "default" not in schema:
        return f"{key}?"
    return f"{key}={schema['default']}" if schema["default"] else key
