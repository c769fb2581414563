import json
from collections.abc import Iterator
from typing import Any

from situate.server import openapi_v2
from situate.server.openapi import OpenApi
from situate.server.openapi_v2 import fragment, joined

GVK = [{"group": "example.com", "kind": "Foo", "version": "v1"}]


def of(properties: Any, **more: Any) -> Any:
    """The definition that becomes of a custom kind's schema."""
    schema = {"type": "object", "x-kubernetes-group-version-kind": GVK, "properties": properties, **more}
    v3 = {"paths": {}, "components": {"schemas": {"com.example.v1.Foo": schema}}}
    made = joined("t", "v", [fragment(json.dumps(v3).encode())], protobuf=False)
    return json.loads(made.body)["definitions"]["com.example.v1.Foo"]


def messages(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message in protobuf: numbers, and bytes for whatever has a length."""
    at = 0

    def varint() -> int:
        nonlocal at
        found = shift = 0
        while True:
            byte = data[at]
            at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = 8 if key & 7 == 1 else varint()
            yield key >> 3, data[at : at + size]
            at += size


def test_every_definition_and_path_is_in_both_notations() -> None:
    openapi = OpenApi()
    plain = json.loads(openapi.v2(protobuf=False)[0].body)
    packed = dict(messages(openapi.v2(protobuf=True)[0].body))
    names = [dict(messages(entry))[1].decode() for _, entry in messages(packed[9])]
    assert names == sorted(plain["definitions"])
    paths = [dict(messages(entry))[1].decode() for _, entry in messages(packed[8])]
    assert paths == sorted(plain["paths"])
    assert "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale" in paths


def test_whatever_the_document_refers_to_is_in_it() -> None:
    whole = json.loads(OpenApi().v2(protobuf=False)[0].body)
    text = json.dumps(whole)
    assert "#/components/" not in text
    wanted = {part.partition('"')[0] for part in text.split('"#/definitions/')[1:]}
    assert wanted <= set(whole["definitions"])


def test_kubectl_is_not_told_what_it_cannot_read() -> None:
    kept = {"type": "object", "properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": True}
    text = {"type": "string", "nullable": True, "default": "x"}
    found = of({"kept": kept, "text": text, "list": {"type": "array"}, "map": {"additionalProperties": text}})
    assert found["properties"] == {
        "kept": {"x-kubernetes-preserve-unknown-fields": True},
        "text": {},
        "list": {},
        "map": {"additionalProperties": {}},
    }
    assert of({"a": {"type": "string"}}, **{"x-kubernetes-preserve-unknown-fields": True}) == {
        "type": "object",
        "x-kubernetes-group-version-kind": GVK,
    }


def test_what_may_be_null_is_not_required() -> None:
    schema = {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}}
    assert of(schema, required=["a", "b"])["required"] == ["b"]
    assert "required" not in of(schema, required=["a"])


def test_an_embedded_object_has_what_every_object_has() -> None:
    found = of({"inner": {"type": "object", "x-kubernetes-embedded-resource": True}})["properties"]["inner"]
    assert found["required"] == ["kind", "apiVersion"]
    assert found["properties"]["metadata"]["$ref"] == "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def test_the_document_is_limited(monkeypatch: Any) -> None:
    whole = json.loads(OpenApi().v2(protobuf=False)[0].body)
    monkeypatch.setattr(openapi_v2, "MOST_BYTES", 400_000)
    part = json.loads(OpenApi().v2(protobuf=False)[0].body)
    assert 0 < len(part["paths"]) < len(whole["paths"])


def test_what_did_not_change_is_not_made_again() -> None:
    openapi = OpenApi()
    made = openapi.v2(protobuf=False)[0]
    resources = [one for group in openapi._resources.values() for one in group]
    later = openapi.of(resources[:-1])
    name = next(iter(later._resources))
    assert later._fragment(name) is openapi._fragment(name)
    assert later.v2(protobuf=False)[0].etag != made.etag


def test_kubectl_s_own_tests_find_the_phrases_that_they_look_for() -> None:
    """kubectl's test/cmd (swagger) and the conformance suite (CustomResourcePublishOpenAPI) do."""
    body = OpenApi().v2(protobuf=False)[0].body.decode()
    for phrase in ("list of returned", "List of services", "Watch for changes to the described resources"):
        assert phrase in body
    schemas = json.loads(body)["definitions"]
    assert schemas["io.k8s.api.core.v1.Pod"]["properties"]["apiVersion"]["description"].startswith("APIVersion defines")
    assert schemas["io.k8s.api.core.v1.Pod"]["properties"]["metadata"]["description"].startswith("Standard object's")
    created = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]["creationTimestamp"]
    assert created["description"].startswith("CreationTimestamp is a timestamp")


def test_a_schema_s_default_and_values_may_be_of_any_type() -> None:
    """kubectl validates lists by itself: it took a default that is a number for an error."""
    whole = json.loads(OpenApi().v2(protobuf=False)[0].body)
    props = whole["definitions"]["io.k8s.api.apiextensions.v1.JSONSchemaProps"]
    for name, shown in (
        ("default", props["properties"]["default"]),
        ("example", props["properties"]["example"]),
        ("enum", props["properties"]["enum"]["items"]),
    ):
        assert shown.keys() <= {"description"}, name
