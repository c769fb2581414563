"""Nodes and leases as agents write them."""

from typing import Any

import pytest

from situate.agent.control_plane import AcquiredLease, LeaseLostError, LeaseRenewal
from situate.agent.node_objects import (
    ZONE,
    NodeShape,
    acquired_after,
    check_term,
    hollow_names,
    hollow_node,
    hollow_shapes,
    lease_body,
    node_condition,
    with_own,
    with_report,
)
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED, REPORT, AgentReport


def test_names_have_the_same_length_and_begin_with_1() -> None:
    assert hollow_names(2) == ["node-1", "node-2"]
    assert hollow_names(10, "n")[::9] == ["n-01", "n-10"]
    assert hollow_names(0) == []


def test_nodes_are_spread_over_zones_if_there_are_several() -> None:
    shapes = hollow_shapes(3, 2, NodeShape(labels={"a": "b"}))
    assert [shape.labels for _, shape in shapes] == [{"a": "b", ZONE: f"zone-{zone}"} for zone in (1, 2, 1)]
    assert hollow_shapes(1, 1, NodeShape())[0][1].labels == {}


def test_a_hollow_node_is_ready_and_under_no_pressure() -> None:
    node = hollow_node("n", NodeShape(cpu="2", extended={"gpu": "1"}), 0, "10.0.0.1")
    conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    pressures = dict.fromkeys(("MemoryPressure", "DiskPressure", "PIDPressure"), "False")
    assert conditions == {**pressures, "Ready": "True"}
    assert node["status"]["allocatable"] == {"cpu": "2", "memory": "16Gi", "pods": "110", "gpu": "1"}


@pytest.mark.parametrize("before, since", [("True", "then"), ("False", "now"), (None, "now")])
def test_a_condition_keeps_its_time_while_it_stays_the_same(before: str | None, since: str) -> None:
    old = {"Ready": {"status": before, "lastTransitionTime": "then"}} if before else {}
    made = node_condition(old, "Ready", True, "KubeletReady", "", "now")
    assert (made["lastTransitionTime"], made["lastHeartbeatTime"], made["message"]) == (since, "now", "KubeletReady")
    assert node_condition({}, "Ready", False, "r", "m", "now")["status"] == "False"


@pytest.mark.parametrize(
    "spec, least, acquired",
    [
        pytest.param({}, 0, AcquiredLease(1, 0, 0), id="the first term of all"),
        pytest.param({"leaseTransitions": 4, "leaseDurationSeconds": 40}, 0, AcquiredLease(5, 4, 40), id="the next"),
        pytest.param({"leaseTransitions": 4}, 5, AcquiredLease(5, 4, 0), id="which is late enough"),
        pytest.param({"leaseTransitions": 4}, 9, AcquiredLease(9, 4, 0), id="a later one that is asked for"),
    ],
)
def test_the_next_term_of_a_lease(spec: dict[str, Any], least: int, acquired: AcquiredLease) -> None:
    assert acquired_after(spec, least) == acquired


def test_a_renewal_in_another_term_is_refused() -> None:
    check_term("n", {"leaseTransitions": 3}, LeaseRenewal(3, 40))
    check_term("n", {}, LeaseRenewal(0, 40))
    for term in (2, 4):
        with pytest.raises(LeaseLostError, match=f"in term {term}, and was acquired in 3"):
            check_term("n", {"leaseTransitions": term}, LeaseRenewal(3, 40))


def test_a_lease_says_what_is_acknowledged_if_anything_is() -> None:
    made = lease_body("n", LeaseRenewal(3, 40, 7), "now")
    assert made["metadata"]["annotations"] == {ACKNOWLEDGED: "7"}
    assert (made["spec"]["leaseTransitions"], made["spec"]["leaseDurationSeconds"]) == (3, 40)
    assert "annotations" not in lease_body("n", LeaseRenewal(3, 40), "now")["metadata"]


def test_a_report_is_an_annotation_beside_others() -> None:
    body = {"metadata": {"name": "n", "annotations": {"a": "b"}}}
    report = AgentReport(1, 2)
    assert with_report(body, report)["metadata"]["annotations"] == {"a": "b", REPORT: str(report)}
    assert with_report(body, None) == body


def test_conditions_of_other_writers_stay() -> None:
    found = {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}], "x": 1}
    own = {"conditions": [{"type": "Ready", "status": "True"}], "y": 2}
    conditions = [{"type": "Other", "status": "True"}, {"type": "Ready", "status": "True"}]
    assert with_own(found, own) == {"x": 1, "y": 2, "conditions": conditions}
