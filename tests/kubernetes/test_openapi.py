"""OpenAPI v2 says of built-in and custom kinds what kube-apiserver's says, and kubectl reads it."""

import json
from pathlib import Path
from typing import Any

from kubernetes.cluster import Cluster
from kubernetes.objects import Json
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import wait_until

WITHIN_S = 20.0
GROUP = "openapi.example.com"
PROPERTIES: Json = {
    "name": {"type": "string", "description": "The name.", "pattern": "^a", "maxLength": 5, "default": "ab"},
    "maybe": {"type": "string", "nullable": True},
    "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "keep": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
    "list": {"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": {"type": "object"}},
    "inner": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
    "other": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "texts": {"type": "object", "additionalProperties": {"type": "string", "enum": ["a", "b"]}},
    "any": {"type": "object", "additionalProperties": True},
    "nulls": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
    "bars": {
        "type": "array",
        "description": "The bars.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "not": {"required": ["foo"]},
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10, "exclusiveMaximum": True},
                "foo": {"type": "number", "multipleOf": 0.5},
            },
        },
    },
}
SPEC = {
    "type": "object",
    "description": "What is wanted.",
    "required": ["name", "maybe"],
    "properties": PROPERTIES,
    "x-kubernetes-validations": [{"rule": "self.name != 'x'"}],
}
FOO = {
    "type": "object",
    "description": "Foo is for the test.",
    "required": ["spec"],
    "properties": {"spec": SPEC, "status": {"type": "object", "nullable": True}},
}
KEEP = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EXPLAINED = (
    ["foos"],
    ["foos.spec"],
    ["foos.spec.bars.age"],
    ["foos", "--recursive"],
    ["keeps"],
    ["deployments", "--recursive"],
    ["pods.spec.containers.resources"],
)
KEPT = ("type", "format", "$ref", "items", "properties", "additionalProperties", "required")
"""What built-in definitions have in common: the words are our own."""


def definition(kind: str, schema: Json) -> Json:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def document(cluster: Cluster) -> Json:
    answer: Json = cluster.api.ask("GET", "/openapi/v2", None)[1]
    return answer


def explained(cluster: Cluster) -> list[str]:
    """What kubectl prints, without descriptions: it reads the document in protobuf."""
    said = []
    for arguments in EXPLAINED:
        text = cluster.kubectl("explain", "--output=plaintext-openapiv2", *arguments)
        lines = text.splitlines()
        said.append("\n".join(line for line in lines if "<" in line or line.startswith(("KIND", "VERSION"))))
    return said


def described(cluster: Cluster) -> tuple[dict[str, Json], list[str], dict[str, Any]]:
    crds = [definition("Foo", FOO), definition("Keep", KEEP)]
    cluster.api.create(crds, "")
    names = [f"com.example.openapi.v1.{kind}" for kind in ("Foo", "Keep")]
    wait_until(lambda: set(names) <= set(document(cluster)["definitions"]), "the kinds to be described", WITHIN_S)
    said = explained(cluster)
    found = document(cluster)["definitions"]
    for one in crds:
        cluster.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{one['metadata']['name']}")
    wait_until(lambda: not set(names) & set(document(cluster)["definitions"]), "the kinds to be gone", WITHIN_S)
    return {name: without_our_words(found[name]) for name in names}, said, found


def without_our_words(schema: Json) -> Json:
    schema = json.loads(json.dumps(schema))

    def walk(one: Any) -> None:
        for name in ("apiVersion", "kind", "metadata"):
            one.get("properties", {}).get(name, {}).pop("description", None)
        for inner in one.get("properties", {}).values():
            walk(inner)

    walk(schema)
    return schema


def essence(schema: Any) -> Any:
    found = {key: schema[key] for key in KEPT if key in schema}
    if "properties" in found:
        found["properties"] = {name: essence(one) for name, one in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = essence(found[key])
    if "required" in found:
        found["required"] = sorted(found["required"])
    return found


def test_kinds_are_described_in_openapi_v2_as_by_kube_apiserver(cluster: Cluster, tmp_path: Path) -> None:
    theirs, explanation, built_in = described(cluster)
    with OwnCluster(tmp_path / "own") as own:
        own.namespace = own.new_namespace("openapi")
        ours, said, definitions = described(own)
    assert ours == theirs
    assert said == explanation
    # Lists have fields that nobody serves any more.
    shared = [
        name for name in definitions if name in built_in and name != "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
    ]
    assert len(shared) > 400
    assert {name: essence(definitions[name]) for name in shared} == {name: essence(built_in[name]) for name in shared}
