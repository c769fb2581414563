"""The table of shapes. That it says what Kubernetes says is for tests/kubernetes to tell."""

import pytest

from situate.wire.patching import merge_schema
from situate.wire.patching.schema import OPEN, Key, blank, is_served, resets
from situate.wire.patching.strategic import strategic_patched
from situate.wire.schema.table import flat_fields, kinds, message


@pytest.mark.parametrize("api_version, kind", kinds())
def test_every_kind_has_metadata_and_something_to_start_from(api_version: str, kind: str) -> None:
    if "metadata" in [field.name for field in flat_fields(message(kinds()[api_version, kind]))]:
        assert merge_schema(api_version, kind).field("metadata").field("finalizers").form == "set"
        assert blank(api_version, kind)["metadata"] == {}
        assert is_served(api_version, kind)


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
def test_every_version_of_a_pod_group_merges_its_conditions_by_type(version: str) -> None:
    api_version = f"scheduling.k8s.io/{version}"
    assert merge_schema(api_version, "PodGroup").field("status").field("conditions").merge_key == "type"
    old = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
    patch = {"status": {"conditions": [{"type": "B", "status": "True"}]}}
    merged = strategic_patched(old, patch, merge_schema(api_version, "PodGroup"))
    assert sorted(one["type"] for one in merged["status"]["conditions"]) == ["A", "B"]


def test_ports_have_a_default_protocol() -> None:
    ports = merge_schema("v1", "Pod").field("spec").field("containers").item.field("ports")
    assert ports.keys == (Key("containerPort"), Key("protocol", "TCP"))
    assert ports.merge_key == "containerPort"


def test_both_kinds_of_events_have_a_shape_of_their_own() -> None:
    assert merge_schema("v1", "Event").field("involvedObject").form == "atomic"
    assert merge_schema("events.k8s.io/v1", "Event").field("involvedObject") == OPEN
    assert merge_schema("events.k8s.io/v1", "Event").field("regarding").form == "atomic"


def test_of_a_kind_that_is_not_in_the_table_the_metadata_is_known() -> None:
    shape = merge_schema("example.com/v1", "Thing")
    assert shape.field("metadata").field("ownerReferences").form == "keyed"
    assert shape.field("spec") == OPEN
    assert not is_served("example.com/v1", "Thing")


@pytest.mark.parametrize(
    "kind, subresource, paths",
    [
        pytest.param("Deployment", "", (("status",),), id="who writes an object does not write its status"),
        pytest.param("Deployment", "status", (("spec",), ("metadata", "labels")), id="nor the other way round"),
        pytest.param("ConfigMap", "", (), id="where there is no status, all can be written"),
        pytest.param(
            "NodeSnapshot", "status", (("spec",), ("metadata",)), id="a kind of ours is like a custom resource"
        ),
        pytest.param("Deployment", "scale", (), id="another subresource"),
    ],
)
def test_what_cannot_be_written(kind: str, subresource: str, paths: tuple[tuple[str, ...], ...]) -> None:
    assert resets(kind, subresource) == paths
