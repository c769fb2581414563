"""Pods beyond what a real server was asked: grace, the class of service, what becomes of a status."""

import copy
from typing import Any

import pytest

from server.kinds.checking import found_by
from situate.server.kinds.core.pod import KIND, qos_class
from situate.server.kinds.core.pod.defaults import pull_policy
from situate.server.kinds.core.pod.updates import ONLY_THESE

Json = dict[str, Any]


def pod(**spec: Any) -> Json:
    made: Json = {
        "metadata": {"name": "p", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
    }
    KIND.strategy.default(made)
    KIND.strategy.prepare_create(made)
    return made


@pytest.mark.parametrize(
    "spec,phase,asked,seconds",
    [
        pytest.param({"nodeName": "n"}, "Running", None, 30, id="a running pod has its own time"),
        pytest.param({"nodeName": "n"}, "Running", 5, 5, id="a running pod has the time that is asked for"),
        pytest.param({"nodeName": "n"}, "Running", 0, 0, id="zero is at once"),
        pytest.param({"nodeName": "n"}, "Running", -7, 1, id="a negative time is a second"),
        pytest.param({}, "Pending", 60, 0, id="a pod on no node goes at once"),
        pytest.param({"nodeName": "n"}, "Succeeded", 60, 0, id="a pod that has ended goes at once"),
        pytest.param({"nodeName": "n"}, "Failed", None, 0, id="a pod that failed goes at once"),
    ],
)
def test_grace(spec: Json, phase: str, asked: int | None, seconds: int) -> None:
    found = pod(**spec)
    found["status"]["phase"] = phase
    assert KIND.strategy.grace(found, asked) == seconds


def container(limits: Json | None = None, requests: Json | None = None) -> Json:
    return {"name": "c", "image": "i", "resources": {"limits": limits or {}, "requests": requests or {}}}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    "containers,expected",
    [
        pytest.param([container()], "BestEffort", id="who asks for nothing gets what is left"),
        pytest.param([container(BOTH, BOTH)], "Guaranteed", id="limits equal to requests are guaranteed"),
        pytest.param([container(BOTH, {**BOTH, "cpu": "1000m"})], "Guaranteed", id="however they are written"),
        pytest.param([container(BOTH, BOTH), container()], "Burstable", id="if every container has them"),
        pytest.param([container({"cpu": "1"}, {"cpu": "1"})], "Burstable", id="and of both resources"),
        pytest.param([container({"cpu": "0"}, {"cpu": "0"})], "BestEffort", id="none of a resource is nothing"),
        pytest.param([container({"a/b": "1"}, {"a/b": "1"})], "BestEffort", id="other resources do not count"),
    ],
)
def test_quality_of_service(containers: list[Json], expected: str) -> None:
    assert qos_class({"containers": containers}) == expected


@pytest.mark.parametrize(
    "image,policy",
    [
        pytest.param("a", "Always", id="no tag is the latest"),
        pytest.param("a:latest", "Always", id="the latest by name"),
        pytest.param("a:1", "IfNotPresent", id="a tag"),
        pytest.param("host:5000/a", "Always", id="a port is no tag"),
        pytest.param("a@sha256:" + "0" * 64, "IfNotPresent", id="a digest"),
        pytest.param("Not An Image", "IfNotPresent", id="what is no image has no tag"),
        pytest.param("a" * 100_000 + "!", "IfNotPresent", id="long nonsense is answered quickly"),
    ],
)
def test_pull_policy(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_a_gated_pod_says_since_when_it_waits() -> None:
    (condition,) = pod(schedulingGates=[{"name": "g"}])["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_what_a_client_says_about_the_state_of_a_new_pod_is_not_believed() -> None:
    made = pod()
    made["status"] = {"phase": "Running", "podIP": "1.2.3.4"}
    KIND.strategy.prepare_create(made)
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_status_update_changes_neither_spec_nor_owners_nor_class_of_service() -> None:
    old = pod()
    new = copy.deepcopy(old)
    new["spec"]["nodeName"] = "n"
    new["metadata"]["ownerReferences"] = [{"name": "x"}]
    new["status"] = {"phase": "Running"}
    KIND.strategy.prepare_status(new, old)
    assert new["spec"] == old["spec"]
    assert "ownerReferences" not in new["metadata"]
    assert new["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert found_by(KIND.strategy.validate_status, new, old) == []


def test_a_client_that_does_not_know_observed_generations_does_not_take_them_away() -> None:
    old = pod()
    old["status"] |= {"observedGeneration": 3, "conditions": [{"type": "Ready", "observedGeneration": 2}]}
    new = copy.deepcopy(old)
    new["status"] = {"conditions": [{"type": "Ready"}, {"type": "Other"}]}
    KIND.strategy.prepare_status(new, old)
    assert new["status"]["observedGeneration"] == 3
    assert new["status"]["conditions"] == [{"type": "Ready", "observedGeneration": 2}, {"type": "Other"}]


def test_the_text_for_a_field_that_may_not_change_names_those_that_may() -> None:
    old = pod()
    new = copy.deepcopy(old)
    new["spec"]["hostPID"] = True
    (cause,) = found_by(KIND.strategy.validate_update, new, old)
    assert (cause.field, cause.reason, cause.message) == ("spec", "FieldValueForbidden", f"Forbidden: {ONLY_THESE}")


def test_a_negative_grace_period_may_become_a_second() -> None:
    old = pod()
    old["spec"]["terminationGracePeriodSeconds"] = -1
    new = copy.deepcopy(old)
    new["spec"]["terminationGracePeriodSeconds"] = 1
    assert found_by(KIND.strategy.validate_update, new, old) == []


def test_limits_of_a_list_of_host_ports_hold_across_protocols_and_addresses() -> None:
    ports = [
        {"containerPort": 1, "hostPort": 9, "protocol": protocol, "hostIP": address}
        for protocol in ("TCP", "UDP")
        for address in ("10.0.0.1", "10.0.0.2")
    ]
    assert found_by(KIND.strategy.validate, pod(containers=[{"name": "c", "image": "i", "ports": ports}])) == []
