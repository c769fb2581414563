"""Environments and command lines of containers."""

from typing import Any

import pytest

from situate.agent.environment import (
    NO_FIELD,
    ConfigReference,
    ContainerConfigError,
    EnvironmentSources,
    command_line,
    environment_references,
    expand,
    variables,
)

POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "namespace": "default",
        "uid": "u-1",
        "labels": {"app": "web", "a": 'x"y'},
        "annotations": {"note": "n"},
    },
    "spec": {"nodeName": "n1", "serviceAccountName": "robot", "containers": [{"name": "c"}]},
}
AROUND = EnvironmentSources(
    "10.0.0.1",
    {"cpu": "4", "memory": "8Gi"},
    {
        ("ConfigMap", "conf"): {"data": {"a": "1", "b.c": "2", "1-not a name": "3"}, "binaryData": {"raw": "AAE="}},
        ("Secret", "keys"): {"data": {"pass": "b3Blbg=="}},
    },
    {"HOME": "/h"},
)


def found(*env: dict[str, Any], **more: Any) -> dict[str, str]:
    made = variables(POD, {"name": "c", "env": list(env), **more}, AROUND)
    return {key: value for key, value in made.items() if key != "HOME"}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$(NONE)", "$(NONE)"),
        ("$A", "$A"),
        ("x$(A)y$(B)z", "x1y2z"),
        ("$$", "$"),
        ("$(A", "$(A"),
        ("cost: 5$", "cost: 5$"),
    ],
)
def test_references_are_replaced_as_kubernetes_does(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


def test_a_variable_sees_those_before_it_only() -> None:
    env = ({"name": "A", "value": "$(B)"}, {"name": "B", "value": "2"}, {"name": "C", "value": "$(B)"})
    assert found(*env) == {"A": "$(B)", "B": "2", "C": "2"}


@pytest.mark.parametrize(
    "path, expected",
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "web"),
        ("metadata.annotations['note']", "n"),
        ("metadata.labels", 'a="x\\"y"\napp="web"'),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "robot"),
        ("status.podIP", "10.0.0.1"),
        ("status.hostIP", "10.0.0.1"),
    ],
)
def test_fields_of_the_pod(path: str, expected: str) -> None:
    assert found({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}) == {"X": expected}


@pytest.mark.parametrize(
    "reference, expected",
    [
        pytest.param({"resource": "limits.cpu"}, "1", id="cpu is rounded up to whole ones"),
        pytest.param({"resource": "limits.cpu", "divisor": "1m"}, "250", id="unless it is to be divided otherwise"),
        pytest.param({"resource": "limits.memory", "divisor": "1Mi"}, "64", id="memory in units"),
        pytest.param({"resource": "requests.memory"}, "0", id="a request that is not set is nothing"),
        pytest.param({"resource": "limits.memory", "containerName": "other"}, str(8 << 30), id="a limit is the node's"),
    ],
)
def test_resources_of_a_container(reference: dict[str, str], expected: str) -> None:
    pod = {**POD, "spec": {**POD["spec"], "containers": [{"name": "c"}, {"name": "other"}]}}
    container = {
        "name": "c",
        "env": [{"name": "X", "valueFrom": {"resourceFieldRef": reference}}],
        "resources": {"limits": {"cpu": "250m", "memory": "64Mi"}},
    }
    assert variables(pod, container, AROUND)["X"] == expected


def test_all_keys_of_a_config_map_that_can_be_names() -> None:
    got = found(envFrom=[{"configMapRef": {"name": "conf"}}, {"prefix": "K_", "secretRef": {"name": "keys"}}])
    assert got == {"a": "1", "b.c": "2", "raw": "\0\1", "K_pass": "open"}


@pytest.mark.parametrize(
    "source, message",
    [
        ({"configMapKeyRef": {"name": "no", "key": "k"}}, 'configmap "no" not found'),
        ({"secretKeyRef": {"name": "keys", "key": "k"}}, "couldn't find key k in Secret default/keys"),
        ({"fieldRef": {"fieldPath": "spec.nonsense"}}, "the downward API has no field spec.nonsense"),
    ],
)
def test_what_is_missing_is_said(source: dict[str, Any], message: str) -> None:
    with pytest.raises(ContainerConfigError) as error:
        found({"name": "X", "valueFrom": source})
    assert (error.value.reason, str(error.value)) == ("CreateContainerConfigError", message)


