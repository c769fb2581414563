"""Which schemas are structural, in kube-apiserver's words: https://kubernetes.io/docs/tasks/extend-kubernetes.

A structural schema says everything about the structure of an object outside of `allOf`, `anyOf`, `oneOf` and `not`, so
that pruning and defaulting need not try alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from situate.core.cel.regex import RegexError, compile_regex
from situate.server.errors import Cause
from situate.server.kinds.field_errors import Causes
from situate.server.objects import Object

Schema = Mapping[str, Any]
Level = Literal["root", "item", "field"]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
VALIDATIONS: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"
NO_TYPE: Final[Mapping[Level, str]] = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_METADATA_ONLY: Final = (
    "must not specify anything other than name and generateName, but metadata is implicitly specified"
)
_FORBIDDEN: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (MAP_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (VALIDATIONS, "must be empty to be structural"),
)
"""What may not be inside of `allOf` and its like."""
_UNSUPPORTED: Final = (
    "id",
    "$schema",
    "$ref",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
)


def structural_problems(crd: Object) -> list[str]:
    """What a condition says about the schemas of a definition; nothing if all are structural."""
    found: list[str] = []
    for version in crd["spec"].get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            where = f"spec.versions[{version.get('name', '')}].schema.openAPIV3Schema"
            found += [f"{one.field}: {one.message}" for one in structural_errors(schema, where)]
    return found


def structural_errors(schema: Schema, path: str) -> list[Cause]:
    """Sorted by their texts, as kube-apiserver does."""
    causes = Causes()
    _invariants(schema, "root", path, causes)
    _complete(schema, schema, path, path, causes)
    return sorted(causes, key=lambda one: f"{one.field}: {one.message}")


def has_unsupported_parts(schema: Schema) -> bool:
    """Whether it has what no structural schema can have, so that it cannot even be read as one."""
    if any(name in schema for name in _UNSUPPORTED) or isinstance(schema.get("items"), list):
        return True
    inner = [*schema.get("properties", {}).values()]
    for name in ("allOf", "anyOf", "oneOf"):
        inner += schema.get(name, [])
    inner += [one for name in ("items", "not", "additionalProperties") if isinstance(one := schema.get(name), dict)]
    return any(map(has_unsupported_parts, inner))


def _invariants(schema: Schema, level: Level, path: str, causes: Causes) -> None:
    kind, properties = schema.get("type", ""), schema.get("properties", {})
    embedded, preserves = schema.get(EMBEDDED, False), schema.get(PRESERVE) is True
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and items is None:
        causes.required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        _invariants(items, "item", f"{path}.items", causes)
    for name, inner in properties.items():
        _invariants(inner, "field", f"{path}.properties[{name}]", causes)
    if additional is not None:
        if level == "root":
            causes.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(additional, dict):
            _invariants(additional, "field", f"{path}.additionalProperties", causes)
    _check_extensions(schema, preserves, embedded, path, causes)
    _values(
        schema,
        path,
        causes,
        skip_any=schema.get("anyOf") == _INT_OR_STRING,
        skip_first_all=bool(schema.get("allOf")) and schema["allOf"][0].get("anyOf") == _INT_OR_STRING,
    )
    if not embedded and not kind and not schema.get(INT_OR_STRING) and not preserves:
        causes.required(f"{path}.type", NO_TYPE[level])
    if level == "root" and kind and kind != "object":
        causes.invalid(f"{path}.type", kind, "must be object at the root")
    _meta_fields(properties, level, embedded, path, causes)


def _check_extensions(schema: Schema, preserves: bool, embedded: bool, path: str, causes: Causes) -> None:
    kind = schema.get("type", "")
    if schema.get(INT_OR_STRING):
        if preserves:
            causes.invalid(f"{path}.{PRESERVE}", True, "must be false if x-kubernetes-int-or-string is true")
        if embedded:
            causes.invalid(f"{path}.{EMBEDDED}", True, "must be false if x-kubernetes-int-or-string is true")
    if not embedded:
        return
    if kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        if kind:
            causes.invalid(f"{path}.type", kind, detail)
        else:
            causes.required(f"{path}.type", detail)
    if schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        causes.forbidden(f"{path}.additionalProperties", detail)
    if not preserves and not schema.get("properties"):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        causes.required(f"{path}.properties", detail)


def _meta_fields(properties: Mapping[str, Schema], level: Level, embedded: bool, path: str, causes: Causes) -> None:
    """apiVersion and kind are text, and of the metadata only the names can be restricted."""
    is_resource = level == "root" or embedded
    for name in ("kind", "apiVersion"):
        if is_resource and name in properties and properties[name].get("type", "") != "string":
            causes.invalid(f"{path}.properties[{name}].type", properties[name].get("type", ""), "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    there = f"{path}.properties[metadata]"
    if is_resource and metadata.get("type", "") != "object":
        causes.invalid(f"{there}.type", metadata.get("type", ""), "must be object")
    if level == "root":
        inner = metadata.get("properties", {})
        rest = {name: value for name, value in metadata.items() if name not in ("type", "default")}
        if inner and all(name in ("name", "generateName") for name in inner):
            rest.pop("properties", None)
        if any(value not in (None, {}, [], "", False) for value in rest.values()):
            causes.forbidden(there, _METADATA_ONLY)


def _values(schema: Schema, path: str, causes: Causes, *, skip_any: bool, skip_first_all: bool) -> None:
    if not skip_any:
        for at, inner in enumerate(schema.get("anyOf", ())):
            _nested(inner, f"{path}.anyOf[{at}]", causes)
    for at, inner in enumerate(schema.get("allOf", ())):
        _nested(inner, f"{path}.allOf[{at}]", causes, skip_any=skip_first_all and at == 0)
    for at, inner in enumerate(schema.get("oneOf", ())):
        _nested(inner, f"{path}.oneOf[{at}]", causes)
    if "not" in schema:
        _nested(schema["not"], f"{path}.not", causes)
    if pattern := schema.get("pattern"):
        try:
            compile_regex(pattern)
        except RegexError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            causes.invalid(f"{path}.pattern", pattern, detail)


def _nested(schema: Schema, path: str, causes: Causes, *, skip_any: bool = False) -> None:
    _values(schema, path, causes, skip_any=skip_any, skip_first_all=False)
    if isinstance(schema.get("items"), dict):
        _nested(schema["items"], f"{path}.items", causes)
    for name, inner in schema.get("properties", {}).items():
        _nested(inner, f"{path}.properties[{name}]", causes)
    for name, detail in _FORBIDDEN:
        if name in schema and (schema[name] or name == "default"):
            causes.forbidden(f"{path}.{name}", detail)
    if "metadata" in schema.get("properties", {}):
        causes.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _complete(schema: Schema, whole: Schema, whole_path: str, path: str, causes: Causes) -> None:
    """What alternatives speak of must be specified outside of them, too."""
    if "not" in schema:
        _complete_nested(schema["not"], whole, whole_path, f"{path}.not", causes)
    for name in ("allOf", "anyOf", "oneOf"):
        for at, inner in enumerate(schema.get(name, ())):
            _complete_nested(inner, whole, whole_path, f"{path}.{name}[{at}]", causes)


def _complete_nested(schema: Schema, whole: Schema | None, whole_path: str, path: str, causes: Causes) -> None:
    if whole is None:
        causes.required(whole_path, f"because it is defined in {path}")
        return
    _complete(schema, whole, whole_path, path, causes)
    if isinstance(schema.get("items"), dict):
        items = whole.get("items")
        inner = items if isinstance(items, dict) else None
        _complete_nested(schema["items"], inner, f"{whole_path}.items", f"{path}.items", causes)
    for name, one in schema.get("properties", {}).items():
        there = f"{whole_path}.properties[{name}]"
        known = whole.get("properties", {}).get(name)
        _complete_nested(one, known, there, f"{path}.properties[{name}]", causes)


def walk_schemas(schema: Schema) -> Sequence[Schema]:
    """The schema and all schemas inside of it, alternatives included."""
    found: list[Schema] = [schema]
    for one in found:  # grows as it goes
        found += _inner_schemas(one)
    return found


def schema_depth(schema: Schema) -> int:
    """How deep schemas are nested."""
    depth, level = 0, [schema]
    while level:
        depth += 1
        level = [inner for one in level for inner in _inner_schemas(one)]
    return depth


def _inner_schemas(schema: Schema) -> list[Schema]:
    found: list[Schema] = [
        inner
        for name in ("items", "not", "additionalProperties", "additionalItems")
        if isinstance(inner := schema.get(name), dict)
    ]
    for name in ("allOf", "anyOf", "oneOf"):
        found += schema.get(name, ())
    if isinstance(items := schema.get("items"), list):
        found += items
    for name in ("properties", "patternProperties", "definitions"):
        found += schema.get(name, {}).values()
    return found
