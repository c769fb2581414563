import pytest

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes

PROBLEMS = [
    pytest.param("core.v1.Container", {}, "imagePullPolicy", "Unsupported value", id="an enum that is absent"),
    pytest.param("core.v1.Container", {"imagePullPolicy": "Often"}, "imagePullPolicy", "Unsupported", id="an enum"),
    pytest.param("core.v1.ContainerPort", {}, "protocol", "Required value", id="an enum that must be given"),
    pytest.param("core.v1.VolumeMount", {}, "mountPropagation", "", id="an enum that may be absent"),
    pytest.param("situate.v1alpha1.BoundPod", {"uid": ""}, "uid", "Required value", id="text that must be given"),
    pytest.param("apps.v1.DeploymentSpec", {"replicas": -1}, "replicas", "Invalid value: -1: must be", id="a range"),
    pytest.param("apps.v1.DeploymentSpec", {}, "replicas", "", id="a number that may be absent"),
    pytest.param("core.v1.TopologySpreadConstraint", {}, "maxSkew", "Invalid value: 0", id="a number that must be set"),
    pytest.param("core.v1.TopologySpreadConstraint", {}, "minDomains", "", id="a pointer that may be absent"),
]


@pytest.mark.parametrize("message, obj, name, text", PROBLEMS)
def test_a_field_is_checked_by_its_line(message: str, obj: dict[str, object], name: str, text: str) -> None:
    causes = Causes()
    FieldChecks(message).check(obj, "at", causes, name)
    assert [cause.field for cause in causes] == ([f"at.{name}"] if text else [])
    assert all(cause.message.startswith(text) for cause in causes)


def test_without_names_all_fields_with_rules_are_checked_in_their_order() -> None:
    causes = Causes()
    FieldChecks("apps.v1.ReplicaSetStatus").check({"readyReplicas": -1, "replicas": -1}, "", causes)
    assert [cause.field for cause in causes] == ["replicas", "readyReplicas"]
