import json
from collections.abc import Iterator
from typing import Any

import pytest

from situate.server.openapi import OpenApi
from situate.server.resources import RESOURCES, Resource
from situate.wire.schema.table import kinds

OPENAPI = OpenApi()
NAMES = sorted({f"apis/{one.api_version}" if one.group else f"api/{one.version}" for one in RESOURCES})


def document(name: str) -> Any:
    found = OPENAPI.document(name)
    assert found is not None
    return json.loads(found.body)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str):  # else the description of a field of that name
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_the_index_leads_to_every_document_by_its_hash() -> None:
    paths = json.loads(OPENAPI.index().body)["paths"]
    assert sorted(paths) == NAMES
    for name, entry in paths.items():
        found = OPENAPI.document(name)
        assert found is not None
        assert entry == {"serverRelativeURL": f"/openapi/v3/{name}?hash={found.etag.strip(chr(34))}"}
    assert OPENAPI.document("apis/foo/v1") is None


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_document_refers_to_is_in_it(name: str) -> None:
    whole = document(name)
    schemas = whole["components"]["schemas"]
    wanted = {reference.removeprefix("#/components/schemas/") for reference in references(whole)}
    assert wanted <= set(schemas)


@pytest.mark.parametrize("one", [one for one in RESOURCES if "patch" in one.verbs], ids=lambda one: one.plural)
def test_kubectl_finds_that_fields_are_validated_by_the_server(one: Resource) -> None:
    name = f"apis/{one.api_version}" if one.group else f"api/{one.version}"
    about = {"group": one.group, "kind": one.kind, "version": one.version}
    found = [
        item["patch"]
        for path, item in document(name)["paths"].items()
        if "patch" in item and item["patch"]["x-kubernetes-group-version-kind"] == about
    ]
    assert found
    assert any(parameter["name"] == "fieldValidation" for parameter in found[0]["parameters"])


def test_operations_have_names_of_their_own() -> None:
    for name in NAMES:
        seen = [
            operation["operationId"]
            for item in document(name)["paths"].values()
            for method, operation in item.items()
            if method != "parameters"
        ]
        assert len(seen) == len(set(seen))


def test_a_kind_has_its_fields_with_types_and_words() -> None:
    schemas = document("api/v1")["components"]["schemas"]
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert pod["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    spec = schemas["io.k8s.api.core.v1.PodSpec"]
    assert spec["required"] == ["containers"]
    assert spec["properties"]["nodeName"]["type"] == "string"
    assert spec["properties"]["containers"]["type"] == "array"
    container = schemas["io.k8s.api.core.v1.Container"]
    assert container["required"] == ["name"]
    requests = schemas["io.k8s.api.core.v1.ResourceRequirements"]["properties"]["requests"]
    quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity"
    assert requests["additionalProperties"] == {"$ref": f"#/components/schemas/{quantity}"}
    assert schemas[quantity]["oneOf"] == [{"type": "string"}, {"type": "number"}]


def test_every_kind_that_is_served_is_described() -> None:
    for one in RESOURCES:
        assert (one.api_version, one.kind) in kinds()


def test_strategic_patches_are_left_to_what_kubectl_knows() -> None:
    item = document("apis/apps/v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    content = item["patch"]["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" not in content


def test_fields_have_the_values_that_they_may_have() -> None:
    schemas = document("api/v1")["components"]["schemas"]
    container = schemas["io.k8s.api.core.v1.Container"]["properties"]
    assert container["imagePullPolicy"]["enum"] == ["Always", "IfNotPresent", "Never"]
    claim = schemas["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]
    assert "ReadWriteOnce" in claim["accessModes"]["items"]["enum"]


def test_our_own_kinds_are_described_to_the_last_field() -> None:
    schemas = document("apis/situate.dev/v1alpha1")["components"]["schemas"]
    status = schemas["dev.situate.v1alpha1.PlacementDecisionStatus"]["properties"]
    assert all(field.get("description") for field in status.values())
    assert status["scores"]["items"] == {"$ref": "#/components/schemas/dev.situate.v1alpha1.NodeScore"}