def test_what_may_be_missing_is_left_out() -> None:
    key = {"configMapKeyRef": {"name": "no", "key": "k", "optional": True}}
    assert found({"name": "X", "valueFrom": key}, envFrom=[{"secretRef": {"name": "no", "optional": True}}]) == {}


def test_what_has_to_be_read_first() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "conf"}}],
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k", "optional": True}}},
        ],
    }
    assert list(environment_references(POD, container)) == [
        ConfigReference("ConfigMap", "conf"),
        ConfigReference("Secret", "keys", True),
    ]


def test_a_command_line_is_command_and_args_with_references_replaced() -> None:
    assert command_line({"command": ["run", "$(A)"], "args": ["$(B)"]}, {"A": "1", "B": "2"}) == ("run", "1", "2")


def test_without_a_command_there_is_nothing_to_run() -> None:
    with pytest.raises(ContainerConfigError, match="runs no images"):
        command_line({"image": "nginx", "args": ["x"]}, {})


def given(pod: dict[str, Any], source: dict[str, Any], objects: Any = None) -> str:
    around = EnvironmentSources("10.0.0.1", {"cpu": "4"}, objects or {}, {})
    env = [{"name": "X", "valueFrom": source}]
    return variables(pod, {**pod["spec"]["containers"][0], "env": env}, around)["X"]


def test_a_resource_may_be_that_of_another_container() -> None:
    limits = [{"name": name, "resources": {"limits": {"cpu": cpu}}} for name, cpu in (("c", "1"), ("d", "2"))]
    first = {"name": "i", "resources": {"limits": {"cpu": "3"}}}
    pod = {**POD, "spec": {"containers": limits, "initContainers": [first]}}
    for name, expected in (("", "1"), ("c", "1"), ("d", "2"), ("i", "3"), ("none", "1")):
        assert given(pod, {"resourceFieldRef": {"containerName": name, "resource": "limits.cpu"}}) == expected


@pytest.mark.parametrize("resource", ["", "limits", "limits.", "cpu", "usage.cpu", ".cpu"])
def test_what_is_no_resource_is_refused(resource: str) -> None:
    with pytest.raises(ContainerConfigError) as error:
        given(POD, {"resourceFieldRef": {"resource": resource}})
    assert str(error.value) == NO_FIELD.format(resource)


def test_labels_and_annotations_are_sorted_and_quoted() -> None:
    assert given(POD, {"fieldRef": {"fieldPath": "metadata.labels"}}) == 'a="x\\"y"\napp="web"'
    assert given(POD, {"fieldRef": {"fieldPath": "metadata.annotations"}}) == 'note="n"'
    plain = {**POD, "metadata": {"name": "p", "namespace": "default", "uid": "u"}}
    assert given(plain, {"fieldRef": {"fieldPath": "metadata.annotations"}}) == ""


def test_an_unknown_source_of_a_value_is_refused() -> None:
    with pytest.raises(ContainerConfigError) as error:
        given(POD, {"fileKeyRef": {"key": "k"}})
    assert str(error.value) == "valueFrom has no supported source"


@pytest.mark.parametrize(
    "field, kind, data",
    [
        pytest.param("secretKeyRef", "Secret", {"data": {"pass": "x"}}, id="a secret"),
        pytest.param("configMapKeyRef", "ConfigMap", {"binaryData": {"pass": "x"}}, id="binary data"),
        pytest.param("configMapKeyRef", "ConfigMap", {"data": {"pass": 3}}, id="what is not even text"),
    ],
)
def test_data_that_is_not_base64_is_refused(field: str, kind: str, data: dict[str, Any]) -> None:
    with pytest.raises(ContainerConfigError, match='"keys" has data that is not base64'):
        given(POD, {field: {"name": "keys", "key": "pass"}}, {(kind, "keys"): data})
