"""The table itself: whole, and without contradictions."""

import pytest

from situate.server.resources import RESOURCES
from situate.wire.schema import flat_fields, kinds, message, message_of
from situate.wire.schema.table import Type


def innermost(kind: Type) -> Type:
    return kind if kind.of is None else innermost(kind.of)


def all_messages() -> list[str]:
    found = list(kinds().values())
    for name in found:
        for field in message(name).fields:
            inner = innermost(field.type)
            if inner.form == "message" and inner.name not in found:
                found.append(inner.name)
    return found


def test_everything_that_is_served_can_be_decoded() -> None:
    assert [one for one in RESOURCES if (one.api_version, one.kind) not in kinds()] == []


@pytest.mark.parametrize(
    "api_version, kind",
    [
        ("policy/v1", "Eviction"),
        ("autoscaling/v1", "Scale"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("apps/v1", "DeleteOptions"),
    ],
)
def test_what_is_only_asked_can_be_decoded_too(api_version: str, kind: str) -> None:
    assert message_of(api_version, kind) is not None


def test_a_message_has_each_name_and_each_number_once() -> None:
    names = all_messages()
    assert len(names) > 390
    for name in names:
        fields = [field.name for field in flat_fields(message(name))]
        numbers = [field.number for field in message(name).fields if field.number]
        assert len(set(fields)) == len(fields), name
        assert len(set(numbers)) == len(numbers), name


def test_a_container_is_as_kubernetes_has_it() -> None:
    fields = {field.name: field for field in message("core.v1.Container").fields}
    assert (fields["name"].number, fields["name"].always, fields["image"].always) == (1, True, False)
    assert fields["resources"].always
    assert fields["livenessProbe"].pointer
    assert fields["ports"].type.go == "[]v1.ContainerPort"
    assert fields["imagePullPolicy"].type.go == "v1.PullPolicy"


def test_a_volume_has_its_sources_inlined() -> None:
    names = [field.name for field in flat_fields(message("core.v1.Volume"))]
    assert names[:3] == ["name", "hostPath", "emptyDir"]
    assert [field.name for field in message("core.v1.Volume").fields] == ["name", "VolumeSource"]


def test_the_name_of_a_map_s_keys_is_known() -> None:
    fields = {field.name: field for field in message("resource.v1.Device").fields}
    assert fields["capacity"].type.go == "map[v1.QualifiedName]v1.DeviceCapacity"


@pytest.mark.parametrize("name", ["core.v1.Nope", "nope.v1.Pod", "Pod"])
def test_what_is_not_in_the_table_is_not_found(name: str) -> None:
    with pytest.raises(KeyError):
        message(name)
