"""OpenAPI v3: one document for each group and version, built from the table of messages on first use; and v2, which
`openapi_v2` makes of them.

The documents serve `kubectl explain`, kubectl's validation and client generators. Descriptions are our own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from situate.server.discovery import Document, document, subresource_kind, subresource_verbs
from situate.server.kinds import KINDS
from situate.server.openapi_custom import custom_schemas, schema_name
from situate.server.openapi_v2 import Fragment, fragment, joined
from situate.server.openapi_words import METADATA, TYPE_FIELDS, items_text
from situate.server.resources import RESOURCES, Resource
from situate.wire.schema.table import Field, Message, Type, flat_fields, inner_types, kinds, message

PROTOBUF_V2: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""As clients request it. The answer's media type has no @, which media types do not allow."""
REF: Final = "#/components/schemas/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_PREFIXES: Final = {
    "apiregistration.v1": "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.",
    "meta.v1": META,
    "situate.v1alpha1": "dev.situate.v1alpha1.",
    "x.v1alpha1": "io.x-k8s.scheduling.v1alpha1.",
    "types": "io.k8s.apimachinery.pkg.types.",
}
_SCALARS: Final[Mapping[str, Mapping[str, str]]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_SPECIAL: Final = {
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "Amount": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "Time": f"{META}Time",
    "MicroTime": f"{META}MicroTime",
    "Raw": "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "Free": f"{META}FieldsV1",
}
_ANY_VALUE: Final = "v1.JSON"
"""What a schema gives as a default, an example or one of its values."""
_FIXED: Final[Mapping[str, Mapping[str, Any]]] = {
    _SPECIAL["Quantity"]: {
        "description": "A number with a unit, as 500m, 2 or 128Mi.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    _SPECIAL["IntOrString"]: {
        "description": "A number, or text such as a percentage or a name.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    _SPECIAL["Time"]: {"description": "A point in time, to the second.", "type": "string", "format": "date-time"},
    _SPECIAL["MicroTime"]: {
        "description": "A point in time, to the microsecond.",
        "type": "string",
        "format": "date-time",
    },
    _SPECIAL["Raw"]: {"description": "Any object.", "type": "object"},
    _SPECIAL["Free"]: {"description": "Which fields a manager has set.", "type": "object"},
    f"{META}Patch": {"description": "A change to an object.", "type": "object"},
    f"{META}ListMeta": {
        "description": "What every list has.",
        "type": "object",
        "properties": {
            "continue": {"description": "The token for the next page.", "type": "string"},
            "remainingItemCount": {
                "description": "The number of objects that follow.",
                "type": "integer",
                "format": "int64",
            },
            "resourceVersion": {"description": "The revision of the list.", "type": "string"},
        },
    },
}
# Without strategic merge: if a document lists it, kubectl computes patches from the document's extensions, and not
# from its built-in types.
_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_BODIES: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_METHODS: Final = {
    "get": "get",
    "list": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete",
}
_ACTIONS: Final = {"create": "post", "update": "put"}


_WORDS: Final[Mapping[str, str]] = {
    **{name: field["description"] for name, field in TYPE_FIELDS.items()},
    "metadata": METADATA,
    "spec": "The desired state.",
    "status": "The observed state.",
    "Eviction": "Eviction asks to remove a pod, if its disruption budgets permit.",
    "ObjectMeta": "What every object has: a name, labels, annotations, owners, and what the server records about it.",
    "ObjectMeta.annotations": "Notes. Selectors do not see them.",
    "ObjectMeta.creationTimestamp": "CreationTimestamp is a timestamp: when the server created the object.",
    "ObjectMeta.deletionTimestamp": "When the object is due to be gone. The server sets it.",
    "ObjectMeta.finalizers": "The controllers that must act before the object is gone.",
    "ObjectMeta.generateName": "A prefix that the server completes to a name.",
    "ObjectMeta.generation": "Counts changes of the desired state.",
    "ObjectMeta.labels": "Keys and values that selectors match.",
    "ObjectMeta.managedFields": "Who set which field, for server-side apply.",
    "ObjectMeta.name": "The name, unique among the kind's objects in the namespace. It cannot change.",
    "ObjectMeta.namespace": "The namespace. It cannot change.",
    "ObjectMeta.ownerReferences": "The objects that own this one. When all are gone, the server deletes this one.",
    "ObjectMeta.resourceVersion": "The revision of the object. The server refuses a write that names an older one.",
    "ObjectMeta.uid": "Unique among all objects, past ones too.",
    "Scale": "Scale is the number of pods that a workload should have, and has.",
    "TokenRequest": "TokenRequest asks for a token of a service account.",
    **{kind.resources[0].kind: kind.description for kind in KINDS},
    **{name: text for kind in KINDS for name, text in kind.words.items()},
}
"""Descriptions of messages and fields. A field without a message has this description in every message."""


def _parameter(name: str, text: str, kind: str = "string", where: str = "query") -> dict[str, Any]:
    found: dict[str, Any] = {"name": name, "in": where, "description": text}
    if where == "path":
        found["required"] = True
    return found | {"schema": {"type": kind, "uniqueItems": True}}


_NAME: Final = _parameter("name", "the object's name", where="path")
_NAMESPACE: Final = _parameter("namespace", "the object's namespace", where="path")
_WRITE: Final = (
    _parameter("dryRun", "`All`: process the request and do not persist it"),
    _parameter("fieldManager", "the name of the client: at most 128 characters; required for apply"),
    _parameter("fieldValidation", "how to treat unknown fields: Ignore, Warn (the default) or Strict"),
)
_FORCE: Final = (_parameter("force", "take over fields that others manage; for apply only", "boolean"),)
_LIST: Final = (
    _parameter("allowWatchBookmarks", "send bookmarks while nothing changes", "boolean"),
    _parameter("continue", "the token of the previous page of a list"),
    _parameter("fieldSelector", "only objects with these values in their fields"),
    _parameter("labelSelector", "restricts the list of returned objects to those with these labels"),
    _parameter("limit", "the maximum number of objects in a page", "integer"),
    _parameter("resourceVersion", "how recent the answer must be, or where a watch begins"),
    _parameter("resourceVersionMatch", "Exact or NotOlderThan"),
    _parameter("sendInitialEvents", "begin a watch with all existing objects", "boolean"),
    _parameter("timeoutSeconds", "when a watch ends", "integer"),
    _parameter("watch", "Watch for changes to the described resources, and stream them", "boolean"),
)
_DELETE: Final = (
    _parameter("dryRun", "`All`: process the request and do not persist it"),
    _parameter("gracePeriodSeconds", "the grace period; 0 deletes at once", "integer"),
    _parameter("propagationPolicy", "what happens to dependents: Background, Foreground or Orphan"),
)
_GET: Final = (_parameter("resourceVersion", "how recent the answer must be"),)
_PARAMETERS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "get": _GET,
    "list": _LIST,
    "create": _WRITE,
    "update": _WRITE,
    "patch": (*_WRITE, *_FORCE),
    "delete": _DELETE,
    "deletecollection": (*_DELETE, *_LIST),
}


class OpenApi:
    """All documents and their index."""

    def __init__(self, resources: Sequence[Resource] = RESOURCES, version: str = "1.36") -> None:
        self._version = version
        self._resources: dict[str, list[Resource]] = {}
        for one in resources:
            path = f"apis/{one.api_version}" if one.group else f"api/{one.version}"
            self._resources.setdefault(path, []).append(one)
        self._documents: dict[str, Document] = {}
        self._fragments: dict[str, Fragment] = {}
        self._v2: dict[bool, Document] = {}
        self._index: Document | None = None

    def of(self, resources: Sequence[Resource]) -> OpenApi:
        """The documents of other resources. What was made already, and is the same for them, is kept."""
        other = OpenApi(resources, self._version)
        for name, own in self._resources.items():
            if [id(one) for one in own] == [id(one) for one in other._resources.get(name, ())]:
                if name in self._documents:
                    other._documents[name] = self._documents[name]
                if name in self._fragments:
                    other._fragments[name] = self._fragments[name]
        return other

    def index(self) -> Document:
        if self._index is None:
            paths = {}
            for name in sorted(self._resources):
                found = self._made(name)
                paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={found.etag.strip(chr(34))}"}
            self._index = document({"paths": paths})
        return self._index

    def document(self, name: str) -> Document | None:
        """The document of `api/v1` or `apis/apps/v1`, say."""
        return self._made(name) if name in self._resources else None

    def v2(self, protobuf: bool) -> tuple[Document, str]:
        """The OpenAPI v2 document of all kinds, and its media type."""
        if protobuf not in self._v2:
            fragments = [self._fragment(name) for name in self._resources]
            self._v2[protobuf] = joined("Kubernetes", self._version, fragments, protobuf=protobuf)
        return self._v2[protobuf], PROTOBUF_V2.replace("@", ".") if protobuf else "application/json"

    def _fragment(self, name: str) -> Fragment:
        if name not in self._fragments:
            shared = {name for found in self._fragments.values() for name in found.definitions.json}
            self._fragments[name] = fragment(self._made(name).body, shared)
        return self._fragments[name]

    def _made(self, name: str) -> Document:
        if name not in self._documents:
            self._documents[name] = self._make(name)
        return self._documents[name]

    def _make(self, name: str) -> Document:
        resources = self._resources[name]
        api_version = resources[0].api_version
        wanted = [known for (version, _), known in kinds().items() if version == api_version]
        for one in resources:
            for sub in one.subresources:
                group, version, kind = subresource_kind(one, sub)
                known = kinds().get((f"{group}/{version}" if group else one.api_version, kind))
                wanted.extend([known] if known else [])
        lists = {f"{_schema_name(kinds()[api_version, one.kind])}List": _list_schema(one) for one in _listed(resources)}
        wanted.append("meta.v1.DeleteOptions")
        custom = {key: schema for one in resources for key, schema in custom_schemas(one).items()}
        if custom:
            wanted.append("meta.v1.ObjectMeta")
        schemas: dict[str, Any] = {found: _schema(found) for found in _reached(wanted)}
        named: dict[str, Any] = {_schema_name(found): raw for found, raw in schemas.items()}
        whole = {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": self._version},
            "paths": {path: item for one in resources for path, item in _paths(one)},
            "components": {"schemas": dict(sorted((named | lists | custom | dict(_FIXED)).items()))},
        }
        body = msgspec.json.encode(whole)
        return Document(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


# -- schemas -----------------------------------------------------------------------------------------------------------


def _schema_name(name: str) -> str:
    section, _, own = name.rpartition(".")
    return _PREFIXES.get(section, f"io.k8s.api.{section}.") + own


def _listed(resources: Sequence[Resource]) -> Iterator[Resource]:
    for one in resources:
        if "list" in one.verbs and (one.api_version, one.kind) in kinds():
            yield one


def _list_schema(one: Resource) -> dict[str, Any]:
    items = {"type": "array", "items": {"$ref": REF + _schema_name(kinds()[one.api_version, one.kind])}}
    return {
        "description": f"A list of objects of kind {one.kind}.",
        "type": "object",
        "required": ["items"],
        "properties": {
            **TYPE_FIELDS,
            "items": {"description": items_text(one.plural), **items},
            "metadata": {"description": "The revision of the list.", "allOf": [{"$ref": f"{REF}{META}ListMeta"}]},
        },
        "x-kubernetes-group-version-kind": [{"group": one.group, "kind": f"{one.kind}List", "version": one.version}],
    }


def _inner(kind: Type) -> Iterator[str]:
    """The messages that a type names."""
    for one in inner_types(kind):
        if one.form == "message":
            yield one.name


def _reached(names: Sequence[str]) -> list[str]:
    """All messages that can occur inside these."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting.extend(inner for field in flat_fields(message(name)) for inner in _inner(field.type))
    return list(found)


@cache
def _schema(name: str) -> msgspec.Raw:
    """Encoded once, because most documents contain the pod's."""
    one = message(name)
    properties = {field.name: _property(one, field) for field in flat_fields(one)}
    schema: dict[str, Any] = {
        "description": _WORDS.get(one.go, f"{one.go} is a part of other kinds."),
        "type": "object",
    }
    if required := [field.name for field in flat_fields(one) if field.required]:
        schema["required"] = required
    schema["properties"] = dict(sorted(properties.items()))
    if one.is_kind:
        schema["x-kubernetes-group-version-kind"] = [
            {"group": version.rpartition("/")[0], "kind": kind, "version": version.rpartition("/")[2]}
            for (version, kind), known in kinds().items()
            if known == name
        ]
    return msgspec.Raw(msgspec.json.encode(schema))


def _property(one: Message, field: Field) -> dict[str, Any]:
    text = _WORDS.get(f"{one.go}.{field.name}") or _WORDS.get(field.name, "")
    shown = _type(field.type)
    if "$ref" in shown:
        shown = {"allOf": [shown]}
    return {"description": text, **shown} if text else shown


def _type(kind: Type) -> dict[str, Any]:
    if kind.form == "either" or kind.go == _ANY_VALUE:
        return {}
    if kind.form == "message":
        return {"$ref": REF + _schema_name(kind.name)}
    if kind.form == "special":
        return {"$ref": REF + _SPECIAL[kind.name]}
    if kind.form == "scalar" or kind.of is None:
        return {**_SCALARS[kind.name], "enum": sorted(kind.values)} if kind.values else dict(_SCALARS[kind.name])
    inner = _type(kind.of)
    return (
        {"type": "array", "items": inner} if kind.form == "list" else {"type": "object", "additionalProperties": inner}
    )


# -- paths -------------------------------------------------------------------------------------------------------------


def _paths(one: Resource) -> Iterator[tuple[str, dict[str, Any]]]:
    root = f"/apis/{one.api_version}" if one.group else f"/api/{one.version}"
    within = f"{root}/namespaces/{{namespace}}" if one.namespaced else root
    scope = (_NAMESPACE,) if one.namespaced else ()
    if one.namespaced and "list" in one.verbs:
        yield f"{root}/{one.plural}", _item(one, ("list",), (), own="")
    some = [verb for verb in ("list", "create", "deletecollection") if verb in one.verbs]
    if some:
        yield f"{within}/{one.plural}", _item(one, some, scope)
    single = [verb for verb in ("get", "update", "patch", "delete") if verb in one.verbs]
    if single:
        yield f"{within}/{one.plural}/{{name}}", _item(one, single, (_NAME, *scope))
    for sub in one.subresources:
        path = f"{within}/{one.plural}/{{name}}/{sub}"
        yield path, _item(one, subresource_verbs(sub), (_NAME, *scope), sub)


def _item(
    one: Resource, verbs: Sequence[str], parameters: Sequence[Mapping[str, Any]], sub: str = "", own: str = "Namespaced"
) -> dict[str, Any]:
    group, version, kind = subresource_kind(one, sub) if sub else ("", "", one.kind)
    if not group:
        group, version = one.group, one.version
    item: dict[str, Any] = {}
    for verb in verbs:
        item[_METHODS[verb]] = _operation(one, verb, (group, version, kind), sub, own)
    if parameters:
        item["parameters"] = parameters
    return item


def _operation(one: Resource, verb: str, about: tuple[str, str, str], sub: str, own: str) -> dict[str, Any]:
    group, version, kind = about
    known = kinds().get((f"{group}/{version}" if group else version, kind))
    named = _schema_name(known) if known else schema_name(one) if one.custom is not None else ""
    schema = {"$ref": REF + named} if named else {"type": "object"}
    answer = {"$ref": schema["$ref"] + "List"} if verb in ("list", "deletecollection") and named else schema
    word = {"create": "create", "update": "replace", "get": "read", "deletecollection": "deleteCollection"}.get(
        verb, verb
    )
    scope = own if one.namespaced else ""
    group_words = [part.capitalize() for part in re.split("[.-]", one.group.removesuffix(".k8s.io"))]
    called = "".join(group_words) or "Core"
    across = "ForAllNamespaces" if one.namespaced and not own else ""
    operation: dict[str, Any] = {
        "tags": [f"{called[0].lower()}{called[1:]}_{one.version}"],
        "description": f"{word} {kind}",
        "operationId": f"{word}{called}{one.version.capitalize()}{scope}{one.kind}{sub.capitalize()}{across}",
        "parameters": _PARAMETERS[verb],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": {"group": group, "kind": kind, "version": version},
    }
    if verb in ("create", "update"):
        content = {media: {"schema": schema} for media in _BODIES}
        operation["requestBody"] = {"content": content, "required": True}
    elif verb == "patch":
        change = {"$ref": f"{REF}{META}Patch"}
        operation["requestBody"] = {"content": {media: {"schema": change} for media in _PATCHES}, "required": True}
    return operation
