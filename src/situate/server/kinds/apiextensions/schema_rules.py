"""Validates openAPIV3Schema, keyword by keyword, in kube-apiserver's words. `structural_rules` has what is about the
structure as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from situate.server.kinds.apiextensions.structural_rules import (
    EMBEDDED,
    LIST_TYPE,
    MAP_KEYS,
    MAP_TYPE,
    PRESERVE,
    VALIDATIONS,
    Schema,
)
from situate.server.kinds.field_errors import Causes

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
META_FIELDS: Final = ("metadata", "kind", "apiVersion")
REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_UNSUPPORTED: Final = (
    ("id", "id is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("$ref", "$ref is not supported"),
)


class _Place(NamedTuple):
    """Where in an object a schema applies."""

    defaults_forbidden: str = ""
    """Why there may be no defaults; "" if there may."""
    in_metadata: bool = False


def check_schema(schema: Schema, path: str, causes: Causes) -> None:
    """Of the whole object."""
    _check(schema, path, causes, _Place(), is_root=True)


def _check(schema: Schema, path: str, causes: Causes, place: _Place, *, is_root: bool = False) -> None:
    _check_keywords(schema, path, causes, place)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        causes.forbidden(f"{path}.uniqueItems", detail)
    additional, properties = schema.get("additionalProperties"), schema.get("properties", {})
    if additional is not None:
        if properties and additional is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            causes.forbidden(f"{path}.additionalProperties", detail)
        if isinstance(additional, dict):
            inside = place
            if place.in_metadata:
                inside = place._replace(defaults_forbidden="inside additionalProperties applying to object metadata")
            _check(additional, f"{path}.additionalProperties", causes, inside)
    for name, inner in properties.items():
        is_meta = (is_root or schema.get(EMBEDDED)) and name in META_FIELDS
        inside = place._replace(in_metadata=True) if is_meta else place
        if is_meta and is_root:
            inside = inside._replace(defaults_forbidden=f"in top-level {name}")
        _check(inner, f"{path}.properties[{name}]", causes, inside)
    if schema.get(PRESERVE) is False:
        causes.invalid(f"{path}.{PRESERVE}", False, "must be true or undefined")
    _check_alternatives(schema, path, causes, place)
    _check_lists_and_maps(schema, path, causes)
    for at, rule in enumerate(schema.get(VALIDATIONS, ())):
        _check_rule(rule, f"{path}.{VALIDATIONS}[{at}]", causes)


def _check_alternatives(schema: Schema, path: str, causes: Causes, place: _Place) -> None:
    if "not" in schema:
        _check(schema["not"], f"{path}.not", causes, place)
    for word in ("allOf", "oneOf", "anyOf"):
        for at, inner in enumerate(schema.get(word, ())):
            _check(inner, f"{path}.{word}[{at}]", causes, place)
    items = schema.get("items")
    if isinstance(items, dict):
        _check(items, f"{path}.items", causes, place)


def _check_keywords(schema: Schema, path: str, causes: Causes, place: _Place) -> None:
    kind = schema.get("type", "")
    if kind and kind not in TYPES:
        causes.not_supported(f"{path}.type", kind, TYPES)
    if "default" in schema and place.defaults_forbidden:
        causes.forbidden(f"{path}.default", f"must not be set {place.defaults_forbidden}")
    for name, detail in _UNSUPPORTED:
        if name in schema:
            causes.forbidden(f"{path}.{name}", detail)
    if kind == "null":
        causes.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        causes.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if place.in_metadata and schema.get(EMBEDDED):
        causes.forbidden(f"{path}.{EMBEDDED}", "must not be used inside of resource meta")


# -- lists and maps ----------------------------------------------------------------------------------------------------


def _check_lists_and_maps(schema: Schema, path: str, causes: Causes) -> None:
    kind, list_type, map_type = schema.get("type", ""), schema.get(LIST_TYPE), schema.get(MAP_TYPE)
    items = schema.get("items")
    item: Mapping[str, Any] = items if isinstance(items, dict) else {}
    if map_type is not None and kind != "object":
        _needs_type(kind, "must be object if x-kubernetes-map-type is specified", path, causes)
    if map_type is not None and map_type not in ("atomic", "granular"):
        causes.not_supported(f"{path}.{MAP_TYPE}", map_type, ("atomic", "granular"))
    if list_type is not None and kind != "array":
        _needs_type(kind, "must be array if x-kubernetes-list-type is specified", path, causes)
    elif list_type == "set" and item:
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if item.get("type") == "array" and item.get(LIST_TYPE, "atomic") != "atomic":
            causes.invalid(f"{path}.items.{LIST_TYPE}", item[LIST_TYPE], detail)
        elif item.get("type") == "object" and item.get(MAP_TYPE) != "atomic":
            causes.invalid(f"{path}.items.{MAP_TYPE}", item.get(LIST_TYPE), detail)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        causes.not_supported(f"{path}.{LIST_TYPE}", list_type, ("atomic", "set", "map"))
    keys = schema.get(MAP_KEYS, ())
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        if list_type is None:
            causes.required(f"{path}.{LIST_TYPE}", detail)
        else:
            causes.invalid(f"{path}.{LIST_TYPE}", list_type, detail)
    if list_type == "map":
        _check_map_list(schema, keys, path, causes)
    if list_type in ("map", "set") and isinstance(items, dict):
        _check_not_nullable(item, list_type, keys, path, causes)


def _needs_type(kind: str, detail: str, path: str, causes: Causes) -> None:
    if kind:
        causes.invalid(f"{path}.type", kind, detail)
    else:
        causes.required(f"{path}.type", detail)


def _check_map_list(schema: Schema, keys: Any, path: str, causes: Causes) -> None:
    items = schema.get("items")
    if not keys:
        causes.required(f"{path}.{MAP_KEYS}", "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        causes.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    elif not isinstance(items, dict):
        causes.invalid_struct(f"{path}.items", "must only have a single schema if x-kubernetes-list-type is map")
    elif items.get("type", "") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        causes.invalid(f"{path}.items.type", items.get("type", ""), detail)
    else:
        seen: dict[str, None] = {}
        for key in keys:
            known = items.get("properties", {}).get(key)
            if known is None:
                causes.invalid(f"{path}.{MAP_KEYS}", list(keys), "entries must all be names of item properties")
            elif known.get("type") in ("array", "object"):
                detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
                causes.invalid(f"{path}.items.properties[{key}].type", "object", detail)
            if key in seen:
                causes.invalid(f"{path}.{MAP_KEYS}", list(keys), "must not contain duplicate entries")
            seen[key] = None


def _check_not_nullable(item: Schema, list_type: str, keys: Any, path: str, causes: Causes) -> None:
    if item.get("nullable"):
        causes.forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
    if list_type != "map":
        return
    for key in keys:
        known = item.get("properties", {}).get(key)
        if known is None:
            continue
        there = f"{path}.items.properties[{key}]"
        if key not in item.get("required", ()) and "default" not in known:
            detail = "so it must have a default or be a required property"
            causes.required(f"{there}.default", f"this property is in x-kubernetes-list-map-keys, {detail}")
        if known.get("nullable"):
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            causes.forbidden(f"{there}.nullable", detail)


# -- rules -------------------------------------------------------------------------------------------------------------


def _check_rule(rule: Mapping[str, Any], path: str, causes: Causes) -> None:
    text, message = rule.get("rule", "").strip(), rule.get("message", "").strip()
    if not text:
        causes.required(f"{path}.rule", "rule is not specified")
    elif rule.get("message") and not message:
        causes.invalid(f"{path}.message", rule["message"], "must be non-empty if specified")
    elif _has_newlines(message):
        causes.invalid(f"{path}.message", rule["message"], "must not contain line breaks")
    elif _has_newlines(text) and not message:
        causes.required(f"{path}.message", "message must be specified if rule contains line breaks")
    if rule.get("messageExpression") and not rule["messageExpression"].strip():
        causes.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if (reason := rule.get("reason")) is not None and reason not in REASONS:
        causes.not_supported(f"{path}.reason", reason, REASONS)
    field = rule.get("fieldPath", "")
    if field and not field.strip():
        causes.invalid(f"{path}.fieldPath", field, "must be non-empty if specified")
    if _has_newlines(field):
        causes.invalid(f"{path}.fieldPath", field, "must not contain line breaks")


def _has_newlines(text: str) -> bool:
    return "\n" in text or "\r" in text
