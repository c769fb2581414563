"""OpenAPI schemas of custom kinds: those of their definitions, with what every object has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from situate.server.openapi_words import METADATA, TYPE_FIELDS, items_text
from situate.server.resources import Resource

REF: Final = "#/components/schemas/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."


def schema_name(one: Resource) -> str:
    """`com.example.stable.v1.CronTab`."""
    return f"{'.'.join(reversed(one.group.split('.')))}.{one.version}.{one.kind}"


def custom_schemas(one: Resource) -> dict[str, Any]:
    """Of a custom kind and of its lists, by name."""
    if one.custom is None:
        return {}
    name = schema_name(one)
    named = _identified(one, one.kind)
    schema = dict(one.custom.schema)
    schema["properties"] = {
        **TYPE_FIELDS,
        **schema.get("properties", {}),
        "metadata": {
            "description": METADATA,
            "allOf": [{"$ref": f"{REF}{META}ObjectMeta"}],
        },
    }
    schema |= {"type": "object", "x-kubernetes-group-version-kind": [named]}
    items = {"description": items_text(one.plural), "type": "array", "items": {"$ref": f"{REF}{name}"}}
    listed = {
        "description": f"A list of objects of kind {one.kind}.",
        "type": "object",
        "required": ["items"],
        "properties": {
            **TYPE_FIELDS,
            "items": items,
            "metadata": {"description": "The revision of the list.", "allOf": [{"$ref": f"{REF}{META}ListMeta"}]},
        },
        "x-kubernetes-group-version-kind": [_identified(one, one.custom.list_kind)],
    }
    return {name: schema, f"{name}List": listed}


def _identified(one: Resource, kind: str) -> Mapping[str, str]:
    return {"group": one.group, "kind": kind, "version": one.version}
