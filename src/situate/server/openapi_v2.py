"""OpenAPI v2: one document for all kinds, in JSON and in protobuf, made of the documents of v3.

What v2 cannot say is left out, as kube-apiserver does for custom kinds: a field that may be null has no type, and one
that keeps unknown fields has neither type nor properties, because kubectl would refuse what they do not name. Defaults
are left out, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from situate.server import openapi_protobuf
from situate.server.discovery import Document
from situate.server.openapi_words import METADATA, TYPE_FIELDS

REF_V3: Final = "#/components/schemas/"
REF_V2: Final = "#/definitions/"
_PRODUCES: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_KEPT: Final = frozenset(
    (
        *("title", "description", "format", "type", "required", "enum", "pattern", "uniqueItems"),
        *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "multipleOf"),
        *("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"),
    )
)
_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_META: Final = f"{REF_V2}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_GVK: Final = "x-kubernetes-group-version-kind"
_ONE_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
}
"""Types with several forms, of which v2 can name one."""
MOST_BYTES: Final = 64 << 20
"""Groups that do not fit into a document of this size are left out. kubectl leaves their validation to the server."""


class EncodedPart(NamedTuple):
    """Definitions or paths by name, each encoded in JSON and in protobuf."""

    json: Mapping[str, bytes]
    protobuf: Mapping[str, bytes]


class Fragment(NamedTuple):
    """What one group and version adds to the document."""

    definitions: EncodedPart
    paths: EncodedPart

    @property
    def size(self) -> int:
        return sum(map(len, (*self.definitions.json.values(), *self.paths.json.values())))


def fragment(v3: bytes, known: Iterable[str] = ()) -> Fragment:
    """Of a document of v3. `known`: the definitions that others have, which are not made again."""
    whole = msgspec.json.decode(v3)
    skipped = frozenset(known)
    schemas = {
        name: _definition(name, schema)
        for name, schema in whole["components"]["schemas"].items()
        if name not in skipped
    }
    paths = {path: _path_item(item) for path, item in whole["paths"].items()}
    return Fragment(_part(schemas, openapi_protobuf.named_definition), _part(paths, openapi_protobuf.named_path))


def _part(values: Mapping[str, Any], to_protobuf: Any) -> EncodedPart:
    return EncodedPart(
        {name: msgspec.json.encode(one) for name, one in values.items()},
        {name: to_protobuf(name, one) for name, one in values.items()},
    )


def joined(title: str, version: str, fragments: Sequence[Fragment], *, protobuf: bool) -> Document:
    fragments = list(_fitting(fragments))
    if protobuf:
        definitions = _union(one.definitions.protobuf for one in fragments)
        paths = _union(one.paths.protobuf for one in fragments)
        body = openapi_protobuf.document(title, version, list(paths.values()), list(definitions.values()))
    else:
        head = msgspec.json.encode({"swagger": "2.0", "info": {"title": title, "version": version}})
        parts = [head[:-1], b',"paths":', _object(_union(one.paths.json for one in fragments))]
        parts += [b',"definitions":', _object(_union(one.definitions.json for one in fragments)), b"}"]
        body = b"".join(parts)
    return Document(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


def _fitting(fragments: Iterable[Fragment]) -> Iterator[Fragment]:
    left = MOST_BYTES
    for one in fragments:
        left -= one.size
        if left < 0:
            return
        yield one


def _union(parts: Iterable[Mapping[str, bytes]]) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    for one in parts:
        found |= one
    return dict(sorted(found.items()))


def _object(values: Mapping[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(b"%b:%b" % (msgspec.json.encode(name), value) for name, value in values.items())


# -- schemas -----------------------------------------------------------------------------------------------------------


def _definition(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    found = _schema(schema)
    if name in _ONE_OF:
        return {**found, **_ONE_OF[name]}
    if schema.get(_PRESERVES) is True:
        return {"type": "object", _GVK: schema[_GVK]}
    return found


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    if reference := _reference(schema):
        words = {"description": schema["description"]} if "description" in schema else {}
        return {**words, "$ref": reference}
    found = {name: value for name, value in schema.items() if name in _KEPT or name.startswith("x-")}
    nullable, preserves = schema.get("nullable") is True, schema.get(_PRESERVES) is True
    if nullable:
        found.pop("type", None)
    properties = schema.get("properties") or {}
    if not nullable and not preserves:
        if "items" in schema:
            found["items"] = _schema(schema["items"])
        if properties:
            found["properties"] = {name: _schema(one) for name, one in properties.items()}
            _require_what_is_not_null(found, properties)
    additional = schema.get("additionalProperties")
    if isinstance(additional, bool):
        found["additionalProperties"] = additional
    elif additional is not None:
        found["additionalProperties"] = _schema(additional)
        if additional.get("nullable"):
            found.pop("required", None)
    if (found.get("type") == "array" and "items" not in found) or (found.get("type") == "object" and preserves):
        del found["type"]
    if schema.get(_EMBEDDED) is True and not preserves:
        found["properties"] = {**found.get("properties", {}), **_OBJECT_FIELDS}
        found["required"] = [*found.get("required", ()), "kind", "apiVersion"]
    return found


def _require_what_is_not_null(found: dict[str, Any], properties: Mapping[str, Any]) -> None:
    left = [name for name in found.get("required") or () if not properties.get(name, {}).get("nullable")]
    if left:
        found["required"] = left
    else:
        found.pop("required", None)


_OBJECT_FIELDS: Final = {**TYPE_FIELDS, "metadata": {"description": METADATA, "$ref": _META}}


def _reference(schema: Mapping[str, Any]) -> str:
    """What a schema stands for. A custom kind's own schemas never refer to others."""
    several: Sequence[Mapping[str, Any]] = schema.get("allOf", ())
    reference = schema.get("$ref") or (several[0].get("$ref") if len(several) == 1 else "")
    return f"{REF_V2}{reference.removeprefix(REF_V3)}" if reference else ""


# -- paths -------------------------------------------------------------------------------------------------------------


def _path_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: [_parameter(one) for one in value] if name == "parameters" else _operation(value)
        for name, value in item.items()
    }


def _parameter(one: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in one.items() if name != "schema"}, **one["schema"]}


def _operation(value: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(value)
    body = found.pop("requestBody", None)
    found["parameters"] = [_parameter(one) for one in value["parameters"]]
    found["consumes"] = ["*/*"]
    if body is not None:
        content = body["content"]
        schema = _schema(next(iter(content.values()))["schema"])
        found["parameters"].insert(0, {"in": "body", "name": "body", "required": True, "schema": schema})
        if found["x-kubernetes-action"] == "patch":
            found["consumes"] = list(content)
    found["produces"] = list(_PRODUCES)
    found["responses"] = {code: _response(one) for code, one in value["responses"].items()}
    found["schemes"] = ["https"]
    return found


def _response(one: Mapping[str, Any]) -> dict[str, Any]:
    schema = _schema(one["content"]["application/json"]["schema"])
    return {"description": one["description"], "schema": schema}
