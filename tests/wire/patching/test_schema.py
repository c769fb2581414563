"""The table of shapes. That it says what Kubernetes says is for tests/kubernetes to tell."""

import pytest

from situate.wire.patching import facts, shape_of
from situate.wire.patching.schema import OPEN, Key, blank, is_served, resets


def test_every_type_that_is_named_is_in_the_table() -> None:
    from situate.wire.patching import schema

    named = {shape.type for shapes in schema._TYPES.values() for shape in shapes.values()} - {"", "whole"}
    assert named <= set(schema._TYPES)


@pytest.mark.parametrize("version", facts.KINDS)
def test_every_kind_has_metadata_and_something_to_start_from(version: str) -> None:
    for name in facts.KINDS[version].split():
        kind = name.partition("=")[0]
        assert shape_of(version, kind).field("metadata").field("finalizers").form == "set"
        assert blank(version, kind)["metadata"] == {}
        assert is_served(version, kind)


def test_ports_have_a_default_protocol() -> None:
    ports = shape_of("v1", "Pod").field("spec").field("containers").item.field("ports")
    assert ports.keys == (Key("containerPort"), Key("protocol", "TCP"))
    assert ports.merge_key == "containerPort"


def test_both_kinds_of_events_have_a_shape_of_their_own() -> None:
    assert shape_of("v1", "Event").field("involvedObject").form == "whole"
    assert shape_of("events.k8s.io/v1", "Event").field("involvedObject") == OPEN
    assert shape_of("events.k8s.io/v1", "Event").field("regarding").form == "whole"


def test_of_a_kind_that_is_not_in_the_table_the_metadata_is_known() -> None:
    shape = shape_of("situate.dev/v1alpha1", "PlacementDecision")
    assert shape.field("metadata").field("ownerReferences").form == "keyed"
    assert shape.field("spec") == OPEN
    assert not is_served("situate.dev/v1alpha1", "PlacementDecision")


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
