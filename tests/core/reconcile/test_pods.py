"""Pods: which is let go first, when one counts as available, how a new one is written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from situate.core.model.managed import ManagedPod
from situate.core.model.stored import Owner, PodTemplateSpec
from situate.core.reconcile.api_values import format_time
from situate.core.reconcile.pods import available_at, deletion_order, is_available, new_pod

NOW = 1_700_000_000_000
HOUR = 3_600_000


def pod(name: str, **fields: Any) -> ManagedPod:
    """Running and ready for an hour on node n1, unless told otherwise."""
    meta: dict[str, Any] = {
        "name": name,
        "uid": name,
        "creationTimestamp": format_time(NOW - fields.pop("age", 2 * HOUR)),
    }
    if "cost" in fields:
        meta["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": fields.pop("cost")}
    ready = {"type": "Ready", "status": fields.pop("ready", "True")}
    ready["lastTransitionTime"] = format_time(NOW - fields.pop("ready_for", HOUR))
    containers = [{"name": "c", "restartCount": fields.pop("restarts", 0)}]
    status = {"phase": fields.pop("phase", "Running"), "conditions": [ready], "containerStatuses": containers}
    body = {"metadata": meta, "spec": {"nodeName": fields.pop("node", "n1")}, "status": status}
    return convert(body, ManagedPod)


@pytest.mark.parametrize(
    "first, second",
    [
        pytest.param({"node": ""}, {"phase": "Pending"}, id="without a node before with one"),
        pytest.param({"phase": "Pending"}, {"phase": "Unknown"}, id="pending before unknown"),
        pytest.param({"phase": "Unknown"}, {"ready": "False"}, id="unknown before running"),
        pytest.param({"ready": "False"}, {"cost": "-5"}, id="not ready before ready, whatever it costs"),
        pytest.param({"cost": "-5"}, {"cost": "3"}, id="cheap before dear"),
        pytest.param({"cost": "x"}, {"cost": "3"}, id="a cost that is no number is none"),
        pytest.param({"ready_for": 1000}, {"ready_for": HOUR}, id="ready for a second before ready for an hour"),
        pytest.param({"restarts": 4}, {"restarts": 1}, id="restarted often before restarted once"),
        pytest.param({"age": HOUR}, {"age": 1000 * HOUR}, id="young before old"),
    ],
)
def test_who_is_let_go_first(first: dict[str, Any], second: dict[str, Any]) -> None:
    one, other = pod("b", **first), pod("a", **second)
    assert deletion_order([other, one], [], NOW) == [one, other]


def test_of_two_the_one_that_shares_its_node_goes_first() -> None:
    alone, shared, other = pod("a", node="n1"), pod("b", node="n2"), pod("c", node="n2")
    assert deletion_order([alone, shared], [alone, shared, other], NOW) == [shared, alone]


@given(st.permutations([pod("a"), pod("b", age=HOUR), pod("c", ready="False"), pod("d", node=""), pod("e")]))
def test_the_order_does_not_depend_on_the_order_they_come_in(pods: list[ManagedPod]) -> None:
    assert [one.metadata.name for one in deletion_order(pods, pods, NOW)] == ["d", "c", "b", "a", "e"]


@given(st.permutations([pod("a"), pod("b", age=HOUR), pod("c", ready="False"), pod("d", node=""), pod("e")]))
def test_with_a_count_only_the_first_are_given(pods: list[ManagedPod]) -> None:
    whole = deletion_order(pods, pods, NOW)
    for count in range(7):
        assert deletion_order(pods, pods, NOW, count) == whole[:count]


def test_a_pod_is_available_when_it_has_been_ready_long_enough() -> None:
    one = pod("a", ready_for=10_000)
    assert is_available(one, 0, NOW)
    assert not is_available(one, 11, NOW)
    assert available_at(one, 11) == NOW + 1000
    assert is_available(one, 11, NOW + 1000)
    assert available_at(pod("b", ready="False"), 0) is None


def test_a_new_pod_carries_the_whole_template_and_what_is_added_to_it() -> None:
    raw: dict[str, Any] = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"a": "1"}, "finalizers": ["x"]},
        "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "E"}]}], "hostname": "h", "anything": 1},
    }
    create = new_pod(
        "ns",
        "p",
        convert(raw, PodTemplateSpec),
        Owner(kind="Job", uid="u", controller=True),
        labels={"more": "yes"},
        finalizers=("x", "y"),
        spec={"hostname": "other"},
        generate_name="p-",
    )
    meta = create.body["metadata"]
    assert meta["labels"] == {"app": "web", "more": "yes"}
    assert meta["finalizers"] == ["x", "y"]
    assert meta["generateName"] == "p-"
    assert meta["ownerReferences"] == [{"kind": "Job", "uid": "u", "controller": True}]
    assert create.body["spec"] == {**raw["spec"], "hostname": "other"}
